// From where an arm is and where it shall be to a trajectory that a controller can follow: MoveIt's planning pipeline.
//
//   check the request and the start -> joint positions of the goal (ik) -> OMPL (solve) -> shorten (simplify)
//   -> time (parameterize) -> check what will be driven, finer than the planner did (validate)
//
// Each part is timed. Each failure has MoveIt's error code.
//
// As in MoveIt: distances between states are the sum over the joints; a motion is checked in steps of 0.5 % of the space's
// extent (longest_valid_segment_fraction of OMPL); several attempts run in threads of their own, at most 4 at a time, and
// their solutions are combined (ParallelPlan, hybridization); the rest of the allowed time shortens the path. Unlike
// in MoveIt: the goal is sampled before OMPL starts and not beside it, in favour of results that a seed decides, and what
// ParallelPlan did not solve is TIMED_OUT or PLANNING_FAILED, not FAILURE; and a trajectory is slowed down so that what the
// controller drives between its points keeps the limits, too.
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
// longest_valid_segment_fraction of MoveIt's configurations (moveit_setup_assistant writes it); 0.01 where nothing says it.
inline constexpr double kSegmentFraction = 0.005;
// Validation misses nothing but what is touched between two looks at which the arm is nearer to it than that, m.
inline constexpr double kValidationStep = 0.002;
// What an encoder may be beyond a limit. MoveIt has 0 here, and refuses an arm that stands at its limit.
inline constexpr double kStartMargin = 1e-4;

struct Workspace {
  Eigen::Vector3d lowest;
  Eigen::Vector3d highest;
};

struct Request {
  Positions start;
  std::vector<Goal> goals;  // any of them
  std::string planner;      // planners.h
  std::size_t attempts = 1;
  double allowed_time = 5.0;  // s, for ik, solve and simplify
  double velocity_scaling = 1.0;
  double acceleration_scaling = 1.0;
  std::optional<Workspace> workspace;  // a goal's position has to be in it
  double segment_fraction = kSegmentFraction;
  // Of all randomness. The same seed gives the same trajectory, unless time runs out, or the planner has several threads.
  std::uint32_t seed = 1;
  // Asked again and again, by several threads; true ends the plan soon, with PREEMPTED. May be empty.
  std::function<bool()> cancelled;
  // Called first by each thread that is made for an attempt, where there are several; may be empty.
  std::function<void()> begin_thread;
};

// kUnknownTime: it did not come to that.
struct Times {
  Nanoseconds ik = kUnknownTime;
  Nanoseconds solve = kUnknownTime;
  Nanoseconds simplify = kUnknownTime;
  Nanoseconds parameterize = kUnknownTime;
  Nanoseconds validate = kUnknownTime;
};

struct Result {
  std::int32_t code = 0;  // MoveIt's
  std::string message;    // what went wrong, or ""
  Trajectory trajectory;
  Times times;
  std::size_t goal_samples = 0;     // joint positions that meet the goal
  std::uint64_t checked_states = 0;  // by OMPL and validation
  double path_length = 0.0;         // of the simplified path, Euclidean, rad

  [[nodiscard]] bool succeeded() const noexcept;
};

// `scene` is of that model, and says where everything else is: objects, what is attached, the hand. Plans of several threads
// of a process wait for one another, since OMPL has one source of seeds.
[[nodiscard]] Result plan(const std::shared_ptr<const Model>& model, const Request& request, const State& scene);

// As the controller is sent it (control/trajectory.h, whose Spline says where it then drives).
[[nodiscard]] manipulation::Trajectory commanded(const Trajectory& trajectory, const std::vector<std::string>& joints);

// Per joint: how far a point that it moves, of the arm or of what is attached to it, can be from its axis, m: an upper bound.
[[nodiscard]] std::vector<double> reaches(State& state);

// Where a trajectory, as the controller drives it, leaves the limits of position or collides; nothing where it does not. After
// a look the next one is due once a point of the arm can have moved by as much as the nearest thing was away (conservative
// advancement), at the earliest by `step`, m. The state is left anywhere; `checked` is raised by the looks.
[[nodiscard]] std::optional<std::string> invalid_at(const Trajectory& trajectory, State& state, double step,
                                                    std::uint64_t& checked);

[[nodiscard]] inline Positions positions_of(const Joints& joints) { return {joints.begin(), joints.end()}; }
[[nodiscard]] inline Joints joints_of(const Positions& positions) {
  return Joints::Map(positions.data(), static_cast<Eigen::Index>(positions.size()));
}

}  // namespace perflab::manipulation::planning
