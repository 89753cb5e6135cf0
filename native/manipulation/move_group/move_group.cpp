#include "manipulation/move_group/move_group.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/words.h"
#include "manipulation/move_group/execution.h"
#include "manipulation/move_group/planning_scene.h"
#include "manipulation/move_group/requests.h"
#include "manipulation/move_group/sim_clock.h"
#include "manipulation/move_group/state_monitor.h"
#include "manipulation/planning/collision_checkers.h"
#include "manipulation/planning/error_codes.h"
#include "manipulation/planning/planner.h"
#include "messages/control_msgs/action/follow_joint_trajectory.h"
#include "messages/moveit_msgs/action/move_group.h"
#include "messages/moveit_msgs/msg/display_trajectory.h"
#include "messages/moveit_msgs/msg/planning_scene.h"
#include "messages/moveit_msgs/srv/apply_planning_scene.h"
#include "messages/moveit_msgs/srv/get_planning_scene.h"
#include "messages/rosgraph_msgs/msg/clock.h"
#include "messages/sensor_msgs/msg/joint_state.h"
#include "messages/std_msgs/msg/string.h"
#include "program/rosout.h"

namespace perflab::manipulation {
namespace {

using messages::control_msgs::action::FollowJointTrajectory;
using messages::moveit_msgs::msg::DisplayTrajectory;
using messages::rosgraph_msgs::msg::Clock;
using messages::sensor_msgs::msg::JointState;
using MoveGroupAction = messages::moveit_msgs::action::MoveGroup;
using SceneMessage = messages::moveit_msgs::msg::PlanningScene;
using messages::moveit_msgs::srv::ApplyPlanningScene;
using messages::moveit_msgs::srv::GetPlanningScene;

constexpr const char* kNode = "/move_group";
constexpr const char* kMonitorNode = "/move_group_private";
constexpr const char* kClockNode = "/move_group_clock";

double seconds(Nanoseconds time) { return static_cast<double>(time) / static_cast<double>(kNanosecondsPerSecond); }

// The controller as an action client.
class ActionController final : public Controller {
 public:
  ActionController(program::ActionClient<FollowJointTrajectory> client, const PlanningScene& scene)
      : client_(client), scene_(scene) {}

  bool send(const planning::Trajectory& trajectory, Handlers handlers) override {
    FollowJointTrajectory::Goal goal;
    goal.trajectory = message_of(trajectory, *scene_.model());
    program::GoalHandlers<FollowJointTrajectory> to;
    to.on_response = [answer = handlers.on_answer](bool accepted, std::int64_t) { answer(accepted); };
    to.on_result = [then = handlers.on_result](program::GoalStatus status, const FollowJointTrajectory::Result& result) {
      then({status_of(status), result.error_code, result.error_string.string()});
    };
    const std::scoped_lock lock(mutex_);
    goal_ = client_.send(goal, std::move(to));
    return goal_.has_value();
  }
  void cancel() override {
    const std::scoped_lock lock(mutex_);
    if (goal_) client_.cancel(*goal_);
  }

 private:
  static Status status_of(program::GoalStatus status) {
    switch (status) {
      case program::GoalStatus::kSucceeded: return Status::kSucceeded;
      case program::GoalStatus::kCanceled: return Status::kCanceled;
      case program::GoalStatus::kAborted: return Status::kAborted;
      case program::GoalStatus::kUnknown: break;
    }
    return Status::kUnknown;
  }

  std::mutex mutex_;
  program::ActionClient<FollowJointTrajectory> client_;
  const PlanningScene& scene_;
  std::optional<program::GoalId> goal_;
};

struct Settings {
  std::string robot;
  std::string scene;
  MakeChecker collision;
  std::string controller;
  bool sim_time;
  Nanoseconds state_update_ns;
  Nanoseconds publish_scene_ns;
  double segment_fraction;
  std::uint64_t seed;
  std::vector<std::string> unmeasured;  // names of goal constraints for which no figures are recorded
  ExecutionSettings execution;
};

Settings settings_of(program::Context& context) {
  program::Options& options = context.options();
  Settings settings{};
  settings.robot = options.text("robot", "panda");
  settings.scene = options.text("scene", "table");
  settings.collision = planning::collision_checker_named(
      options.word("collision", planning::collision_checker_names(), planning::kDefaultCollisionChecker));
  settings.controller = options.text("controller", "/panda_arm_controller/follow_joint_trajectory");
  settings.sim_time = options.flag("sim_time", true);
  settings.state_update_ns = options.duration("state_update", 30'000'000, 1'000'000);
  settings.publish_scene_ns = options.duration("scene_interval", 250'000'000, 1'000'000);
  settings.segment_fraction = options.number("segment_fraction", planning::kSegmentFraction, 1e-6, 1.0);
  settings.seed = static_cast<std::uint64_t>(options.integer("seed", static_cast<std::int64_t>(context.seed() >> 1U), 0));
  settings.unmeasured = options.texts("unmeasured", std::vector<std::string>{"home", "warm_up", kFirstPlan});
  settings.execution.start_tolerance = options.number("start_tolerance", 0.01, 0.0);
  settings.execution.duration_scaling = options.number("duration_scaling", 1.2, 0.0);
  settings.execution.duration_margin = options.number("duration_margin", 0.5, 0.0);
  return settings;
}

class MoveGroup final : public program::Application {
 public:
  explicit MoveGroup(program::Context& context)
      : context_(context),
        settings_(settings_of(context)),
        clock_(settings_.sim_time),
        scene_(settings_.robot, Scene::load(settings_.scene), settings_.collision),
        model_(scene_.model()),
        monitor_(model_, clock_),
        controller_(context.action_client<FollowJointTrajectory>(kNode, settings_.controller), scene_),
        execution_(model_, clock_, monitor_, controller_, settings_.execution),
        display_(context.publisher<DisplayTrajectory>(kNode, "/display_planned_path")),
        semantic_(context.publisher<messages::std_msgs::msg::String>(kNode, "/robot_description_semantic")),
        publisher_(context.publisher<SceneMessage>(kMonitorNode, "/monitored_planning_scene")),
        log_(context, kNode),
        goal_(context.span(kNode, "move_action")),
        plan_(context.span(kNode, "plan")),
        planning_times_(context.times("planning_times")),
        execution_times_(context.times("execution_times")),
        collision_check_(context.times("collision_check")),
        planned_path_(context.series("planned", columns_of(*model_))),
        considered_path_(context.series("considered", columns_of(*model_))) {
    context.reentrant();
    if (settings_.sim_time) {
      context.on_message<Clock>(kClockNode, "/clock", [this](const Clock& clock, const program::Received& how) {
        clock_.set(nanoseconds_of(clock.clock), how.published_ns);
      });
    }
    context.on_message<JointState>(kMonitorNode, "/joint_states",
                                   [this](const JointState& state, const program::Received& how) {
                                     monitor_.take(state, how.published_ns);
                                     state_pending_.store(true);
                                     if (context_.clock().now() - state_updated_.load() >= settings_.state_update_ns) {
                                       update_state();
                                     }
                                   });
    context.on_request<ApplyPlanningScene>(
        kNode, "/apply_planning_scene",
        [this](const ApplyPlanningScene::Request& request, program::Request<ApplyPlanningScene> open) {
          ApplyPlanningScene::Response response;
          response.success = apply(request.scene);
          open.reply(response);
        });
    context.on_request<GetPlanningScene>(
        kNode, "/get_planning_scene",
        [this](const GetPlanningScene::Request& request, program::Request<GetPlanningScene> open) {
          GetPlanningScene::Response response;
          scene_.write(response.scene, false);
          keep(response.scene, request.components.components);
          open.reply(response);
        });
    context.timer(kMonitorNode, "state_update", settings_.state_update_ns, [this](Nanoseconds) {
      if (state_pending_.load()) update_state();
    }, true);
    program::ActionServerHandlers<MoveGroupAction> handlers;
    handlers.on_goal = [this](const program::GoalId&, const MoveGroupAction::Goal&) {
      arrived_.store(context_.clock().now());
      if (stopping_.load() || busy_.exchange(true)) return program::GoalResponse::kReject;
      preempted_.store(false);
      return program::GoalResponse::kAcceptAndExecute;
    };
    handlers.on_accepted = [this](program::Goal<MoveGroupAction> goal) { begin(std::move(goal)); };
    handlers.on_cancel = [this](const program::GoalId&) {
      preempted_.store(true);
      return true;
    };
    context.on_goals<MoveGroupAction>(kNode, "/move_action", std::move(handlers));
    for (const char* const name : {"move_action", "planner", "execution"}) context.thread_name(name);
    context.thread("scene_publisher", [this](const program::Running& running) { publish_scenes(running); });
  }

  ~MoveGroup() override { finish(); }
  void start(const program::Start&) override {
    semantic_.message().data = model_->srdf();
    semantic_.publish();
  }
  void stop() override {
    tell_unended();
    finish();
  }

 private:
  struct Plan {
    planning::Result result;
    Positions start;
    double hand = 0.0;
  };

  // ---- planning scene monitor ----

  void update_state() {
    const std::optional<ArmState> current = monitor_.current();
    if (!current) return;
    state_pending_.store(false);
    state_updated_.store(context_.clock().now());
    scene_.move_robot(current->positions, current->hand);
    const std::scoped_lock lock(publish_mutex_);
    moved_ = moved_ || current->positions != published_positions_;
  }

  bool apply(const SceneMessage& message) {
    try {
      scene_.apply(message);
      return true;
    } catch (const BadInput& error) {
      context_.outcome("scene_rejected", error.what());
      return false;
    }
  }

  // Reduces a whole scene to the requested components; none requested means all, as in MoveIt.
  static void keep(SceneMessage& scene, std::uint32_t components) {
    using Asked = messages::moveit_msgs::msg::PlanningSceneComponents;
    if (components == 0) return;
    const auto lacks = [components](std::uint32_t each) { return (components & each) == 0; };
    if (lacks(Asked::ROBOT_STATE_ATTACHED_OBJECTS)) scene.robot_state.attached_collision_objects.clear();
    if (lacks(Asked::ROBOT_STATE)) scene.robot_state.joint_state = {};
    if (lacks(Asked::WORLD_OBJECT_NAMES | Asked::WORLD_OBJECT_GEOMETRY)) scene.world.collision_objects.clear();
    if (lacks(Asked::ALLOWED_COLLISION_MATRIX)) scene.allowed_collision_matrix = {};
  }

  // Publishes on a change, at most once per interval: the whole scene if objects changed, otherwise the
  // robot's state.
  void publish_scenes(const program::Running& running) {
    std::uint64_t published = 0;
    for (Nanoseconds due = context_.clock().now(); !running.stopped(); due += settings_.publish_scene_ns) {
      program::Clock::sleep_until(due);
      const std::uint64_t version = scene_.version();
      {
        const std::scoped_lock lock(publish_mutex_);
        if (version == published && !moved_) continue;
        moved_ = false;
        if (const auto current = monitor_.current()) published_positions_ = current->positions;
      }
      SceneMessage& message = publisher_.message();
      scene_.write(message, version == published);
      publisher_.publish();
      published = version;
    }
  }

  // ---- goals ----

  void begin(program::Goal<MoveGroupAction> goal) {
    const std::scoped_lock lock(threads_mutex_);
    if (threads_.size() > 1) threads_.pop_front();  // it has ended: busy_ admits one goal at a time
    threads_.emplace_back([this, goal = std::move(goal)] {
      try {
        context_.enter_thread("move_action");
        work_on(goal);
      } catch (const std::exception& error) {
        context_.fail(error.what());
      }
    });
  }

  void finish() {
    stopping_.store(true);  // no further goal is accepted
    preempted_.store(true);
    monitor_.stop();
    execution_.abandon();
    std::list<std::jthread> threads;
    {
      const std::scoped_lock lock(threads_mutex_);
      threads.swap(threads_);
    }
    threads.clear();  // joins
  }

  static void say(const program::Goal<MoveGroupAction>& goal, const char* state) {
    MoveGroupAction::Feedback feedback;
    feedback.state = state;
    goal.feedback(feedback);
  }

  // Sets the current work: a goal being planned, or a motion of that duration.
  void works_on(std::string goal, Nanoseconds duration_ns = 0) {
    const std::scoped_lock lock(work_mutex_);
    work_ = Work{std::move(goal), duration_ns, context_.clock().now()};
  }
  void works_on_nothing() {
    const std::scoped_lock lock(work_mutex_);
    work_.reset();
  }

  // The process ends: reports the progress of unfinished work.
  void tell_unended() {
    const std::scoped_lock lock(work_mutex_);
    if (!work_) return;
    if (work_->duration_ns == 0) {
      const std::string took = milliseconds_text(context_.clock().now() - work_->since_ns);
      context_.outcome("unended_planning", "still planning goal " + work_->goal + ", for " + took);
      return;
    }
    const std::optional<Nanoseconds> elapsed = execution_.elapsed();
    const std::string percent = std::to_string(100 * elapsed.value_or(0) / work_->duration_ns);
    context_.outcome("unended_execution", "at " + percent + " % of a trajectory of " + milliseconds_text(work_->duration_ns) +
                                              " to goal " + work_->goal + (elapsed ? "" : ", which the controller has not taken yet"));
  }

  void figure(bool measured, const char* name, Nanoseconds took) {
    if (measured && took != kUnknownTime) context_.figure(name, seconds(took));
  }

  void work_on(const program::Goal<MoveGroupAction>& goal) {
    const program::Span::Open open = goal_.begin();
    const bool measured = is_measured(*goal);
    MoveGroupAction::Result result;
    planning_from_ns_ = context_.clock().now();
    say(goal, "PLANNING");
    log_.info("Received request for goal " + name_of(*goal));
    figure(measured, "planning_accept", planning_from_ns_ - arrived_.load());
    if (measured) say_ages();
    planning_ = {};
    plans_ = 0;
    works_on(name_of(*goal));
    const Ending ending = plan_and_execute(goal, measured, result);
    works_on_nothing();
    tell_planning(measured);
    result.error_code.val = planning::code_of(ending.label);
    result.error_code.message = ending.message;
    result.error_code.source = ending.branch;
    if (ending.label == "SUCCESS") {
      log_.info("Solution was found" + std::string((*goal).planning_options.plan_only ? "." : " and executed."));
    } else {
      log_.error(ending.label + ": " + ending.message);
    }
    busy_.store(false);
    if (ending.label == "SUCCESS") {
      goal.succeed(result);
    } else if (ending.label == "PREEMPTED") {
      goal.canceled(result);
    } else {
      goal.abort(result);
    }
    say(goal, "IDLE");
  }

  static std::string name_of(const MoveGroupAction::Goal& goal) {
    const auto& constraints = goal.request.goal_constraints;
    return constraints.empty() ? std::string() : constraints.front().name.string();
  }

  [[nodiscard]] bool is_measured(const MoveGroupAction::Goal& goal) const {
    const std::string name = name_of(goal);
    return std::find(settings_.unmeasured.begin(), settings_.unmeasured.end(), name) == settings_.unmeasured.end();
  }

  // Records how old the data on arm and clock were when the goal came.
  void say_ages() {
    const Nanoseconds now = context_.clock().now();
    if (const auto current = monitor_.current(); current && current->published_ns != kUnknownTime) {
      context_.figure("joint_state_age", seconds(now - current->published_ns));
    }
    if (clock_.published_ns() != kUnknownTime) context_.figure("clock_age", seconds(now - clock_.published_ns()));
  }

  Ending plan_and_execute(const program::Goal<MoveGroupAction>& goal, bool measured, MoveGroupAction::Result& result) {
    const auto& options = (*goal).planning_options;
    const Nanoseconds waited_from = context_.clock().now();
    // As in MoveIt, which does not wait if no clock message has come yet.
    const bool fresh = clock_.now() > 0 && monitor_.wait_for(clock_.now(), kStateWait);
    figure(measured, "planning_state_wait", context_.clock().now() - waited_from);
    if (state_pending_.load()) update_state();
    const std::optional<ArmState> current = monitor_.current();
    if (!current) return {"INVALID_ROBOT_STATE", "no_state", "no state of each joint has come yet"};

    // The request may contain its own scene.
    std::optional<PlanningScene> own;
    if (!PlanningScene::empty(options.planning_scene_diff)) {
      try {
        if (!only_robot_state(options.planning_scene_diff)) {
          own.emplace(scene_);
          own->apply(options.planning_scene_diff);
        }
      } catch (const BadInput& error) {
        return {"INVALID_OBJECT_NAME", "planning_failed", error.what()};
      }
    }
    const PlanningScene& scene = own ? *own : scene_;

    planning::Request request;
    try {
      request = request_of((*goal).request, *scene.model(), current->positions);
    } catch (const RefusedRequest& refusal) {
      return {refusal.label, "planning_failed", refusal.message};
    }
    if (PlanningScene::empty(options.planning_scene_diff) && !options.plan_only && already_there(request, scene)) return {};

    const int most = options.replan ? (options.replan_attempts > 0 ? options.replan_attempts : 5) : 1;
    Ending ending;
    for (int attempt = 0; attempt < most; ++attempt) {
      if (preempted_.load()) return {"PREEMPTED", "preempted", "the goal was cancelled"};
      const Plan planned = plan(request, scene, name_of(*goal) == kFirstPlan);
      ending = ending_of(planned.result, fresh);
      if (const Nanoseconds took = planned.result.times.validate; measured && took != kUnknownTime)
        collision_check_.record(took, context_.clock().now());
      if (planned.result.succeeded()) {
        write(planned, result);
        show(result);
        if (options.plan_only) {
          if (!std::exchange(has_considered_, true)) film(considered_path_, planned.result.trajectory, context_.clock().now());
          return ending;
        }
        const Nanoseconds monitor_ns = context_.clock().now();
        say(goal, "MONITOR");
        film(planned_path_, planned.result.trajectory, monitor_ns);
        if (measured) planning_times_.record(monitor_ns - planning_from_ns_, monitor_ns);
        figure(measured, "planning", monitor_ns - planning_from_ns_);
        works_on(name_of(*goal), std::max<Nanoseconds>(1, std::llround(planned.result.trajectory.duration() * 1e9)));
        ending = execute(planned, scene, measured);
        const Nanoseconds took = context_.clock().now() - monitor_ns;
        if (measured && ending.label == "SUCCESS") tell_execution(planned, took);
        // Also on the way home: the time to failure distinguishes a refused motion from one that got no
        // answer.
        if (ending.label != "SUCCESS" && ending.label != "PREEMPTED") context_.figure("execution_failed", seconds(took));
        if (ending.label != "MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE") return ending;
      } else if (ending.label != "PLANNING_FAILED" && ending.label != "INVALID_MOTION_PLAN") {
        return ending;
      }
      works_on(name_of(*goal));
      if (const auto moved = monitor_.current()) request.start = moved->positions;
      if (options.replan && options.replan_delay > 0.0 && attempt + 1 < most) {
        std::this_thread::sleep_for(std::chrono::duration<double>(options.replan_delay));
      }
    }
    return ending;
  }

  // What rclpy sends for a request without a scene: not a diff, hence not "empty", although it has no
  // content.
  static bool only_robot_state(const SceneMessage& message) {
    SceneMessage plain = message;
    plain.is_diff = true;
    plain.robot_state.is_diff = true;
    return PlanningScene::empty(plain);
  }

  static bool already_there(const planning::Request& request, const PlanningScene& scene) {
    State state = scene.snapshot();
    state.set(request.start);
    return std::any_of(request.goals.begin(), request.goals.end(),
                       [&](const planning::Goal& goal) { return planning::satisfies(goal, state); });
  }

  Plan plan(planning::Request& request, const PlanningScene& scene, bool first_plan) {
    const bool cold = !std::exchange(has_planned_, true);
    // The number of repetitions of the first plan does not change other plans.
    request.seed = static_cast<std::uint32_t>(mixed(settings_.seed + (first_plan ? 0 : ++planned_)));
    request.segment_fraction = settings_.segment_fraction;
    request.cancelled = [this] { return preempted_.load(); };
    request.begin_thread = [this] { context_.enter_thread("planner"); };
    const Nanoseconds from_ns = context_.clock().now();
    const State state = scene.snapshot();
    Plan plan;
    plan.start = request.start;
    plan.hand = state.hand();
    {
      const program::Span::Open open = plan_.begin();
      plan.result = planning::plan(scene.model(), request, state);
    }
    const Nanoseconds took_ns = context_.clock().now() - from_ns;
    if (plan.result.succeeded()) {
      if (cold) {
        context_.figure("planning_cold", seconds(took_ns));
      } else if (first_plan) {
        context_.figure("planning_warm", seconds(took_ns));
      }
    }
    const auto add = [](Nanoseconds& to, Nanoseconds took) {
      if (took != kUnknownTime) to = (to == kUnknownTime ? 0 : to) + took;
    };
    const planning::Times& times = plan.result.times;
    add(planning_.ik, times.ik);
    add(planning_.solve, times.solve);
    add(planning_.simplify, times.simplify);
    add(planning_.parameterize, times.parameterize);
    add(planning_.validate, times.validate);
    ++plans_;
    return plan;
  }

  // For all plans of a goal, like T1.
  void tell_planning(bool measured) {
    if (!measured || plans_ == 0) return;
    figure(measured, "planning_ik", planning_.ik);
    figure(measured, "planning_solve", planning_.solve);
    figure(measured, "planning_simplify", planning_.simplify);
    figure(measured, "planning_parameterize", planning_.parameterize);
    figure(measured, "planning_validate", planning_.validate);
    context_.figure("replans", plans_ - 1);
  }

  // Like MoveIt, it plans with old data if no fresh state came; the message then says so.
  static Ending ending_of(const planning::Result& result, bool fresh) {
    Ending ending;
    ending.label = std::string(planning::label_of(result.code));
    if (result.succeeded()) return ending;
    ending.message = result.message + (fresh ? "" : " (and no fresh state of the joints came within 1 s)");
    ending.branch = ending.label == "TIMED_OUT"                                                            ? "planning_timeout"
                    : ending.label == "PREEMPTED"                                                          ? "preempted"
                    : ending.label == "START_STATE_IN_COLLISION" || ending.label == "GOAL_IN_COLLISION" ? "would_collide"
                                                                                                           : "planning_failed";
    return ending;
  }

  void write(const Plan& plan, MoveGroupAction::Result& result) const {
    result.trajectory_start = message_of(plan.start, plan.hand, *model_);
    result.planned_trajectory.joint_trajectory = message_of(plan.result.trajectory, *model_);
    const planning::Times& times = plan.result.times;
    result.planning_time = seconds(times.ik + times.solve + times.simplify);
  }

  void show(const MoveGroupAction::Result& result) {
    DisplayTrajectory& message = display_.message();
    message.model_id = model_->name();
    message.trajectory.resize(1);
    message.trajectory[0] = result.planned_trajectory;
    message.trajectory_start = result.trajectory_start;
    display_.publish();
  }

  static std::vector<std::string> columns_of(const Model& model) {
    std::vector<std::string> columns{"s"};
    columns.insert(columns.end(), model.joints().begin(), model.joints().end());
    return columns;
  }

  // Adds a plan to the film of the trial: its points, all at the time at which the plan was ready.
  static void film(program::Series& series, const planning::Trajectory& trajectory, Nanoseconds ready_ns) {
    std::vector<double> row;
    for (const planning::TrajectoryPoint& point : trajectory.points) {
      row.assign(1, point.time);
      row.insert(row.end(), point.position.begin(), point.position.end());
      series.record(ready_ns, row);
    }
  }

  Ending execute(const Plan& plan, const PlanningScene& planned_in, bool measured) {
    const planning::Trajectory& trajectory = plan.result.trajectory;
    std::uint64_t looked_at = scene_.version();
    const bool own = &planned_in != &scene_;
    const auto blocked = [&](double elapsed) -> std::optional<std::string> {
      const std::uint64_t version = scene_.version();
      if (own || version == looked_at) return std::nullopt;
      looked_at = version;
      const Nanoseconds from_ns = context_.clock().now();
      planning::Trajectory rest;
      for (const planning::TrajectoryPoint& point : trajectory.points) {
        if (point.time >= elapsed) rest.points.push_back(point);
      }
      State state = scene_.snapshot();
      std::uint64_t checked = 0;
      std::optional<std::string> wrong = planning::invalid_at(rest, state, planning::kValidationStep, checked);
      if (measured) collision_check_.record(context_.clock().now() - from_ns, context_.clock().now());
      return wrong;
    };
    const Ending ending = execution_.run(
        trajectory, {[this] { context_.enter_thread("execution"); }, [this] { return preempted_.load(); }, blocked});
    const ExecutionTimes& times = execution_.times();
    figure(measured, "execution_state_wait", times.state_wait);
    figure(measured, "execution_accept", times.accept);
    figure(measured, "execution_result", times.result);
    figure(measured, "execution_standstill", times.standstill);
    return ending;
  }

  void tell_execution(const Plan& plan, Nanoseconds took) {
    execution_times_.record(took, context_.clock().now());
    context_.figure("execution", seconds(took));
    context_.figure("execution_nominal", plan.result.trajectory.duration());
    context_.figure("execution_overhead", seconds(took) - plan.result.trajectory.duration());
  }

  program::Context& context_;
  const Settings settings_;
  SimClock clock_;
  PlanningScene scene_;
  const std::shared_ptr<const Model> model_;  // model of the robot; its objects are those of the start
  StateMonitor monitor_;
  ActionController controller_;
  Execution execution_;
  program::Publisher<DisplayTrajectory> display_;
  program::Publisher<messages::std_msgs::msg::String> semantic_;
  program::Publisher<SceneMessage> publisher_;
  program::Rosout log_;
  const program::Span goal_;  // work on a goal, in traces
  const program::Span plan_;
  program::Times& planning_times_;  // used by the goal's thread
  program::Times& execution_times_;
  program::Times& collision_check_;  // used by the one thread that works on a goal
  program::Series& planned_path_;    // likewise, and those below
  program::Series& considered_path_;
  bool has_considered_ = false;
  Nanoseconds planning_from_ns_ = 0;
  planning::Times planning_;  // sum over the plans of the current goal
  int plans_ = 0;

  std::atomic<bool> state_pending_{false};
  std::atomic<Nanoseconds> state_updated_{0};
  std::mutex publish_mutex_;
  bool moved_ = true;
  Positions published_positions_;

  struct Work {
    std::string goal;
    Nanoseconds duration_ns;  // 0: being planned
    Nanoseconds since_ns;
  };
  std::mutex work_mutex_;
  std::optional<Work> work_;

  std::atomic<bool> busy_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<bool> preempted_{false};
  std::atomic<Nanoseconds> arrived_{0};
  bool has_planned_ = false;    // used by the goal's thread
  std::uint64_t planned_ = 0;  // likewise
  std::mutex threads_mutex_;
  std::list<std::jthread> threads_;
};

}  // namespace

std::unique_ptr<program::Application> make_move_group(program::Context& context) {
  return std::make_unique<MoveGroup>(context);
}

}  // namespace perflab::manipulation
