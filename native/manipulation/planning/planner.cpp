#include "manipulation/planning/planner.h"

#include <mujoco/mujoco.h>
#include <ompl/base/goals/GoalStates.h>
#include <ompl/geometric/PathHybridization.h>
#include <ompl/geometric/SimpleSetup.h>
#include <ompl/util/Console.h>
#include <ompl/util/Exception.h>
#include <ompl/util/RandomNumbers.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "manipulation/planning/error_codes.h"
#include "manipulation/planning/joint_space.h"
#include "manipulation/planning/planners.h"

namespace perflab::manipulation::planning {
namespace {

namespace ob = ompl::base;
namespace og = ompl::geometric;
using SpaceState = JointSpace::StateType;

// Copies of the scene for threads that check states: a thread borrows one for each check. Some planners use
// more threads than attempts; further copies are then created.
class Scenes {
 public:
  explicit Scenes(const State& scene) : scene_(scene) {}
  [[nodiscard]] std::unique_ptr<State> take() {
    const std::scoped_lock lock(mutex_);
    if (free_.empty()) return std::make_unique<State>(scene_);
    std::unique_ptr<State> state = std::move(free_.back());
    free_.pop_back();
    return state;
  }
  void give(std::unique_ptr<State> state) {
    const std::scoped_lock lock(mutex_);
    free_.push_back(std::move(state));
  }

 private:
  const State& scene_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<State>> free_;
};

class NoCollision final : public ob::StateValidityChecker {
 public:
  NoCollision(const ob::SpaceInformationPtr& space, Scenes& scenes, std::atomic<std::uint64_t>& checked)
      : StateValidityChecker(space), scenes_(scenes), checked_(checked) {}
  bool isValid(const ob::State* state) const override {
    checked_.fetch_add(1, std::memory_order_relaxed);
    if (!si_->satisfiesBounds(state)) return false;
    std::unique_ptr<State> scene = scenes_.take();
    scene->set({state->as<SpaceState>()->values, si_->getStateDimension()});
    const bool valid = !scene->collides();
    scenes_.give(std::move(scene));
    return valid;
  }

 private:
  Scenes& scenes_;
  std::atomic<std::uint64_t>& checked_;
};

// An intermediate failure, with MoveIt's code.
struct Refused {
  std::string label;
  std::string message;
};

// Measures the time from construction to destruction.
class Part {
 public:
  explicit Part(Nanoseconds& took) : took_(took), from_(read_clock(CLOCK_MONOTONIC)) {}
  ~Part() { took_ = read_clock(CLOCK_MONOTONIC) - from_; }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;

 private:
  Nanoseconds& took_;
  Nanoseconds from_;
};

// OMPL seeds all its generators from one source per process.
std::mutex& source_of_seeds() {
  static std::mutex mutex;
  return mutex;
}

std::vector<Joints> joints_of(const og::PathGeometric& path, std::size_t count) {
  std::vector<Joints> points;
  for (std::size_t i = 0; i < path.getStateCount(); ++i) {
    points.push_back(Joints::Map(path.getState(static_cast<unsigned>(i))->as<SpaceState>()->values,
                                 static_cast<Eigen::Index>(count)));
  }
  return points;
}

void check_numbers(const Model& model, const Request& request) {
  const std::size_t count = model.joints().size();
  const auto finite = [](const Positions& all) {
    return std::all_of(all.begin(), all.end(), [](double each) { return std::isfinite(each); });
  };
  if (request.start.size() != count || !finite(request.start)) {
    throw Refused{"START_STATE_INVALID", "the start lacks positions for some of the " + std::to_string(count) + " joints"};
  }
  if (request.goals.empty()) throw Refused{"INVALID_GOAL_CONSTRAINTS", "there is no goal"};
  for (const Goal& goal : request.goals) {
    if (const auto* const joints = std::get_if<JointGoal>(&goal)) {
      if (joints->positions.size() != count || !finite(joints->positions) || !(joints->tolerance >= 0.0)) {
        throw Refused{"INVALID_GOAL_CONSTRAINTS", "a joint goal does not have a position for each joint"};
      }
      continue;
    }
    const PoseGoal& pose = std::get<PoseGoal>(goal);
    if (!pose.position.allFinite() || !pose.orientation.coeffs().allFinite() || !(pose.orientation.norm() > 0.0) ||
        !(pose.radius >= 0.0) || !(pose.tolerance.array() >= 0.0).all()) {
      throw Refused{"INVALID_GOAL_CONSTRAINTS", "a pose goal is not finite, or has a negative tolerance"};
    }
    if (!request.workspace) continue;
    const Workspace& workspace = *request.workspace;
    if (!((workspace.lowest.array() < workspace.highest.array()).all())) {
      throw Refused{"INVALID_GOAL_CONSTRAINTS", "the workspace has no volume"};
    }
    const Eigen::Vector3d nearest = pose.position.cwiseMax(workspace.lowest).cwiseMin(workspace.highest);
    if ((nearest - pose.position).norm() > pose.radius) {
      throw Refused{"INVALID_GOAL_CONSTRAINTS", "the goal's position is outside of the workspace"};
    }
  }
  for (const double scaling : {request.velocity_scaling, request.acceleration_scaling}) {
    if (!(scaling > 0.0) || scaling > 1.0) {
      throw Refused{"INVALID_MOTION_PLAN", "a scaling of velocity or acceleration is not in (0, 1]"};
    }
  }
  if (request.attempts == 0) throw Refused{"PLANNING_FAILED", "the number of attempts is 0"};
  if (!(request.allowed_time > 0.0)) throw Refused{"TIMED_OUT", "the allowed planning time is not positive"};
  if (!(request.segment_fraction > 0.0) || request.segment_fraction > 1.0) {
    throw Refused{"PLANNING_FAILED", "the longest valid segment is not in (0, 1] of the space's extent"};
  }
}

// By how much the trajectory must be slowed down so that no joint exceeds its limits between points either,
// given that the controller follows polynomials: where the acceleration changes sign they exceed the limits
// by up to a half.
double exceeded(const Trajectory& trajectory, const std::vector<std::string>& joints, const Joints& velocity,
                const Joints& acceleration) {
  constexpr Nanoseconds kEach = 2'000'000;  // a cycle of the controller
  const Spline spline(commanded(trajectory, joints));
  const manipulation::JointState start(joints.size());
  manipulation::JointState desired(joints.size());
  double most = 1.0;
  for (Nanoseconds time = 0; time < spline.duration(); time += kEach) {
    spline.sample(time, start, desired);
    most = std::max({most, (planning::joints_of(desired.velocities).array().abs() / velocity.array()).maxCoeff(),
                     std::sqrt((planning::joints_of(desired.accelerations).array().abs() / acceleration.array()).maxCoeff())});
  }
  return most;
}

void slow_down(Trajectory& trajectory, double factor) {
  for (TrajectoryPoint& point : trajectory.points) {
    point.time *= factor;
    point.velocity /= factor;
    point.acceleration /= factor * factor;
  }
}

// One run of the pipeline.
class Pipeline {
 public:
  Pipeline(const std::shared_ptr<const Model>& model, const Request& request, const State& scene, Result& result)
      : model_(model),
        request_(request),
        result_(result),
        deadline_(read_clock(CLOCK_MONOTONIC) +
                  static_cast<Nanoseconds>(std::min(request.allowed_time, 1e6) * static_cast<double>(kNanosecondsPerSecond))),
        scenes_(scene),
        setup_(std::make_shared<JointSpace>(*model)) {
    setup_.getStateSpace()->setLongestValidSegmentFraction(request.segment_fraction);
    setup_.setStateValidityChecker(std::make_shared<NoCollision>(setup_.getSpaceInformation(), scenes_, checked_));
  }

  void run() {
    const ob::PlannerAllocator planner = [&] {
      try {
        return planner_named(request_.planner);
      } catch (const BadInput& error) {
        throw Refused{"PLANNING_FAILED", error.what()};
      }
    }();
    setup_.setPlannerAllocator(planner);
    check_start();
    sample_goal();
    solve();
    simplify();
    parameterize();
    validate();
  }
  [[nodiscard]] std::uint64_t checked() const noexcept { return checked_.load(); }

 private:
  [[nodiscard]] bool cancelled() const { return request_.cancelled && request_.cancelled(); }
  [[nodiscard]] bool over() const { return cancelled() || read_clock(CLOCK_MONOTONIC) >= deadline_; }
  [[nodiscard]] ob::PlannerTerminationCondition until_over() const {
    return ob::PlannerTerminationCondition([this] { return over(); });
  }
  void give_up_if_cancelled() const {
    if (cancelled()) throw Refused{"PREEMPTED", "planning was cancelled"};
  }

  void check_start() {
    if (!within_limits(*model_, request_.start, kStartMargin)) {
      throw Refused{"START_STATE_INVALID", "the start is outside of the joints' limits"};
    }
    std::unique_ptr<State> scene = scenes_.take();
    scene->set(request_.start);
    if (const auto contact = scene->contact()) {
      throw Refused{"START_STATE_IN_COLLISION", "at the start " + contact->first + " touches " + contact->second};
    }
    scenes_.give(std::move(scene));
  }

  void sample_goal() {
    const Part part(result_.times.ik);
    auto goals = std::make_shared<ob::GoalStates>(setup_.getSpaceInformation());
    std::unique_ptr<State> scene = scenes_.take();
    SplitMix64 random(mixed(request_.seed));
    const GoalSearch search{.stop = [this] { return over(); }};
    std::size_t reached = 0;
    for (const Goal& goal : request_.goals) {
      const GoalSamples samples = sample_goals(model_, goal, *scene, request_.start, search, random);
      reached += samples.reached;
      for (const Positions& positions : samples.valid) {
        ob::ScopedState<> state(setup_.getStateSpace());
        std::copy(positions.begin(), positions.end(), state->as<SpaceState>()->values);
        goals->addState(state);
      }
      checked_.fetch_add(samples.reached);
    }
    scenes_.give(std::move(scene));
    result_.goal_samples = goals->getStateCount();
    give_up_if_cancelled();
    if (!goals->hasStates()) {
      if (reached > 0) throw Refused{"GOAL_IN_COLLISION", "all arm positions that satisfy the goal collide"};
      const bool pose = std::any_of(request_.goals.begin(), request_.goals.end(),
                                    [](const Goal& goal) { return std::holds_alternative<PoseGoal>(goal); });
      if (pose && over())
        throw Refused{"TIMED_OUT", "no joint positions that satisfy the goal were found in time"};
      if (pose) throw Refused{"NO_IK_SOLUTION", "no joint positions satisfy the goal"};
      throw Refused{"GOAL_STATE_INVALID", "the goal is outside of the joints' limits"};
    }
    setup_.setGoal(goals);
  }

  void solve() {
    const Part part(result_.times.solve);
    ob::ScopedState<> start(setup_.getStateSpace());
    for (std::size_t i = 0; i < request_.start.size(); ++i) {
      const JointLimits& limit = model_->limits()[i];
      start->as<SpaceState>()->values[i] = std::clamp(request_.start[i], limit.lower, limit.upper);
    }
    setup_.setStartState(start);
    const bool solved = request_.attempts == 1 ? solve_once() : solve_together();
    give_up_if_cancelled();
    if (solved && setup_.haveExactSolutionPath()) return;
    if (over()) throw Refused{"TIMED_OUT", "no path was found within the allowed planning time"};
    throw Refused{"PLANNING_FAILED", "the planner gave up without a path to the goal"};
  }

  bool solve_once() {
    return setup_.solve(until_over()) == ob::PlannerStatus::EXACT_SOLUTION;
  }

  // OMPL's ParallelPlan with hybridization, as used by MoveIt, but with named threads: up to four attempts at
  // a time, until all are made; attempts of a batch that found a path continue until all of the batch have
  // one. Each attempt has its own goals and seeds, and paths are combined in a fixed order, so that the speed
  // of threads does not matter.
  bool solve_together() {
    setup_.setup();
    const ob::ProblemDefinitionPtr& problem = setup_.getProblemDefinition();
    og::PathHybridization hybrid(setup_.getSpaceInformation());
    SplitMix64 seeds(mixed(request_.seed));
    std::exception_ptr thrown;
    bool all = true;
    for (std::size_t left = request_.attempts; left > 0 && !over();) {
      const std::size_t count = std::min(left, kMostThreads);
      std::vector<ob::PlannerPtr> planners;
      std::vector<std::uint32_t> seed_of;
      for (std::size_t i = 0; i < count; ++i) {
        planners.push_back(setup_.getPlannerAllocator()(setup_.getSpaceInformation()));
        planners.back()->setProblemDefinition(copy_of(*problem));
        planners.back()->setup();
        seed_of.push_back(static_cast<std::uint32_t>(seeds.next() >> 33U) + 1);
      }
      const ob::PlannerTerminationCondition condition = until_over();
      std::mutex mutex;
      std::size_t found = 0;
      const auto attempt = [&](ob::Planner& planner, std::uint32_t seed) {
        try {
          if (request_.begin_thread) request_.begin_thread();
          const SeededThread seeded(seed);
          if (!planner.solve(condition)) return;
          const std::scoped_lock lock(mutex);
          if (++found == count) condition.terminate();
        } catch (...) {
          const std::scoped_lock lock(mutex);
          thrown = std::current_exception();
          condition.terminate();
        }
      };
      {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&, i] { attempt(*planners[i], seed_of[i]); });
      }
      if (thrown) std::rethrow_exception(thrown);
      for (const ob::PlannerPtr& planner : planners) {
        for (const ob::PlannerSolution& solution : planner->getProblemDefinition()->getSolutions()) {
          problem->addSolutionPath(solution);
          hybrid.recordPath(std::static_pointer_cast<og::PathGeometric>(solution.path_), false);
        }
      }
      all = all && found > 0;
      left -= count;
    }
    if (hybrid.pathCount() > 1) hybrid.computeHybridPath();
    if (hybrid.pathCount() > 1 && hybrid.getHybridPath()) {
      const auto path = std::static_pointer_cast<og::PathGeometric>(hybrid.getHybridPath());
      double difference = 0.0;
      const bool approximate = !problem->getGoal()->isSatisfied(path->getStates().back(), &difference);
      problem->addSolutionPath(path, approximate, difference, hybrid.getName());
    }
    return all;
  }

  // The same start and goals. Goals are assigned in turn; planners that share them would take them in order
  // of speed.
  ob::ProblemDefinitionPtr copy_of(const ob::ProblemDefinition& problem) const {
    auto copy = std::make_shared<ob::ProblemDefinition>(setup_.getSpaceInformation());
    copy->addStartState(problem.getStartState(0));
    auto goals = std::make_shared<ob::GoalStates>(setup_.getSpaceInformation());
    const auto& all = *problem.getGoal()->as<ob::GoalStates>();
    goals->setThreshold(all.getThreshold());
    for (std::size_t i = 0; i < all.getStateCount(); ++i) goals->addState(all.getState(static_cast<unsigned>(i)));
    copy->setGoal(goals);
    return copy;
  }

  void simplify() {
    const Part part(result_.times.simplify);
    setup_.simplifySolution(until_over());
    give_up_if_cancelled();
    og::PathGeometric& path = setup_.getSolutionPath();
    const std::vector<Joints> points = joints_of(path, model_->joints().size());
    for (std::size_t i = 1; i < points.size(); ++i) result_.path_length += (points[i] - points[i - 1]).norm();
    path.interpolate();
  }

  void parameterize() {
    const Part part(result_.times.parameterize);
    const auto count = static_cast<Eigen::Index>(model_->joints().size());
    Joints velocity(count);
    Joints acceleration(count);
    for (Eigen::Index i = 0; i < count; ++i) {
      velocity[i] = model_->limits()[static_cast<std::size_t>(i)].velocity;
      acceleration[i] = model_->limits()[static_cast<std::size_t>(i)].acceleration;
    }
    result_.trajectory =
        planning::parameterize(joints_of(setup_.getSolutionPath(), model_->joints().size()), velocity, acceleration,
                               request_.velocity_scaling, request_.acceleration_scaling);
    slow_down(result_.trajectory, exceeded(result_.trajectory, model_->joints(), velocity * request_.velocity_scaling,
                                           acceleration * request_.acceleration_scaling));
  }

  void validate() {
    const Part part(result_.times.validate);
    const std::unique_ptr<State> scene = scenes_.take();
    std::uint64_t checked = 0;
    const std::optional<std::string> invalid = invalid_at(result_.trajectory, *scene, kValidationStep, checked);
    checked_.fetch_add(checked);
    if (invalid) throw Refused{"INVALID_MOTION_PLAN", *invalid};
  }

  const std::shared_ptr<const Model>& model_;
  const Request& request_;
  Result& result_;
  const Nanoseconds deadline_;
  std::atomic<std::uint64_t> checked_{0};
  Scenes scenes_;
  og::SimpleSetup setup_;
};

}  // namespace

bool Result::succeeded() const noexcept { return code == code_of("SUCCESS"); }

Result plan(const std::shared_ptr<const Model>& model, const Request& request, const State& scene) {
  const std::scoped_lock lock(source_of_seeds());
  ompl::msg::noOutputHandler();  // the same information is in codes and messages
  Result result;
  try {
    check_numbers(*model, request);
    ompl::RNG::setSeed(std::max<std::uint32_t>(request.seed, 1));
    Pipeline pipeline(model, request, scene, result);
    try {
      pipeline.run();
      result.code = code_of("SUCCESS");
    } catch (...) {
      result.checked_states = pipeline.checked();
      throw;
    }
    result.checked_states = pipeline.checked();
  } catch (const Refused& refused) {
    result.code = code_of(refused.label);
    result.message = refused.message;
    result.trajectory = {};
  } catch (const ompl::Exception& error) {
    result.code = code_of("PLANNING_FAILED");
    result.message = one_line(error.what());
    result.trajectory = {};
  }
  return result;
}

manipulation::Trajectory commanded(const Trajectory& trajectory, const std::vector<std::string>& joints) {
  manipulation::Trajectory commands;
  commands.joints = joints;
  for (const TrajectoryPoint& point : trajectory.points) {
    commands.points.push_back(
        {static_cast<Nanoseconds>(std::llround(point.time * static_cast<double>(kNanosecondsPerSecond))),
         positions_of(point.position), positions_of(point.velocity), positions_of(point.acceleration)});
  }
  return commands;
}

std::vector<double> reaches(State& state) {
  const Model& model = state.model();
  const mjModel& robot = model.mujoco();
  const auto length = [](const double* vector) { return Eigen::Map<const Eigen::Vector3d>(vector).norm(); };
  const std::size_t count = model.joints().size();
  std::vector<int> bodies;
  for (const std::string& joint : model.joints()) {
    bodies.push_back(robot.jnt_bodyid[mj_name2id(&robot, mjOBJ_JOINT, joint.c_str())]);
  }
  // The path from a body's origin through intermediate ones to the origin of a joint's body; empty if the
  // body does not depend on that joint.
  const auto path = [&](int body, int joint_body) -> std::optional<double> {
    double sum = 0.0;
    for (; body != joint_body; body = robot.body_parentid[body]) {
      if (body == 0) return std::nullopt;
      sum += length(robot.body_pos + 3 * body);
      // A sliding part, such as a finger, may be farther away by its whole range.
      for (int joint = robot.body_jntadr[body]; joint >= 0 && joint < robot.body_jntadr[body] + robot.body_jntnum[body]; ++joint) {
        if (robot.jnt_type[joint] == mjJNT_SLIDE) {
          sum += std::max(std::abs(robot.jnt_range[2 * joint]), std::abs(robot.jnt_range[2 * joint + 1]));
        }
      }
    }
    return sum;
  };
  std::vector<double> result(count, 0.0);
  for (std::size_t joint = 0; joint < count; ++joint) {
    for (int geom = 0; geom < robot.ngeom; ++geom) {
      if (const auto way = path(robot.geom_bodyid[geom], bodies[joint])) {
        result[joint] = std::max(result[joint], *way + length(robot.geom_pos + 3 * geom) + robot.geom_rbound[geom]);
      }
    }
    const std::optional<double> to_tip = path(model.tip().id, bodies[joint]);
    for (const std::string& name : state.attached()) {
      const auto& objects = model.scene().objects;
      const auto object = std::find_if(objects.begin(), objects.end(), [&](const SceneObject& each) { return each.name == name; });
      const double away = (state.object(name).translation() - state.pose(model.tip()).translation()).norm();
      result[joint] = std::max(result[joint], to_tip.value_or(0.0) + away + object->size.norm());
    }
  }
  return result;
}

std::optional<std::string> invalid_at(const Trajectory& trajectory, State& state, double step, std::uint64_t& checked) {
  // The polynomial between two points may exceed a limit by this if the last point is at the limit.
  constexpr double kMargin = 1e-3;
  // Larger distances are not searched.
  constexpr double kFar = 0.1;
  // The arm is checked at most once per millisecond, in which it moves less than that.
  constexpr Nanoseconds kInstant = 1'000'000;
  constexpr double kInstantMotion = 0.003;
  const Model& model = state.model();
  if (trajectory.points.empty()) return std::nullopt;
  const manipulation::Trajectory commands = commanded(trajectory, model.joints());
  const Spline spline(commands);
  const std::vector<double> reach = reaches(state);
  const manipulation::JointState start(model.joints().size());
  manipulation::JointState desired(model.joints().size());
  Positions last;      // last positions checked
  double room = 0.0;  // m: distance within which nothing can have been touched since then
  const auto moved = [&] {
    double sum = 0.0;
    for (std::size_t i = 0; i < last.size(); ++i) sum += reach[i] * std::abs(desired.positions[i] - last[i]);
    return sum;
  };
  const Nanoseconds end = commands.points.back().time_ns;
  for (Nanoseconds time = commands.points.front().time_ns;; time = std::min(time + kInstant, end)) {
    spline.sample(time, start, desired);
    const auto at = [time] {
      return "at " + std::to_string(static_cast<double>(time) / static_cast<double>(kNanosecondsPerSecond)) + " s ";
    };
    if (!within_limits(model, desired.positions, kMargin)) return at() + "a joint is beyond its limits";
    if (!last.empty() && time < end && moved() < room) continue;
    ++checked;
    last = desired.positions;
    state.set(last);
    const std::optional<Contact> nearest = state.nearest(kFar);
    if (nearest && nearest->distance <= 0.0) return at() + nearest->first + " touches " + nearest->second;
    room = std::max(step, (nearest ? nearest->distance : kFar) - kInstantMotion);
    if (time == end) return std::nullopt;
  }
}

}  // namespace perflab::manipulation::planning
