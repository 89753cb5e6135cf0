// The arm's state from /joint_states: MoveIt's CurrentStateMonitor.
//
// Example:
//   StateMonitor monitor(model, clock);
//   context.on_message<JointState>(node, "/joint_states", [&](const JointState& state, const program::Received& how) {
//     monitor.take(state, how.published_ns);
//   });
//   if (!monitor.wait_for(clock.now(), kStateWait)) fail("no_state");
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/time.h"
#include "manipulation/move_group/sim_clock.h"
#include "manipulation/robot/robot.h"
#include "messages/sensor_msgs/msg/joint_state.h"

namespace perflab::manipulation {

inline constexpr Nanoseconds kStateWait = kNanosecondsPerSecond;  // MoveIt's default of waitForCurrentState()

[[nodiscard]] inline Nanoseconds nanoseconds_of(const messages::builtin_interfaces::msg::Time& time) noexcept {
  return Nanoseconds{time.sec} * kNanosecondsPerSecond + Nanoseconds{time.nanosec};
}

struct ArmState {
  Positions positions;   // of the arm's joints
  Positions velocities;  // velocities of the arm's joints; empty if the message has none
  double hand = 0.0;     // position of one finger
  Nanoseconds stamp = 0;                     // stamp of the message, in simulated time
  Nanoseconds published_ns = kUnknownTime;  // CLOCK_MONOTONIC
};

// Thread-safe.
class StateMonitor {
 public:
  StateMonitor(std::shared_ptr<const Model> model, const SimClock& clock);

  // Takes a message of /joint_states. Ignores joints that the model does not have, and a message whose
  // numbers of names and positions differ.
  void take(const messages::sensor_msgs::msg::JointState& message, Nanoseconds published_ns);

  // Empty until each joint of the arm has been reported.
  [[nodiscard]] std::optional<ArmState> current() const;

  // Waits for a state as new as `stamp`; false if that takes longer than `limit` by the clock, or stop() was
  // called. As in MoveIt, the limit does not run while the simulated clock stands still.
  [[nodiscard]] bool wait_for(Nanoseconds stamp, Nanoseconds limit) const;
  // Ends all waits permanently.
  void stop();

 private:
  const std::shared_ptr<const Model> model_;
  const SimClock& clock_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  ArmState state_;
  std::vector<bool> heard_;
  bool complete_ = false;
  bool stopped_ = false;
};

}  // namespace perflab::manipulation
