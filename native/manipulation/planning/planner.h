// MoveIt's planning pipeline: plans a trajectory from a start state to a goal that a controller can follow.
//
//   check the request and the start -> joint positions of the goal (ik) -> OMPL (solve) -> shorten (simplify)
//   -> time (parameterize) -> check the driven path, finer than the planner did (validate)
//
// Each part is timed. Each failure has MoveIt's error code.
//
// As in MoveIt: the distance between states is the sum over the joints; a motion is checked in steps of 0.5 %
// of the space's extent (OMPL's longest_valid_segment_fraction); several attempts run in their own threads,
// at most 4 at a time, and their solutions are combined (ParallelPlan, hybridization); the rest of the
// allowed time is used to shorten the path.
//
// Unlike MoveIt: the goal is sampled before OMPL starts, not concurrently, so that the seed determines the
// result. If ParallelPlan finds no solution, the code is TIMED_OUT or PLANNING_FAILED, not FAILURE. A
// trajectory is slowed down until the controller's interpolation between its points keeps the limits, too.
//
// Example:
//   Request request;
//   request.start = state.positions();
//   request.goals = {JointGoal{model->named_state("ready")}};
//   const Result result = plan(model, request, state);
//   if (result.succeeded()) send(result.trajectory); else say(label_of(result.code), result.message);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "manipulation/control/trajectory.h"
#include "manipulation/planning/goal.h"
#include "manipulation/planning/time_optimal.h"
#include "manipulation/robot/robot.h"

namespace perflab::manipulation::planning {

// MoveIt's max_planning_threads.
inline constexpr std::size_t kMostThreads = 4;
// longest_valid_segment_fraction in MoveIt's configurations (written by moveit_setup_assistant); MoveIt's
// built-in default is 0.01.
inline constexpr double kSegmentFraction = 0.005;
// Validation only misses contacts between two checks during which the arm is closer than this, m.
inline constexpr double kValidationStep = 0.002;
// How far an encoder reading may exceed a limit. MoveIt has 0 here, and refuses an arm that stands at its
// limit.
inline constexpr double kStartMargin = 1e-4;

struct Workspace {
  Eigen::Vector3d lowest;
  Eigen::Vector3d highest;
};

struct Request {
  Positions start;
  std::vector<Goal> goals;  // alternatives
  std::string planner;      // a name in planners.h
  std::size_t attempts = 1;
  double allowed_time = 5.0;  // s, for ik, solve and simplify
  double velocity_scaling = 1.0;
  double acceleration_scaling = 1.0;
  std::optional<Workspace> workspace;  // must contain the goal's position
  double segment_fraction = kSegmentFraction;
  // Seed for all randomness. The same seed gives the same trajectory, unless time runs out, or the planner
  // has several threads.
  std::uint32_t seed = 1;
  // Called repeatedly, by several threads; true ends planning soon, with PREEMPTED. May be empty.
  std::function<bool()> cancelled;
  // Called first in each thread created for an attempt, if there are several; may be empty.
  std::function<void()> begin_thread;
};

// kUnknownTime: not reached.
struct Times {
  Nanoseconds ik = kUnknownTime;
  Nanoseconds solve = kUnknownTime;
  Nanoseconds simplify = kUnknownTime;
  Nanoseconds parameterize = kUnknownTime;
  Nanoseconds validate = kUnknownTime;
};

struct Result {
  std::int32_t code = 0;  // MoveIt's error code
  std::string message;    // what went wrong, or ""
  Trajectory trajectory;
  Times times;
  std::size_t goal_samples = 0;     // joint positions that satisfy the goal
  std::uint64_t checked_states = 0;  // by OMPL and validation
  double path_length = 0.0;         // of the simplified path, Euclidean, rad

  [[nodiscard]] bool succeeded() const noexcept;
};

// `scene` must be a state of that model, and has everything else: objects, attached ones, the hand.
// Concurrent plans of a process wait for one another, because OMPL has one source of seeds.
[[nodiscard]] Result plan(const std::shared_ptr<const Model>& model, const Request& request, const State& scene);

// The trajectory as sent to the controller (control/trajectory.h, whose Spline gives the motion in between).
[[nodiscard]] manipulation::Trajectory commanded(const Trajectory& trajectory, const std::vector<std::string>& joints);

// Per joint: an upper bound of the distance from its axis of any point that it moves, of the arm or an
// attached object, m.
[[nodiscard]] std::vector<double> reaches(State& state);

// The first place where a trajectory, as followed by the controller, exceeds position limits or collides;
// empty if it does not. After a check the next one is due once a point of the arm can have moved by the
// distance of the nearest obstacle (conservative advancement), but at least by `step`, m. Modifies the state;
// `checked` counts the checks.
[[nodiscard]] std::optional<std::string> invalid_at(const Trajectory& trajectory, State& state, double step,
                                                    std::uint64_t& checked);

[[nodiscard]] inline Positions positions_of(const Joints& joints) { return {joints.begin(), joints.end()}; }
[[nodiscard]] inline Joints joints_of(const Positions& positions) {
  return Joints::Map(positions.data(), static_cast<Eigen::Index>(positions.size()));
}

}  // namespace perflab::manipulation::planning
