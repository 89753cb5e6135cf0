#include "manipulation/controllers/controllers.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "base/words.h"
#include "manipulation/controllers/messages.h"

namespace perflab::manipulation {
namespace {

constexpr Nanoseconds kMonitorPeriod = 50'000'000;  // action_monitor_rate 20
constexpr double kSecondsPerNanosecond = 1e-9;
// A gripper has reached its goal within this tolerance, or stands still if it is slower than this at three checks.
constexpr double kHandTolerance = 0.001, kHandStandstill = 0.001;
constexpr int kHandQuiet = 3;

const char* const kBroadcaster = "/joint_state_broadcaster";

double seconds(Nanoseconds time_ns) noexcept { return static_cast<double>(time_ns) * kSecondsPerNanosecond; }

TrajectoryController::Settings settings_of(program::Options& options, const Model& model) {
  TrajectoryController::Settings settings;
  settings.joints = model.joints();
  for (const JointLimits& each : model.limits()) {
    settings.limits.push_back({each.lower, each.upper, each.velocity, each.acceleration});
  }
  settings.path_tolerance = options.number("path_tolerance", 0.0, 0.0, 10.0);
  settings.goal_tolerance = options.number("goal_tolerance", 0.0, 0.0, 10.0);
  settings.goal_time_ns = options.duration("goal_time", settings.goal_time_ns);
  settings.on_cancel = options.word("on_cancel", {"hold", "decelerate"}, "hold") == "hold"
                           ? TrajectoryController::OnCancel::kHold
                           : TrajectoryController::OnCancel::kDecelerate;
  return settings;
}

bool gripper_of(program::Options& options, const Model& model) {
  const bool gripper = options.flag("gripper", false);
  if (gripper && model.hand_group().empty()) options.refuse("gripper", "the robot has no hand; right would be false");
  return gripper;
}

template <typename Numbers>
std::vector<double> vector_of(const Numbers& numbers) {
  return {numbers.begin(), numbers.end()};
}

template <typename Point>
void write_point(const JointState& from, Point& to) {
  write_numbers(from.positions, to.positions);
  write_numbers(from.velocities, to.velocities);
  write_numbers(from.accelerations, to.accelerations);
}

template <typename Point>
void write_point(std::span<const double> positions, std::span<const double> velocities, Point& to) {
  write_numbers(positions, to.positions);
  write_numbers(velocities, to.velocities);
}

// The hardware's interface names in ros2_control, joint by joint.
std::vector<std::string> interfaces(const std::vector<std::string>& joints, const std::vector<const char*>& kinds) {
  std::vector<std::string> all;
  for (const std::string& joint : joints) {
    for (const char* const kind : kinds) all.push_back(joint + "/" + kind);
  }
  return all;
}

std::vector<std::string> hand_of(const Model& model) {
  return model.hand_joint().empty() ? std::vector<std::string>{} : std::vector<std::string>{model.hand_joint()};
}

// The hand's joint has no effort interface.
HardwareDescription hardware_of(const Model& model) {
  HardwareDescription hardware{.name = model.name(), .plugin = "perflab/MujocoSystem", .command_interfaces = {}, .state_interfaces = {}};
  const std::vector<std::string> hand = hand_of(model);
  hardware.state_interfaces = interfaces(model.joints(), {"position", "velocity", "effort"});
  std::ranges::copy(interfaces(hand, {"position", "velocity"}), std::back_inserter(hardware.state_interfaces));
  hardware.command_interfaces = interfaces(model.joints(), {"position"});
  std::ranges::copy(interfaces(hand, {"position"}), std::back_inserter(hardware.command_interfaces));
  return hardware;
}

std::vector<ControllerDescription> controllers_of(const Model& model, const HardwareDescription& hardware, bool gripper) {
  std::vector<ControllerDescription> all{
      {"joint_state_broadcaster", "joint_state_broadcaster/JointStateBroadcaster", {}, hardware.state_interfaces},
      {model.group() + "_controller", "joint_trajectory_controller/JointTrajectoryController",
       interfaces(model.joints(), {"position"}), interfaces(model.joints(), {"position", "velocity"})}};
  if (!gripper) return all;
  all.push_back({model.hand_group() + "_controller", "position_controllers/GripperActionController",
                 interfaces(hand_of(model), {"position"}), interfaces(hand_of(model), {"position", "velocity"})});
  return all;
}

// Controllers that work in the loop; the gripper's only stores its command.
std::vector<std::string> looping(const ControllerSet& set) { return {set.all()[0].name, set.all()[1].name}; }

double distance(std::span<const double> first, std::span<const double> second) noexcept {
  double sum = 0.0;
  for (std::size_t each = 0; each < first.size(); ++each) sum += (first[each] - second[each]) * (first[each] - second[each]);
  return std::sqrt(sum);
}

}  // namespace

std::string link_name(const program::Context& context) {
  return "perflab-hardware-" + std::to_string(context.domain());
}

Controllers::Snapshot::Snapshot(std::size_t joints) : efforts(joints) {
  state.desired = JointState(joints);
  for (auto* each : {&state.positions, &state.velocities, &state.position_errors, &state.velocity_errors, &state.output}) {
    each->resize(joints);
  }
}

Controllers::Controllers(program::Context& context, std::shared_ptr<const Model> model)
    : context_(context),
      model_(std::move(model)),
      controller_(settings_of(context.options(), *model_)),
      arm_node_("/" + model_->group() + "_controller"),
      set_(controllers_of(*model_, hardware_of(*model_), gripper_of(context.options(), *model_))),
      snapshot_(model_->joints().size()),
      statistics_("controller_manager", model_->name(), looping(set_)),
      states_(hardware_of(*model_).state_interfaces.size()),
      commands_(hardware_of(*model_).command_interfaces.size()),
      update_(context.span(arm_node_, "update", kPeriod)),
      control_period_(context.times("control_period")),
      control_lateness_(context.times("control_lateness")),
      control_execution_(context.times("control_execution")),
      desired_(context.series("desired", model_->joints())),
      lateness_(context.series("lateness", {"control"})),
      measured_until_ns_(std::numeric_limits<Nanoseconds>::max()),
      log_(context, arm_node_),
      manager_(context, set_, hardware_of(*model_), statistics_.names(),
               static_cast<std::uint16_t>(kNanosecondsPerSecond / kPeriod),
               [this](std::size_t controller) { deactivated(controller); }),
      latest_(snapshot_),
      joint_states_(context.publisher<messages::sensor_msgs::msg::JointState>(kBroadcaster, "/joint_states")),
      dynamic_joint_states_(
          context.publisher<messages::control_msgs::msg::DynamicJointState>(kBroadcaster, "/dynamic_joint_states")),
      controller_state_(context.publisher<messages::control_msgs::msg::JointTrajectoryControllerState>(
          arm_node_, arm_node_ + "/controller_state")),
      seen_(snapshot_),
      hand_seen_(snapshot_),
      hand_command_(model_->hand_open()) {
  for (const std::string& name : context.options().texts("unmeasured", std::vector<std::string>{"home"})) {
    unmeasured_.push_back(model_->named_state(name));
  }
  advertise(context);
  const auto publish_by = [&](Place controller, const char* thread, void (Controllers::*publish)(const Snapshot&)) {
    publishers_.push_back({controller, std::make_unique<RealtimePublisher<Snapshot>>(
        context, thread, snapshot_, [this, publish](const Snapshot& at) { (this->*publish)(at); })});
  };
  publish_by(kStates, "joint_states", &Controllers::publish_joint_states);
  publish_by(kStates, "dynamic_states", &Controllers::publish_dynamic_joint_states);
  publish_by(kArm, "arm_state", &Controllers::publish_controller_state);

  program::ActionServerHandlers<FollowJointTrajectory> arm;
  arm.on_goal = [this](const program::GoalId&, const FollowJointTrajectory::Goal& goal) {
    if (!set_.active(kArm)) {
      context_.outcome("goal_rejected", set_.all()[kArm].name + " is not active");
      return program::GoalResponse::kReject;
    }
    Trajectory trajectory;
    Tolerances tolerances;
    std::optional<Nanoseconds> start_ns;
    const std::optional<Refusal> refusal = plan(goal, trajectory, tolerances, start_ns);
    if (!refusal) return program::GoalResponse::kAcceptAndExecute;
    context_.outcome("goal_rejected", std::string(to_text(refusal->error)) + ": the trajectory " + refusal->text);
    return program::GoalResponse::kReject;
  };
  arm.on_accepted = [this](program::Goal<FollowJointTrajectory> goal) { accept(std::move(goal)); };
  arm.on_cancel = [this](const program::GoalId& id) {
    const std::scoped_lock lock(goals_mutex_);
    for (Open& each : open_) {
      if (each.answer.id() == id) return controller_.cancel(*each.goal);
    }
    return false;
  };
  context.on_goals<FollowJointTrajectory>(arm_node_, arm_node_ + "/follow_joint_trajectory", std::move(arm));
  context.timer(arm_node_, "action_monitor", kMonitorPeriod, [this](Nanoseconds) { monitor(); });

  if (set_.all().size() <= kHand) return;
  const std::string hand_node = "/" + model_->hand_group() + "_controller";
  program::ActionServerHandlers<GripperCommand> hand;
  hand.on_goal = [this](const program::GoalId&, const GripperCommand::Goal& goal) {
    const double asked = goal.command.position;
    const bool can = asked >= model_->hand_closed() - 1e-9 && asked <= model_->hand_open() + 1e-9;
    return can && set_.active(kHand) ? program::GoalResponse::kAcceptAndExecute : program::GoalResponse::kReject;
  };
  hand.on_accepted = [this](program::Goal<GripperCommand> goal) {
    const std::scoped_lock lock(hand_mutex_);
    if (grip_) grip_->answer.abort({});
    const double position = (*goal).command.position;
    hand_command_.store(position, std::memory_order_relaxed);
    grip_.emplace(OpenGrip{std::move(goal), position});
  };
  context.on_goals<GripperCommand>(hand_node, hand_node + "/gripper_cmd", std::move(hand));
  context.timer(hand_node, "action_monitor", kMonitorPeriod, [this](Nanoseconds) { monitor_hand(); });
}

// Fills in the parts of messages that never change, and allocates the others.
void Controllers::advertise(program::Context&) {
  const std::vector<std::string>& joints = model_->joints();
  std::vector<std::string> all = joints;
  if (!model_->hand_joint().empty()) all.push_back(model_->hand_joint());
  joint_states_.message().name = all;
  auto& dynamic = dynamic_joint_states_.message();
  dynamic.joint_names = all;
  dynamic.interface_values.resize(all.size());
  for (std::size_t each = 0; each < all.size(); ++each) {
    dynamic.interface_values[each].interface_names = {"position", "velocity", "effort"};
    dynamic.interface_values[each].values.resize(3);
  }
  auto& state = controller_state_.message();
  state.joint_names = joints;
  state.speed_scaling_factor = 1.0;
  feedback_.joint_names = joints;
  publish_joint_states(snapshot_);
}

void Controllers::reset(std::span<const double> positions) { controller_.reset(positions); }

void Controllers::cycle(const Measured& measured, Nanoseconds due_ns, Nanoseconds woken_ns) noexcept {
  const program::Span::Open open = update_.begin(due_ns);
  const Nanoseconds read_ns = context_.clock().now();
  due_ns_ = due_ns;
  woken_ns_ = woken_ns;
  statistics_.hardware_read(woken_ns, read_ns);
  Nanoseconds from_ns = read_ns;
  if (const ControllerSet::Running running = set_.running(); running != running_) {
    running_ = running;
    from_ns = context_.clock().now();
    statistics_.switched(from_ns - read_ns);
  }

  controller_.update(measured.time_ns, measured.positions, measured.velocities);  // an inactive one holds
  const Nanoseconds arm_ns = context_.clock().now();
  if (ControllerSet::bit(running_, kArm)) statistics_.controller_updated(kArm, from_ns, arm_ns);

  snapshot_.due_ns = due_ns;
  snapshot_.state = controller_.state();
  std::copy(measured.efforts.begin(), measured.efforts.end(), snapshot_.efforts.begin());
  snapshot_.hand = measured.hand;
  snapshot_.hand_velocity = measured.hand_velocity;
  latest_.offer(snapshot_);
  for (const StatePublisher& each : publishers_) {
    if (ControllerSet::bit(running_, each.controller)) each.publisher->offer(snapshot_);
  }
  updated_ns_ = context_.clock().now();
  if (ControllerSet::bit(running_, kStates)) statistics_.controller_updated(kStates, arm_ns, updated_ns_);
}

void Controllers::written() noexcept {
  const Nanoseconds done_ns = context_.clock().now();
  statistics_.hardware_written(updated_ns_, done_ns);
  offer_interfaces();

  if (last_woken_ns_ != kUnknownTime) control_period_.record(woken_ns_ - last_woken_ns_, woken_ns_);
  last_woken_ns_ = woken_ns_;
  control_lateness_.record(woken_ns_ - due_ns_, woken_ns_);
  control_execution_.record(done_ns - woken_ns_, woken_ns_);
  latest_ns_ = std::max(latest_ns_, static_cast<double>(woken_ns_ - due_ns_));
  if (++cycles_ % (kFilmPeriod / kPeriod) == 0) {
    desired_.record(due_ns_, snapshot_.state.desired.positions);
    lateness_.record(due_ns_, {&latest_ns_, 1});
    latest_ns_ = 0.0;
  }
  const bool measures = due_ns_ > measured_from_ns_ && due_ns_ <= measured_until_ns_.load(std::memory_order_relaxed);
  if (measures && done_ns - due_ns_ >= kPeriod) overruns_.fetch_add(1, std::memory_order_relaxed);
}

// In the order of hardware_of().
void Controllers::offer_interfaces() noexcept {
  const TrajectoryController::State& state = snapshot_.state;
  double* to = states_.data();
  for (std::size_t joint = 0; joint < state.positions.size(); ++joint) {
    *to++ = state.positions[joint];
    *to++ = state.velocities[joint];
    *to++ = snapshot_.efforts[joint];
  }
  std::copy(state.output.begin(), state.output.end(), commands_.begin());
  if (!model_->hand_joint().empty()) {
    *to++ = snapshot_.hand;
    *to++ = snapshot_.hand_velocity;
    commands_.back() = hand_command();
  }
  manager_.offer(state.time_ns, due_ns_, statistics_.values(), states_, commands_);
}

// Its current goals end, like those of ros2_control's controllers.
void Controllers::deactivated(std::size_t controller) {
  if (controller == kArm) {
    const std::scoped_lock lock(goals_mutex_);
    for (const Open& each : open_) controller_.cancel(*each.goal);
  }
  if (controller == kHand) {
    const std::scoped_lock lock(hand_mutex_);
    if (grip_) grip_->answer.abort({});
    grip_.reset();
  }
}

void Controllers::publish_joint_states(const Snapshot& at) {
  auto& message = joint_states_.message();
  const bool hand = !model_->hand_joint().empty();
  const std::size_t arm = at.state.positions.size(), all = arm + (hand ? 1 : 0);
  for (auto* each : {&message.position, &message.velocity, &message.effort}) {
    if (each->size() != all) each->resize(all);
  }
  for (std::size_t joint = 0; joint < arm; ++joint) {
    message.position[joint] = at.state.positions[joint];
    message.velocity[joint] = at.state.velocities[joint];
    message.effort[joint] = at.efforts[joint];
  }
  if (hand) {
    message.position[arm] = at.hand;
    message.velocity[arm] = at.hand_velocity;
  }
  if (at.due_ns == 0) return;  // of advertise()
  write_stamp(at.state.time_ns, message.header.stamp);
  joint_states_.publish(at.due_ns);
}

void Controllers::publish_dynamic_joint_states(const Snapshot& at) {
  auto& message = dynamic_joint_states_.message();
  for (std::size_t joint = 0; joint < at.state.positions.size(); ++joint) {
    auto& values = message.interface_values[joint].values;
    values[0] = at.state.positions[joint];
    values[1] = at.state.velocities[joint];
    values[2] = at.efforts[joint];
  }
  if (message.interface_values.size() > at.state.positions.size()) {
    auto& values = message.interface_values.back().values;
    values[0] = at.hand;
    values[1] = at.hand_velocity;
  }
  write_stamp(at.state.time_ns, message.header.stamp);
  dynamic_joint_states_.publish(at.due_ns);
}

void Controllers::publish_controller_state(const Snapshot& at) {
  auto& message = controller_state_.message();
  write_point(at.state.desired, message.reference);
  write_point(at.state.positions, at.state.velocities, message.feedback);
  write_point(at.state.position_errors, at.state.velocity_errors, message.error);
  write_numbers(at.state.output, message.output.positions);
  write_stamp(at.state.time_ns, message.header.stamp);
  controller_state_.publish(at.due_ns);
}

Controllers::Snapshot Controllers::snapshot_of_now() const {
  Snapshot now(model_->joints().size());
  latest_.read(now);
  return now;
}

std::optional<Refusal> Controllers::plan(const FollowJointTrajectory::Goal& goal, Trajectory& trajectory,
                                         Tolerances& tolerances, std::optional<Nanoseconds>& start_ns) const {
  for (const auto& each : goal.trajectory.joint_names) trajectory.joints.push_back(each.string());
  for (const auto& point : goal.trajectory.points) {
    trajectory.points.push_back({read_stamp(point.time_from_start), vector_of(point.positions),
                                 vector_of(point.velocities), vector_of(point.accelerations)});
  }
  if (auto refusal = check(trajectory, model_->joints())) return refusal;
  start_ns.reset();
  if (const Nanoseconds stamp_ns = read_stamp(goal.trajectory.header.stamp); stamp_ns != 0) {
    if (stamp_ns + trajectory.points.back().time_ns < snapshot_of_now().state.time_ns) {
      return Refusal{TrajectoryError::kOldHeaderTimestamp, "should have ended by now"};
    }
    start_ns = stamp_ns;
  }
  const auto read = [](const auto& asked) {
    std::vector<JointTolerance> all;
    for (const auto& each : asked) all.push_back({each.name.string(), each.position, each.velocity});
    return all;
  };
  if (auto wrong = controller_.apply(read(goal.path_tolerance), read(goal.goal_tolerance),
                                     read_stamp(goal.goal_time_tolerance), tolerances)) {
    return Refusal{TrajectoryError::kInvalidGoal, "has a " + *wrong};
  }
  return std::nullopt;
}

void Controllers::accept(program::Goal<FollowJointTrajectory> goal) {
  Trajectory trajectory;
  Tolerances tolerances;
  std::optional<Nanoseconds> start_ns;
  if (const std::optional<Refusal> refusal = plan(*goal, trajectory, tolerances, start_ns)) {  // it has
                                                                                               // become too
                                                                                               // old since
                                                                                               // on_goal
    FollowJointTrajectory::Result result;
    result.error_code = static_cast<std::int32_t>(refusal->error);
    result.error_string = refusal->text;
    goal.abort(result);
    return;
  }
  const std::scoped_lock lock(goals_mutex_);
  if (!set_.active(kArm)) {  // deactivated since it was accepted
    goal.abort({});
    return;
  }
  open_.push_back({controller_.accept(trajectory, tolerances, start_ns), std::move(goal)});
  log_.info("Accepted new action goal");
}

void Controllers::monitor() {
  const std::scoped_lock lock(goals_mutex_);
  report_stops();
  // Each goal is checked once: one that the loop ends meanwhile is answered next time.
  std::erase_if(open_, [this](const Open& each) {
    if (each.goal->ended()) {
      finish(*each.goal, each.answer);
      report(*each.goal);
      if (each.goal->status() != TrajectoryGoal::Status::kSucceeded) stopping_.push_back(each.goal);
      return true;
    }
    if (each.goal->status() == TrajectoryGoal::Status::kActive) {
      latest_.read(seen_);
      write_stamp(seen_.state.time_ns, feedback_.header.stamp);
      write_point(seen_.state.desired, feedback_.desired);
      write_point(seen_.state.positions, seen_.state.velocities, feedback_.actual);
      write_point(seen_.state.position_errors, seen_.state.velocity_errors, feedback_.error);
      each.answer.feedback(feedback_);
    }
    return false;
  });
}

void Controllers::finish(const TrajectoryGoal& goal, const program::Goal<FollowJointTrajectory>& open) {
  FollowJointTrajectory::Result result;
  result.error_code = static_cast<std::int32_t>(goal.error());
  const std::string reason = goal.reason(model_->joints());
  result.error_string = reason;
  switch (goal.status()) {
    case TrajectoryGoal::Status::kSucceeded:
      open.succeed(result);
      log_.info("Goal reached, success!");
      return;
    case TrajectoryGoal::Status::kCanceled:
      // No client requested the cancellation of a goal replaced by another, so it can only be aborted.
      if (!open.canceled(result)) open.abort(result);
      return;
    default:
      open.abort(result);
      log_.warn("Aborted: " + reason);
      context_.outcome(goal.error() == TrajectoryError::kPathToleranceViolated ? "path_tolerance" : "goal_tolerance",
                       reason);
  }
}

void Controllers::report(const TrajectoryGoal& goal) {
  if (goal.started_ns() == kUnknownTime || !is_measured(goal)) return;
  context_.figure("execution_controller", seconds(goal.ended_ns() - goal.started_ns()));
  context_.figure("tracking_rms", goal.tracking().rms());
  context_.figure("tracking_max", goal.tracking().most);
  if (goal.status() != TrajectoryGoal::Status::kSucceeded) return;
  context_.figure("settling", seconds(goal.settling_ns()));
  context_.figure("path_length", goal.tracking().path_length);
  // A motion to the current position has no ratio.
  const double straight = distance(goal.from(), goal.spline().goal());
  if (straight > 1e-3) context_.figure("path_ratio", goal.tracking().path_length / straight);
}

bool Controllers::is_measured(const TrajectoryGoal& goal) const {
  constexpr double kThere = 2e-3;  // rad; a joint goal has a tolerance
  return std::none_of(unmeasured_.begin(), unmeasured_.end(), [&](const Positions& state) {
    return std::equal(state.begin(), state.end(), goal.spline().goal().begin(),
                      [](double one, double other) { return std::abs(one - other) < kThere; });
  });
}

void Controllers::report_stops() {
  std::erase_if(stopping_, [this](const std::shared_ptr<TrajectoryGoal>& goal) {
    if (!goal->stopped()) return false;
    State state(model_);
    state.set(goal->stop().from);
    const Eigen::Vector3d from = state.pose(model_->tip()).translation();
    state.set(goal->stop().farthest);
    context_.figure("stop_latency", seconds(goal->stop().until_ns - goal->stop().from_ns));
    context_.figure("stopping_distance", (state.pose(model_->tip()).translation() - from).norm());
    return true;
  });
}

// The process ends while a goal is being followed.
void Controllers::tell_unended(const TrajectoryGoal& goal) {
  if (goal.status() != TrajectoryGoal::Status::kActive || goal.duration() <= 0) return;
  const Nanoseconds elapsed = snapshot_of_now().state.time_ns - goal.started_ns();
  context_.outcome("unended_execution", "at " + std::to_string(100 * elapsed / goal.duration()) + " % of a trajectory of " +
                                            milliseconds_text(goal.duration()));
}

void Controllers::monitor_hand() {
  const std::scoped_lock lock(hand_mutex_);
  if (!grip_) return;
  latest_.read(hand_seen_);
  GripperCommand::Result result;
  result.position = hand_seen_.hand;
  result.reached_goal = std::abs(hand_seen_.hand - grip_->position) <= kHandTolerance;
  grip_->quiet = std::abs(hand_seen_.hand_velocity) <= kHandStandstill ? grip_->quiet + 1 : 0;
  result.stalled = !result.reached_goal && grip_->quiet >= kHandQuiet;
  if (!result.reached_goal && !result.stalled) return;
  grip_->answer.succeed(result);
  grip_.reset();
}

void Controllers::start(const program::Start& start) {
  measured_from_ns_ = start.measured_from_ns;
  manager_.start();
}
void Controllers::end(Nanoseconds at_ns) noexcept { measured_until_ns_.store(at_ns, std::memory_order_relaxed); }

void Controllers::stop() {
  manager_.stop();
  for (const StatePublisher& each : publishers_) each.publisher->stop();
  {
    const std::scoped_lock lock(goals_mutex_);
    report_stops();
    for (const Open& each : open_) tell_unended(*each.goal);
  }
  context_.figure("overruns", static_cast<double>(overruns_.load(std::memory_order_relaxed)));
}

}  // namespace perflab::manipulation
