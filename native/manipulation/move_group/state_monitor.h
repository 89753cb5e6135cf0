// Where the arm is, as /joint_states says it: MoveIt's CurrentStateMonitor.
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
  Positions velocities;  // likewise; empty where the message has none
  double hand = 0.0;     // of one finger
  Nanoseconds stamp = 0;                     // of the message, by the clock of the simulation
  Nanoseconds published_ns = kUnknownTime;  // CLOCK_MONOTONIC
};

// Any thread.
class StateMonitor {
 public:
  StateMonitor(std::shared_ptr<const Model> model, const SimClock& clock);

  // A message of /joint_states. Joints that the model does not have are left out; a message whose names and positions do
  // not go together is left out as a whole.
  void take(const messages::sensor_msgs::msg::JointState& message, Nanoseconds published_ns);

  // Nothing until each joint of the arm was heard of.
  [[nodiscard]] std::optional<ArmState> current() const;

  // Until a state is as new as `stamp`; false when that takes longer than `limit` by the clock, or stop() was called. As in
  // MoveIt: where the simulated clock stands still so does the limit.
  [[nodiscard]] bool wait_for(Nanoseconds stamp, Nanoseconds limit) const;
  // Ends all waits, for good.
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
