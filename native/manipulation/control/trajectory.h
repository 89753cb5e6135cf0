// Joint trajectories: checks a FollowJointTrajectory goal, and samples the desired state at an instant.
//
// Sampling is that of ros2_controllers' joint_trajectory_controller (trajectory.cpp, Jazzy): between two points that both
// have positions, velocities and accelerations a quintic, with positions and velocities a cubic, with positions alone a
// straight line. The segment before the first point begins where the joints are; after the last point they stay there.
//
// Units: rad, rad/s, rad/s^2; times are ns from the trajectory's start.
//
// Example:
//   if (const auto refusal = check(trajectory, joints)) return refusal->text;
//   const Spline spline(sorted(trajectory, joints));
//   JointState desired(joints.size());
//   spline.sample(12'000'000, start, desired);
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"

namespace perflab::manipulation {

// control_msgs/action/FollowJointTrajectory's error_code.
enum class TrajectoryError : std::int32_t {
  kSuccessful = 0,
  kInvalidGoal = -1,
  kInvalidJoints = -2,
  kOldHeaderTimestamp = -3,
  kPathToleranceViolated = -4,
  kGoalToleranceViolated = -5
};
[[nodiscard]] const char* to_text(TrajectoryError error) noexcept;  // "PATH_TOLERANCE_VIOLATED"

struct TrajectoryPoint {
  Nanoseconds time_ns = 0;
  std::vector<double> positions;
  std::vector<double> velocities, accelerations;  // each may be empty
};

struct Trajectory {
  std::vector<std::string> joints;
  std::vector<TrajectoryPoint> points;
};

struct Refusal {
  TrajectoryError error;
  std::string text;
};

// Why a trajectory for these joints must be rejected; empty if it is valid: wrong joints, no point, a wrong
// size, a number that is not finite, times that do not increase, a velocity at the end. The joints may be in
// any order.
[[nodiscard]] std::optional<Refusal> check(const Trajectory& trajectory, std::span<const std::string> joints);

// The trajectory with its joints in this order; it must have passed check().
[[nodiscard]] Trajectory sorted(const Trajectory& trajectory, std::span<const std::string> joints);

// The state of all joints at one instant.
struct JointState {
  JointState() = default;
  explicit JointState(std::size_t joints) : positions(joints), velocities(joints), accelerations(joints) {}
  std::vector<double> positions, velocities, accelerations;
};

class Spline {
 public:
  // The trajectory must have passed check().
  explicit Spline(const Trajectory& trajectory);

  [[nodiscard]] std::size_t joints() const noexcept { return joints_; }
  [[nodiscard]] std::size_t points() const noexcept { return times_.size(); }
  // The time of the last point.
  [[nodiscard]] Nanoseconds duration() const noexcept { return times_.back(); }
  // The positions of the last point.
  [[nodiscard]] std::span<const double> goal() const noexcept { return row(positions_, times_.size() - 1); }

  // `start` is the state at time 0, from which the first point is approached. Neither allocates nor throws; `desired` must be
  // constructed for as many joints. Returns whether the last point is still ahead.
  bool sample(Nanoseconds time_ns, const JointState& start, JointState& desired) const noexcept;

 private:
  [[nodiscard]] std::span<const double> row(const std::vector<double>& of, std::size_t point) const noexcept {
    return std::span<const double>(of).subspan(point * joints_, joints_);
  }

  std::size_t joints_;
  std::vector<Nanoseconds> times_;
  std::vector<double> positions_, velocities_, accelerations_;  // by point, then joint; 0 where the point has none
  std::vector<int> orders_;  // by point: how many of position, velocity and acceleration it has
};

}  // namespace perflab::manipulation
