#include "manipulation/move_runner/move_runner.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <fstream>
#include <iterator>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "base/proc.h"
#include "base/words.h"
#include "manipulation/move_group/move_group.h"
#include "manipulation/move_group/planning_scene.h"
#include "manipulation/move_group/requests.h"
#include "manipulation/move_group/sim_clock.h"
#include "manipulation/move_group/state_monitor.h"
#include "manipulation/move_runner/control_statistics.h"
#include "manipulation/planning/error_codes.h"
#include "manipulation/planning/goal.h"
#include "manipulation/planning/planners.h"
#include "messages/control_msgs/action/gripper_command.h"
#include "messages/moveit_msgs/action/move_group.h"
#include "messages/moveit_msgs/srv/apply_planning_scene.h"
#include "messages/moveit_msgs/srv/get_planning_scene.h"
#include "messages/sensor_msgs/msg/joint_state.h"
#include "program/rosout.h"

namespace perflab::manipulation {
namespace {

using messages::control_msgs::action::GripperCommand;
using messages::sensor_msgs::msg::JointState;
using MoveGroupAction = messages::moveit_msgs::action::MoveGroup;
using SceneMessage = messages::moveit_msgs::msg::PlanningScene;
using messages::moveit_msgs::srv::ApplyPlanningScene;
using messages::moveit_msgs::srv::GetPlanningScene;

constexpr const char* kNode = "/benchmark_runner";
constexpr const char* kBringUp = "unended_bring_up";
// The arm is at home within this tolerance, and stands still if it is slower than this.
constexpr double kHomeTolerance = 0.005;  // rad
constexpr double kStandstill = 0.01;      // rad/s
// A joint state not older than this is fresh.
constexpr Nanoseconds kFresh = 10'000'000;
constexpr Nanoseconds kAskAgain = 20'000'000;
// How long move_group may take from its result to IDLE.
constexpr Nanoseconds kUntilIdle = 100'000'000;
// How far beyond the goal's tolerance the tip may end.
constexpr double kTipTolerance = 0.001;  // m
constexpr double kTurnTolerance = 0.01;  // rad

double seconds(Nanoseconds time) { return static_cast<double>(time) / static_cast<double>(kNanosecondsPerSecond); }

// A step of a trial.
struct Move {
  planning::Goal goal;
  std::string name;
};
struct Attach {
  std::string object;
};
struct Detach {
  std::string object;
};
struct MayTouch {
  std::string first, second;
  bool allowed;
};
struct Grip {
  double opening;
};
struct Wait {
  Nanoseconds time;
};
using Step = std::variant<Move, Attach, Detach, MayTouch, Grip, Wait>;

planning::Goal goal_of(program::Options& options, const Model& model) {
  const int said = options.has("joints") + options.has("state") + options.has("goal");
  if (said > 1) options.refuse("goal", "there are several; right would be one of goal, joints and state");
  if (options.has("joints")) return planning::JointGoal{options.numbers("joints", model.joints().size())};
  if (options.has("state")) return planning::JointGoal{model.named_state(options.text("state"))};
  planning::PoseGoal goal;
  goal.link = model.link(options.text("link", model.name_of(model.flange())));
  const std::vector<double> at = options.numbers("goal", 3, std::vector<double>{0.4, 0.2, 0.5});
  goal.position = {at[0], at[1], at[2]};
  const double half = std::sqrt(0.5);
  const std::vector<double> turn = options.numbers("orientation", 4, std::vector<double>{half, half, 0.0, 0.0});
  goal.orientation = {turn[3], turn[0], turn[1], turn[2]};
  if (!(goal.orientation.norm() > 0.0)) options.refuse("orientation", "it is 0; right would be a quaternion x, y, z, w");
  goal.orientation.normalize();
  goal.radius = options.number("radius", 0.01, 0.0, 1.0);
  goal.tolerance = Eigen::Vector3d::Constant(options.number("orientation_tolerance", 0.1, 0.0, 4.0));
  return goal;
}

std::vector<Step> steps_of(program::Options& options, const Model& model) {
  std::vector<Step> steps;
  for (program::Options* const step : options.objects("steps")) {
    if (step->has("attach")) {
      steps.emplace_back(Attach{step->text("attach")});
    } else if (step->has("detach")) {
      steps.emplace_back(Detach{step->text("detach")});
    } else if (step->has("allow") || step->has("forbid")) {
      const bool allowed = step->has("allow");
      const std::string key = allowed ? "allow" : "forbid";
      const std::vector<std::string> pair = step->texts(key);
      if (pair.size() != 2) step->refuse(key, "it has to be two names, of links or objects");
      steps.emplace_back(MayTouch{pair[0], pair[1], allowed});
    } else if (step->has("grip")) {
      steps.emplace_back(Grip{step->number("grip", {}, model.hand_closed(), model.hand_open())});
    } else if (step->has("wait")) {
      steps.emplace_back(Wait{step->duration("wait")});
    } else {
      steps.emplace_back(Move{goal_of(*step, model), step->text("name", "goal")});
    }
  }
  if (steps.empty()) steps.emplace_back(Move{goal_of(options, model), "goal"});
  return steps;
}

template <typename Kind>
bool any(const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(), [](const Step& step) { return std::holds_alternative<Kind>(step); });
}

std::string planner_of(program::Options& options) {
  const std::string name = options.text("planner", planning::kDefaultPlanner);
  try {
    static_cast<void>(planning::planner_named(name));
  } catch (const BadInput& error) {
    options.refuse("planner", error.what());
  }
  return name;
}

// The course of a goal; instants are ns of CLOCK_MONOTONIC.
struct Exchange {
  Nanoseconds sent_ns = kUnknownTime;
  Nanoseconds planning_ns = kUnknownTime;
  Nanoseconds monitor_ns = kUnknownTime;
  Nanoseconds cancelled_ns = kUnknownTime;  // when the runner requested the cancellation
  Nanoseconds ended_ns = kUnknownTime;
  bool idle = false;  // move_group says so once it has sent the result
  bool rejected = false;
  MoveGroupAction::Result result;
};

// Ends the trial: the outcome's name and the reason.
struct Failure {
  std::string outcome;
  std::string reason;
};
// A motion failed, with a result: the first such failure is the trial's outcome, and the next motion may succeed.
struct MotionFailed : Failure {};
// Thrown when the process is to end.
struct Stopped {};

class MoveRunner final : public program::Application {
 public:
  explicit MoveRunner(program::Context& context)
      : context_(context),
        model_(Model::load(context.options().text("robot", "panda"), Scene{})),
        clock_(false),
        monitor_(model_, clock_),
        log_(context, kNode),
        client_(context.action_client<MoveGroupAction>(kNode, "/move_action")),
        total_times_(context.times("total_times")) {
    program::Options& options = context.options();
    steps_ = steps_of(options, *model_);
    home_ = options.flag("home", true);
    home_goal_.positions = model_->named_state(options.text("home_state", "ready"));
    motions_ = options.integer("motions", 1, 1, 1'000'000);
    warm_ups_ = options.integer("warm_ups", home_ ? 0 : 2, 0, 1'000);
    warm_plans_ = options.integer("warm_plans", 3, 0, 1'000);
    asked_ = {options.number("velocity_scaling", 0.5, 1e-3, 1.0),
              options.number("acceleration_scaling", 0.5, 1e-3, 1.0),
              static_cast<int>(options.integer("attempts", 3, 1, 1'000)),
              planner_of(options),
              options.number("planning_time", 5.0, 1e-3, 1e4),
              options.number("workspace", 1.0, 0.0, 100.0),
              static_cast<int>(options.integer("replan", 0, 0, 1'000))};
    cancel_after_ = options.duration("cancel_after", 0);
    timeout_ = options.duration("timeout", 60'000'000'000, 1'000'000);
    ready_limit_ = options.duration("ready_limit", 30'000'000'000, 1'000'000);
    if (any<Grip>(steps_)) {
      gripper_ = context.action_client<GripperCommand>(kNode, "/panda_hand_controller/gripper_cmd");
    }
    if (options.has("scene")) unknown_scene_ = Scene::load(options.text("scene"));
    if (unknown_scene_ || any<Attach>(steps_) || any<Detach>(steps_) || any<MayTouch>(steps_)) {
      scene_ = context.client<ApplyPlanningScene>(kNode, "/apply_planning_scene");
    }
    if (any<MayTouch>(steps_)) known_scene_ = context.client<GetPlanningScene>(kNode, "/get_planning_scene");
    if (options.flag("statistics", false)) loop_.emplace(context, kNode, "panda_arm_controller");
    context.scene({{"marks", marks()}});
    context.reentrant();
    context.on_message<JointState>(kNode, "/joint_states",
                                   [this](const JointState& state, const program::Received& how) {
                                     monitor_.take(state, how.published_ns);
                                     const std::scoped_lock lock(mutex_);
                                     state_ns_ = how.callback_ns;
                                     watch_standstill();
                                     if (!writers_.contains(how.from)) writers_.emplace(how.from);
                                     changed_.notify_all();
                                   });
    context.thread("runner", [this](const program::Running& running) { run(running); });
  }

  void stop() override {
    const std::scoped_lock lock(mutex_);
    tell_unended();
    stopped_ = true;
    changed_.notify_all();
  }

 private:
  // The tip's target, for a film of the trial. A goal for another link than the flange is marked there.
  [[nodiscard]] nlohmann::json marks() const {
    State state(model_);
    const Pose to_tip = state.pose(model_->flange()).inverse() * state.pose(model_->tip());
    nlohmann::json all = nlohmann::json::array();
    for (const Step& step : steps_) {
      const Move* const move = std::get_if<Move>(&step);
      if (move == nullptr) continue;
      Pose at = Pose::Identity();
      double radius = 0.01;
      if (const auto* const pose = std::get_if<planning::PoseGoal>(&move->goal)) {
        at.linear() = pose->orientation.toRotationMatrix();
        at.translation() = pose->position;
        if (pose->link.id == model_->flange().id) at = at * to_tip;
        radius = pose->radius;
      } else if (const auto* const joints = std::get_if<planning::JointGoal>(&move->goal)) {
        state.set(joints->positions);
        at = state.pose(model_->tip());
      }
      const auto place = at.translation();
      all.push_back({{"name", move->name}, {"position", {place.x(), place.y(), place.z()}}, {"radius", radius}});
    }
    return all;
  }

  void run(const program::Running& running) {
    program::Clock::sleep_until(running.start().measured_from_ns);
    if (loop_) loop_->measure_from(running.start().measured_from_ns);
    try {
      at(kBringUp, "until the stack is ready");
      const Nanoseconds ready_ns = wait_until_ready();
      if (const auto started = started_ns()) context_.figure("bring_up", seconds(ready_ns - *started));
      for (std::int64_t i = 0; i < warm_ups_; ++i) {
        at("unended_step", "warm-up " + std::to_string(i + 1) + " of " + std::to_string(warm_ups_));
        all_steps(false);
      }
      for (std::int64_t i = 0; i < motions_; ++i) {
        at("unended_step", "motion " + std::to_string(i + 1) + " of " + std::to_string(motions_));
        if (home_) go_home();
        try {
          all_steps(true);
        } catch (const MotionFailed& failure) {
          tell(failure);
        }
      }
      finish();
    } catch (const Failure& failure) {
      tell(failure);
      finish();
    } catch (const Stopped&) {
      // The trial has ended already.
    }
  }

  void tell(const Failure& failure) {
    context_.outcome(failure.outcome, failure.reason);
    log_.error(failure.outcome + ": " + failure.reason);
  }

  void finish() {
    {
      const std::scoped_lock lock(mutex_);
      at_.reset();
    }
    if (loop_) loop_->finish();
    context_.end();
  }

  // Sets the current step, and the outcome of the trial if it is cut off there.
  void at(std::string unended, std::string where) {
    const std::scoped_lock lock(mutex_);
    at_ = At{std::move(unended), std::move(where), context_.clock().now()};
  }

  // Requires the lock. The process ends: reports which step has not ended, and since when.
  void tell_unended() {
    if (!at_ || stopped_) return;
    const auto since = [this](Nanoseconds from) { return " for " + milliseconds_text(context_.clock().now() - from); };
    if (!asked_for_ || asked_for_->ended_ns != kUnknownTime) {
      context_.outcome(at_->unended, "waited" + since(at_->since_ns) + ", " + at_->where);
      return;
    }
    const Exchange& goal = *asked_for_;
    const bool ready = at_->unended != kBringUp;
    const std::string where = at_->where + ", goal " + goal_name_;
    if (goal.monitor_ns != kUnknownTime) {
      context_.outcome("unended_execution", where + " was executed" + since(goal.monitor_ns));
    } else if (goal.planning_ns != kUnknownTime) {
      context_.outcome(ready ? "unended_planning" : kBringUp, where + " was planned" + since(goal.planning_ns));
    } else {
      context_.outcome(ready ? "unended_planning" : kBringUp, where + " was sent, and not begun" + since(goal.sent_ns));
    }
  }

  // Start time of this process on CLOCK_MONOTONIC, to 10 ms (the kernel's tick); empty if /proc does not have
  // it.
  [[nodiscard]] static std::optional<Nanoseconds> started_ns() {
    std::ifstream file("/proc/self/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::optional<proc::Stat> stat = proc::parse_stat(text);
    if (!stat) return std::nullopt;
    const Nanoseconds suspended = read_clock(CLOCK_BOOTTIME) - read_clock(CLOCK_MONOTONIC);
    return static_cast<Nanoseconds>(stat->start_ticks) * (kNanosecondsPerSecond / sysconf(_SC_CLK_TCK)) - suspended;
  }

  // Waits for `done`, no longer than `limit`; false if it did not become true.
  template <typename Done>
  bool wait(std::unique_lock<std::mutex>& lock, Nanoseconds limit, Done done) {
    const bool came = changed_.wait_for(lock, std::chrono::nanoseconds(limit), [&] { return stopped_ || done(); });
    if (stopped_) throw Stopped{};
    return came;
  }

  // perflab has matched all endpoints before the start. What remains: joint states must arrive, from one writer.
  Nanoseconds wait_until_ready() {
    std::unique_lock lock(mutex_);
    const bool fresh = wait(lock, ready_limit_, [&] {
      return state_ns_ != kUnknownTime && context_.clock().now() - state_ns_ < kFresh && monitor_.current().has_value();
    });
    if (!fresh) throw Failure{"no_state", "no fresh state of the joints came within " + std::to_string(seconds(ready_limit_)) + " s"};
    check_writers();
    lock.unlock();
    if (unknown_scene_) change(PlanningScene::adding(*unknown_scene_, model_->name_of(model_->base())));
    return first_plans();
  }

  // Like MoveIt, move_group does not wait for its first /clock and /joint_states: a plan that is not executed
  // shows that it has received them. It is the first plan of a fresh move_group, and is repeated to measure
  // later ones. Returns when it was requested.
  Nanoseconds first_plans() {
    const auto first = std::find_if(steps_.begin(), steps_.end(), [](const Step& step) { return std::holds_alternative<Move>(step); });
    const planning::Goal goal = first != steps_.end() ? std::get<Move>(*first).goal : planning::Goal(home_goal_);
    const Nanoseconds until = context_.clock().now() + ready_limit_;
    while (true) {
      const Exchange exchange = ask(goal, kFirstPlan, false, true);
      const std::optional<Failure> failure = failure_of(exchange);
      if (!failure) {
        for (std::int64_t i = 0; i < warm_plans_; ++i) ask(goal, kFirstPlan, false, true);
      }
      if (!failure || failure->outcome != "no_state") return exchange.sent_ns;
      if (context_.clock().now() > until) throw Failure{*failure};
      std::unique_lock lock(mutex_);
      wait(lock, kAskAgain, [] { return false; });
    }
  }

  // Requires the lock. Updates, from the last state, since when the arm stands still, and how far it moved
  // since its cancel.
  void watch_standstill() {
    const std::optional<ArmState> state = monitor_.current();
    if (state && !cancelled_at_.empty()) {
      double apart = 0.0;
      for (std::size_t i = 0; i < cancelled_at_.size(); ++i) apart = std::hypot(apart, state->positions[i] - cancelled_at_[i]);
      if (apart > swung_) {
        swung_ = apart;
        farthest_ = state->positions;
      }
    }
    const bool still = state && !state->velocities.empty() &&
                       std::all_of(state->velocities.begin(), state->velocities.end(),
                                   [](double velocity) { return std::abs(velocity) < kStandstill; });
    if (!still) {
      still_since_ns_ = kUnknownTime;
    } else if (still_since_ns_ == kUnknownTime) {
      still_since_ns_ = state->published_ns;
    }
  }

  void check_writers() const {
    if (writers_.size() < 2) return;
    std::string names;
    for (const std::string& name : writers_) names += (names.empty() ? "" : " and ") + name;
    throw Failure{"stack_not_ready", "/joint_states has several writers: " + names};
  }

  [[nodiscard]] ArmState arm() const {
    const std::optional<ArmState> current = monitor_.current();
    if (!current) throw Failure{"no_state", "no state of each joint has come yet"};
    return *current;
  }

  void go_home() {
    const Exchange exchange = ask(home_goal_, "home", false);
    if (const auto failure = failure_of(exchange)) {
      throw Failure{failure->outcome, "on the way home: " + failure->reason};
    }
    std::string wrong;
    std::unique_lock lock(mutex_);
    const bool there = wait(lock, kNanosecondsPerSecond, [&] {
      wrong = not_home(arm());
      return wrong.empty();
    });
    if (!there) throw Failure{"home_failed", wrong};
    check_writers();
  }

  [[nodiscard]] std::string not_home(const ArmState& state) const {
    for (std::size_t i = 0; i < state.positions.size(); ++i) {
      const double apart = std::abs(state.positions[i] - home_goal_.positions[i]);
      if (apart >= kHomeTolerance) return model_->joints()[i] + " is " + std::to_string(apart) + " rad from home";
      if (state.velocities.empty()) return "/joint_states has no velocities";
      if (std::abs(state.velocities[i]) >= kStandstill) return model_->joints()[i] + " still moves at home";
    }
    return "";
  }

  void all_steps(bool measured) {
    for (const Step& step : steps_) std::visit([&](const auto& each) { take(each, measured); }, step);
  }

  void take(const Move& move, bool measured) {
    const Exchange exchange = ask(move.goal, measured ? move.name : "warm_up", measured);
    std::optional<Failure> failure = failure_of(exchange);
    if (measured) report(exchange);
    if (measured && was_stopped(exchange)) report_stop(exchange);
    if (!failure && cancel_after_ == 0) failure = end_of(move.goal, exchange, measured);
    if (measured) context_.figure("success", failure ? 0.0 : 1.0);
    if (failure) throw MotionFailed{*failure};
  }

  void take(const Attach& attach, bool) {
    if (gripped_ && !*gripped_) throw Failure{"grasp_failed", "the hand closed without " + attach.object + " between its fingers"};
    attached(attach.object, messages::moveit_msgs::msg::CollisionObject::ADD);
  }
  void take(const Detach& detach, bool) { attached(detach.object, messages::moveit_msgs::msg::CollisionObject::REMOVE); }

  // A matrix takes the place of the one before, also in a diff (MoveIt): so what may touch already is asked for first.
  void take(const MayTouch& pair, bool) {
    GetPlanningScene::Request request;
    request.components.components = messages::moveit_msgs::msg::PlanningSceneComponents::ALLOWED_COLLISION_MATRIX;
    SceneMessage message = no_change();
    message.allowed_collision_matrix = answer(known_scene_, request, "the question what may touch").scene.allowed_collision_matrix;
    PlanningScene::allow(message.allowed_collision_matrix, pair.first, pair.second, pair.allowed);
    change(message);
  }

  void take(const Grip& grip, bool) {
    GripperCommand::Goal goal;
    goal.command.position = grip.opening;
    goal.command.max_effort = 20.0;
    struct Gripped {
      bool rejected = false, succeeded = false, stalled = false;
    };
    const auto done = std::make_shared<std::optional<Gripped>>();
    program::GoalHandlers<GripperCommand> handlers;
    handlers.on_response = [this, done](bool accepted, std::int64_t) {
      if (accepted) return;
      const std::scoped_lock lock(mutex_);
      done->emplace(Gripped{.rejected = true});
      changed_.notify_all();
    };
    handlers.on_result = [this, done](program::GoalStatus status, const GripperCommand::Result& result) {
      const std::scoped_lock lock(mutex_);
      done->emplace(Gripped{.succeeded = status == program::GoalStatus::kSucceeded, .stalled = result.stalled});
      changed_.notify_all();
    };
    if (!gripper_.send(goal, std::move(handlers))) throw Failure{"server_not_ready", "the gripper's goal could not be sent"};
    std::unique_lock lock(mutex_);
    if (!wait(lock, timeout_, [&] { return done->has_value(); })) throw Failure{"no_result", "the gripper did not answer"};
    if ((*done)->rejected) throw Failure{"goal_rejected", "the gripper rejected its goal"};
    if (!(*done)->succeeded) throw Failure{"goal_aborted", "the gripper did not come to its goal"};
    gripped_ = (*done)->stalled;
  }

  void take(const Wait& step, bool) {
    std::unique_lock lock(mutex_);
    wait(lock, step.time, [] { return false; });
  }

  static SceneMessage no_change() {
    SceneMessage message;
    message.is_diff = true;
    message.robot_state.is_diff = true;
    return message;
  }

  void attached(const std::string& object, std::uint8_t operation) {
    SceneMessage message = no_change();
    auto& attached = message.robot_state.attached_collision_objects.emplace_back();
    attached.link_name = model_->name_of(model_->tip());
    attached.object.id = object;
    attached.object.operation = operation;
    // Without them the fingers that hold the object would collide with it.
    attached.touch_links = model_->touch_links();
    change(message);
  }

  void change(const SceneMessage& scene) {
    ApplyPlanningScene::Request request;
    request.scene = scene;
    if (!answer(scene_, request, "the change of the scene").success) {
      throw Failure{"scene_rejected", "move_group refused the change of the scene"};
    }
  }

  template <typename Service>
  typename Service::Response answer(program::Client<Service>& client, const typename Service::Request& request, const char* what) {
    const auto answered = std::make_shared<std::optional<typename Service::Response>>();
    const bool sent = client.call(request, [this, answered](const typename Service::Response& response, const program::Replied&) {
      const std::scoped_lock lock(mutex_);
      answered->emplace(response);
      changed_.notify_all();
    });
    if (!sent) throw Failure{"server_not_ready", std::string(what) + " could not be sent"};
    std::unique_lock lock(mutex_);
    if (!wait(lock, timeout_, [&] { return answered->has_value(); })) {
      throw Failure{"no_result", "move_group did not answer " + std::string(what)};
    }
    return std::move(**answered);
  }

  // Sends a goal and waits until it ends.
  Exchange ask(const planning::Goal& goal, const std::string& name, bool may_cancel, bool plan_only = false) {
    const auto exchange = std::make_shared<Exchange>();
    program::GoalHandlers<MoveGroupAction> handlers;
    handlers.on_response = [this, exchange](bool accepted, std::int64_t) {
      if (accepted) return;
      const std::scoped_lock lock(mutex_);
      exchange->rejected = true;
      exchange->ended_ns = context_.clock().now();
      changed_.notify_all();
    };
    handlers.on_feedback = [this, exchange, name](const MoveGroupAction::Feedback& feedback) {
      const Nanoseconds now = context_.clock().now();
      const std::scoped_lock lock(mutex_);
      // A goal may be planned several times: the first plan counts, and the last execution.
      if (feedback.state == "PLANNING" && exchange->planning_ns == kUnknownTime) exchange->planning_ns = now;
      if (feedback.state == "MONITOR") {
        exchange->monitor_ns = now;
        context_.moment(name + ": moves");
      }
      exchange->idle = exchange->idle || feedback.state == "IDLE";
      changed_.notify_all();
    };
    handlers.on_result = [this, exchange](program::GoalStatus, const MoveGroupAction::Result& result) {
      const Nanoseconds now = context_.clock().now();
      const std::scoped_lock lock(mutex_);
      exchange->result = result;
      exchange->ended_ns = now;
      changed_.notify_all();
    };
    MoveGroupAction::Goal message = message_of(goal, name, asked_, *model_);
    message.planning_options.plan_only = plan_only;
    exchange->sent_ns = context_.clock().now();
    {
      const std::scoped_lock lock(mutex_);
      asked_for_ = exchange;
      goal_name_ = name;
    }
    if (!plan_only) context_.moment(name + ": asked for");
    const std::optional<program::GoalId> id = client_.send(message, std::move(handlers));
    if (!id) throw Failure{"server_not_ready", "the goal could not be sent to move_group"};

    std::unique_lock lock(mutex_);
    const auto ended = [&] { return exchange->ended_ns != kUnknownTime; };
    if (may_cancel && cancel_after_ > 0 &&
        wait(lock, timeout_, [&] { return ended() || exchange->monitor_ns != kUnknownTime; }) && !ended()) {
      if (!wait(lock, cancel_after_, ended)) {
        cancelled_at_ = farthest_ = arm().positions;
        swung_ = 0.0;
        exchange->cancelled_ns = context_.clock().now();
        lock.unlock();
        client_.cancel(*id);
        lock.lock();
      }
    }
    if (!wait(lock, timeout_, ended)) {
      lock.unlock();
      client_.cancel(*id);
      throw Failure{"no_result", "move_group gave no result within " + std::to_string(seconds(timeout_)) + " s"};
    }
    // Until then MoveIt still forgets this goal, and would tell nothing of one sent meanwhile.
    wait(lock, kUntilIdle, [&] { return exchange->idle || exchange->rejected; });
    if (!plan_only) {
      const std::optional<Failure> failure = failure_of(*exchange);
      context_.moment(name + (failure ? ": " + failure->reason : was_stopped(*exchange) ? ": stopped" : ": there"));
    }
    return *exchange;
  }

  // Why a motion failed, from MoveIt's code and the branch reported by move_group; empty if it succeeded.
  [[nodiscard]] std::optional<Failure> failure_of(const Exchange& exchange) const {
    if (exchange.rejected) return Failure{"goal_rejected", "move_group rejected the goal"};
    const auto& code = exchange.result.error_code;
    const std::string label(planning::label_of(code.val));
    const std::string reason = label + " (" + std::to_string(code.val) + ")" +
                               (code.message.empty() ? "" : ": " + code.message.string());
    if (was_stopped(exchange)) return std::nullopt;
    if (label == "SUCCESS") return std::nullopt;
    // MoveIt itself writes other words there.
    static const std::set<std::string, std::less<>> branches = {
        "start_deviation", "no_state",       "server_not_ready", "goal_rejected",     "result_unknown",
        "path_tolerance",  "goal_tolerance", "execution_timeout", "would_collide",    "planning_failed",
        "planning_timeout", "preempted",     "goal_canceled",     "goal_aborted"};
    const auto branch = branches.find(code.source.view());
    if (branch != branches.end()) return Failure{*branch, reason};
    return Failure{std::string(planning::outcome_of(code.val, exchange.monitor_ns != kUnknownTime)), reason};
  }

  // Reports times as a client sees them; they are late if the client is starved. move_group reports its own.
  void report(const Exchange& exchange) {
    const bool executed = exchange.monitor_ns != kUnknownTime;
    if (executed && exchange.planning_ns != kUnknownTime) {
      context_.figure("planning_seen", seconds(exchange.monitor_ns - exchange.planning_ns));
    }
    if (failure_of(exchange) || cancel_after_ > 0) return;
    if (executed) {
      const double execution = seconds(exchange.ended_ns - exchange.monitor_ns);
      context_.figure("execution_seen", execution);
      if (const auto duration = nominal(exchange)) context_.figure("execution_overhead_seen", execution - *duration);
    }
    context_.figure("total", seconds(exchange.ended_ns - exchange.sent_ns));
    total_times_.record(exchange.ended_ns - exchange.sent_ns, exchange.ended_ns);
  }

  // The duration of the last executed trajectory; empty if move_group does not return it.
  static std::optional<double> nominal(const Exchange& exchange) {
    const auto& points = exchange.result.planned_trajectory.joint_trajectory.points;
    if (points.empty()) return std::nullopt;
    const auto& end = points.back().time_from_start;
    return static_cast<double>(end.sec) + 1e-9 * static_cast<double>(end.nanosec);
  }

  static bool was_stopped(const Exchange& exchange) {
    return exchange.cancelled_ns != kUnknownTime && planning::label_of(exchange.result.error_code.val) == "PREEMPTED";
  }

  // Reports how the arm stopped after this client's cancel: braking, and the cancel's way through move_group
  // and controller.
  void report_stop(const Exchange& exchange) {
    std::unique_lock lock(mutex_);
    if (!wait(lock, kNanosecondsPerSecond, [&] { return still_since_ns_ != kUnknownTime; })) return;
    if (still_since_ns_ < exchange.cancelled_ns) return;  // the arm had not begun to move
    State state(model_);
    state.set(cancelled_at_);
    const Eigen::Vector3d from = state.pose(model_->tip()).translation();
    state.set(farthest_);
    context_.figure("stop_seen", seconds(still_since_ns_ - exchange.cancelled_ns));
    context_.figure("stopping_distance_seen", (state.pose(model_->tip()).translation() - from).norm());
  }

  // Compares the arm's final position with the goal.
  std::optional<Failure> end_of(const planning::Goal& goal, const Exchange& exchange, bool measured) {
    const auto* const pose = std::get_if<planning::PoseGoal>(&goal);
    const Link link = pose != nullptr ? pose->link : model_->flange();
    State state(model_);
    state.set(arm().positions);
    const Pose ended = state.pose(link);
    const auto& points = exchange.result.planned_trajectory.joint_trajectory.points;
    if (!points.empty()) {
      state.set({points.back().positions.data(), points.back().positions.size()});
      if (measured) context_.figure("tip_error", (ended.translation() - state.pose(link).translation()).norm());
    }
    if (pose == nullptr) return std::nullopt;
    const double apart = (ended.translation() - pose->position).norm();
    if (apart > pose->radius + kTipTolerance) {
      return Failure{"goal_missed", "the tip ended " + std::to_string(apart) + " m from the goal"};
    }
    const double turned = (planning::orientation_error(*pose, ended) - pose->tolerance).maxCoeff();
    if (turned > kTurnTolerance) {
      return Failure{"goal_missed", "the tip ended turned by " + std::to_string(turned) + " rad more than the goal allows"};
    }
    return std::nullopt;
  }

  program::Context& context_;
  const std::shared_ptr<const Model> model_;
  const SimClock clock_;  // StateMonitor needs one; not used here
  StateMonitor monitor_;
  program::Rosout log_;
  program::ActionClient<MoveGroupAction> client_;
  program::ActionClient<GripperCommand> gripper_;
  program::Client<ApplyPlanningScene> scene_;
  program::Client<GetPlanningScene> known_scene_;
  program::Times& total_times_;
  std::optional<ControlStatistics> loop_;

  std::vector<Step> steps_;
  std::optional<Scene> unknown_scene_;  // objects that move_group does not have yet
  bool home_ = true;
  planning::JointGoal home_goal_;
  std::int64_t motions_ = 1;
  std::int64_t warm_ups_ = 0;
  std::int64_t warm_plans_ = 0;
  Asked asked_{};
  Nanoseconds cancel_after_ = 0;
  Nanoseconds timeout_ = 0;
  Nanoseconds ready_limit_ = 0;

  std::mutex mutex_;
  std::condition_variable changed_;
  Nanoseconds state_ns_ = kUnknownTime;
  Nanoseconds still_since_ns_ = kUnknownTime;  // by publication time of /joint_states; kUnknownTime: it moves
  Positions cancelled_at_, farthest_;          // the arm's position when its last motion was cancelled; and
                                               // the farthest since then
  double swung_ = 0.0;                         // rad: distance between the two
  std::optional<bool> gripped_;                // whether the hand closed on something, set once its motion
                                               // was commanded
  std::set<std::string, std::less<>> writers_;
  struct At {
    std::string unended;  // an outcome
    std::string where;
    Nanoseconds since_ns;
  };
  std::optional<At> at_;                  // set while the trial runs
  std::shared_ptr<Exchange> asked_for_;   // the last goal
  std::string goal_name_;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<program::Application> make_move_runner(program::Context& context) {
  return std::make_unique<MoveRunner>(context);
}

}  // namespace perflab::manipulation
