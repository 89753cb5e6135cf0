// A controller that makes joints follow trajectories, like ros2_controllers' joint_trajectory_controller with
// position commands (Jazzy). A goal starts in the cycle after it was accepted and replaces the previous one.
// It succeeds once its last point is past and each joint is within the goal's tolerances. If a joint leaves
// the path's tolerance, or does not reach the goal in time, the goal is aborted, and the arm holds its
// position.
//
// It needs neither DDS nor a clock: the caller passes the robot's (simulated) time to update().
//
// Threads: update() and reset() are for the control loop; they never wait, allocate or throw. Other threads
// may call accept() and cancel(), which exclude each other, and read a goal. A goal stays valid as long as it
// is held.
//
// Example:
//   TrajectoryController controller(settings);
//   controller.reset(positions);                                          // holds there
//   auto goal = controller.accept(trajectory, controller.tolerances());   // by the action server
//   controller.update(now_ns, positions, velocities);                     // 500 times a second
//   drive(controller.state().output);
//   if (goal->ended()) answer(goal->status(), goal->error());             // by a timer of 20 Hz
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "manipulation/control/trajectory.h"

namespace perflab::manipulation {

// One number per joint, in the controller's order; 0 is not checked. Positions in rad, velocities in rad/s.
struct Tolerances {
  std::vector<double> path_positions, path_velocities;
  std::vector<double> goal_positions, goal_velocities;
  Nanoseconds goal_time_ns = 0;  // within which the goal must be reached after the last point; 0: no limit
};

// The tolerance of one joint in a FollowJointTrajectory goal: 0 takes the controller's own, -1 none, else the value.
struct JointTolerance {
  std::string joint;
  double position = 0.0, velocity = 0.0;
};

// The tracking error of one goal: measured positions against the desired ones of the same cycle.
struct Tracking {
  double square_sum = 0.0;  // rad^2, over joints and cycles
  double most = 0.0;        // rad
  std::uint64_t samples = 0;  // joints times cycles
  double path_length = 0.0;  // rad: the length of the measured path in joint space
  [[nodiscard]] double rms() const noexcept;
};

class TrajectoryGoal {
 public:
  enum class Status { kPending, kActive, kSucceeded, kAborted, kCanceled };

  [[nodiscard]] Status status() const noexcept { return status_.load(std::memory_order_acquire); }
  [[nodiscard]] bool ended() const noexcept { return status() > Status::kActive; }

  // The nominal duration.
  [[nodiscard]] Nanoseconds duration() const noexcept { return spline_.duration(); }
  [[nodiscard]] const Spline& spline() const noexcept { return spline_; }

  // Once it has ended:
  [[nodiscard]] TrajectoryError error() const noexcept { return error_; }
  // Which joint left which tolerance, or why the goal was cancelled; "" if it succeeded.
  [[nodiscard]] std::string reason(std::span<const std::string> joints) const;
  // When it started (its first cycle, or the start time in the goal) and when it ended, in the time passed to update();
  // kUnknownTime if it never started.
  [[nodiscard]] Nanoseconds started_ns() const noexcept { return started_ns_; }
  [[nodiscard]] Nanoseconds ended_ns() const noexcept { return ended_ns_; }
  // From the last point's time until success.
  [[nodiscard]] Nanoseconds settling_ns() const noexcept { return ended_ns_ - started_ns_ - spline_.duration(); }
  [[nodiscard]] const Tracking& tracking() const noexcept { return tracking_; }
  // Where the joints were when it started.
  [[nodiscard]] std::span<const double> from() const noexcept { return from_; }

  // How a goal that was cancelled or aborted in motion stopped; valid once stopped() is true.
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }
  struct Stop {
    Nanoseconds from_ns = kUnknownTime;    // the cycle in which the controller began to stop
    Nanoseconds until_ns = kUnknownTime;   // all joints below the velocity of standstill
    std::vector<double> from, until;       // positions then
    std::vector<double> farthest;          // between both, the positions farthest from `from`: a held arm swings back
  };
  [[nodiscard]] const Stop& stop() const noexcept { return stop_; }

 private:
  friend class TrajectoryController;
  TrajectoryGoal(Spline spline, Tolerances tolerances, std::optional<Nanoseconds> start_ns);

  const std::optional<Nanoseconds> start_ns_;
  const Spline spline_;
  const Tolerances tolerances_;
  std::atomic<Status> status_{Status::kPending};
  std::atomic<bool> cancel_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<bool> retired_{false};  // the control loop has dropped it
  TrajectoryError error_ = TrajectoryError::kSuccessful;
  std::size_t joint_ = 0;  // the joint that left a tolerance
  double deviation_ = 0.0;
  Nanoseconds started_ns_ = kUnknownTime, ended_ns_ = kUnknownTime;
  Tracking tracking_;
  std::vector<double> from_;
  Stop stop_;
};

class TrajectoryController {
 public:
  enum class OnCancel {
    kHold,       // the command is where the joints are (joint_trajectory_controller)
    kDecelerate  // all joints slow down together within their acceleration limits
  };
  struct Limits {
    double lower, upper, velocity, acceleration;
  };
  struct Settings {
    std::vector<std::string> joints;
    std::vector<Limits> limits;  // one per joint
    double stopped_velocity_tolerance = 0.01;  // rad/s, of each joint at the end
    Nanoseconds goal_time_ns = 10 * kNanosecondsPerSecond;
    double path_tolerance = 0.0, goal_tolerance = 0.0;  // rad, of each joint; 0: none
    OnCancel on_cancel = OnCancel::kHold;
  };

  // Desired and measured values of the last cycle.
  struct State {
    Nanoseconds time_ns = 0;
    JointState desired;
    std::vector<double> positions, velocities;               // measured
    std::vector<double> position_errors, velocity_errors;    // desired minus measured
    std::vector<double> output;                              // commanded positions
  };

  explicit TrajectoryController(Settings settings);

  [[nodiscard]] const Settings& settings() const noexcept { return settings_; }
  // The tolerances of a goal that names none.
  [[nodiscard]] const Tolerances& tolerances() const noexcept { return tolerances_; }
  // Applies the tolerances that a goal names, and its `goal_time_ns`: 0 takes the controller's own, below 0 is none. Returns
  // what is wrong: an unknown joint, or a negative tolerance other than -1.
  [[nodiscard]] std::optional<std::string> apply(const std::vector<JointTolerance>& path,
                                                 const std::vector<JointTolerance>& goal, Nanoseconds goal_time_ns,
                                                 Tolerances& tolerances) const;

  // Accepts a trajectory that has passed check() for these joints. It starts at `start_ns`, or with the next cycle without one.
  // A goal that has not ended becomes kCanceled. Until a start in the future the arm holds; of a trajectory that should have
  // begun earlier only the rest is followed.
  std::shared_ptr<TrajectoryGoal> accept(const Trajectory& trajectory, const Tolerances& tolerances,
                                         std::optional<Nanoseconds> start_ns = {});
  // Cancels the goal in the next cycle. False if it has ended.
  bool cancel(TrajectoryGoal& goal) noexcept;

  // Holds the arm at `positions`. Call it before the first update(), and when time starts again.
  void reset(std::span<const double> positions) noexcept;
  // One cycle; `now_ns` must increase. Afterwards state().output has the commanded positions.
  void update(Nanoseconds now_ns, std::span<const double> positions, std::span<const double> velocities) noexcept;
  [[nodiscard]] const State& state() const noexcept { return state_; }
  // The number of cycles in which a command was limited to a joint's range or velocity.
  [[nodiscard]] std::uint64_t limited() const noexcept { return limited_; }
  [[nodiscard]] bool active() const noexcept { return active_ != nullptr; }

 private:
  using Status = TrajectoryGoal::Status;
  enum class Mode { kHold, kFollow, kDecelerate };

  void take_over(TrajectoryGoal& goal, Nanoseconds now_ns) noexcept;
  void follow(Nanoseconds now_ns) noexcept;
  void end(Status status, TrajectoryError error, Nanoseconds now_ns) noexcept;
  void begin_to_stop(Nanoseconds now_ns, OnCancel how) noexcept;
  void watch_the_stop(Nanoseconds now_ns) noexcept;
  void decelerate(Nanoseconds now_ns) noexcept;
  void find_errors() noexcept;
  void limit(Nanoseconds now_ns) noexcept;
  [[nodiscard]] bool within(std::span<const double> errors, std::span<const double> tolerances) noexcept;

  const Settings settings_;
  Tolerances tolerances_;

  std::mutex accepting_;
  std::vector<std::shared_ptr<TrajectoryGoal>> goals_;  // those that the loop may still use
  std::atomic<TrajectoryGoal*> incoming_{nullptr};

  // Used by the control loop alone.
  State state_;
  Mode mode_ = Mode::kHold;
  TrajectoryGoal* active_ = nullptr;
  TrajectoryGoal* stopping_ = nullptr;  // the goal whose stop is measured
  double swung_ = 0.0;                  // rad: from its stop().from to stop().farthest
  bool first_sample_ = false;
  JointState start_;
  std::vector<double> hold_, before_, output_before_, slowing_from_, slowing_velocity_;
  Nanoseconds slowing_since_ns_ = 0;
  double slowing_for_ = 0.0;  // s
  Nanoseconds last_update_ns_ = kUnknownTime;
  std::size_t outside_ = 0;  // the joint that within() found
  double deviation_ = 0.0;
  std::uint64_t limited_ = 0;
};

}  // namespace perflab::manipulation
