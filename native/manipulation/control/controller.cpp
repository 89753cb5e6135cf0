#include "manipulation/control/controller.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace perflab::manipulation {
namespace {

constexpr double kSecondsPerNanosecond = 1e-9;
constexpr double kRounding = 1e-12;  // rad

double distance_between(std::span<const double> first, std::span<const double> second) noexcept {
  double sum = 0.0;
  for (std::size_t joint = 0; joint < first.size(); ++joint) {
    sum += (first[joint] - second[joint]) * (first[joint] - second[joint]);
  }
  return std::sqrt(sum);
}

void copy(std::span<const double> from, std::vector<double>& to) noexcept {
  std::copy(from.begin(), from.end(), to.begin());
}

// Sets a tolerance from a goal: 0 keeps `own`, -1 means none.
bool take(double asked, double& own) noexcept {
  if (asked == 0.0) return true;
  if (asked == -1.0) {
    own = 0.0;
    return true;
  }
  if (!(asked > 0.0)) return false;
  own = asked;
  return true;
}

}  // namespace

double Tracking::rms() const noexcept {
  return samples == 0 ? 0.0 : std::sqrt(square_sum / static_cast<double>(samples));
}

TrajectoryGoal::TrajectoryGoal(Spline spline, Tolerances tolerances, std::optional<Nanoseconds> start_ns)
    : start_ns_(start_ns), spline_(std::move(spline)), tolerances_(std::move(tolerances)) {
  from_.resize(spline_.joints());
  stop_.from.resize(spline_.joints());
  stop_.until.resize(spline_.joints());
  stop_.farthest.resize(spline_.joints());
}

std::string TrajectoryGoal::reason(std::span<const std::string> joints) const {
  if (!ended() || status() == Status::kSucceeded) return "";
  if (error_ == TrajectoryError::kSuccessful) return "cancelled by its client";
  if (error_ == TrajectoryError::kInvalidGoal) return "another goal replaced it";
  const std::string which = joints[joint_] + " is off by " + std::to_string(deviation_);
  return error_ == TrajectoryError::kPathToleranceViolated ? which + " on the way" : which + " at the end";
}

TrajectoryController::TrajectoryController(Settings settings) : settings_(std::move(settings)) {
  const std::size_t joints = settings_.joints.size();
  if (settings_.limits.size() != joints) throw std::invalid_argument("limits for another number of joints");
  tolerances_.path_positions.assign(joints, settings_.path_tolerance);
  tolerances_.path_velocities.assign(joints, 0.0);
  tolerances_.goal_positions.assign(joints, settings_.goal_tolerance);
  tolerances_.goal_velocities.assign(joints, settings_.stopped_velocity_tolerance);
  tolerances_.goal_time_ns = settings_.goal_time_ns;
  state_.desired = JointState(joints);
  start_ = JointState(joints);
  for (std::vector<double>* each : {&state_.positions, &state_.velocities, &state_.position_errors,
                                    &state_.velocity_errors, &state_.output, &output_before_, &hold_, &before_, &slowing_from_,
                                    &slowing_velocity_}) {
    each->resize(joints);
  }
}

std::optional<std::string> TrajectoryController::apply(const std::vector<JointTolerance>& path,
                                                       const std::vector<JointTolerance>& goal,
                                                       Nanoseconds goal_time_ns, Tolerances& tolerances) const {
  tolerances = tolerances_;
  const auto each_of = [&](const std::vector<JointTolerance>& asked, std::vector<double>& positions,
                           std::vector<double>& velocities) -> std::optional<std::string> {
    for (const JointTolerance& each : asked) {
      const auto found = std::find(settings_.joints.begin(), settings_.joints.end(), each.joint);
      if (found == settings_.joints.end()) return "tolerance for " + each.joint + ", which is not a joint of the arm";
      const auto joint = static_cast<std::size_t>(found - settings_.joints.begin());
      if (!take(each.position, positions[joint]) || !take(each.velocity, velocities[joint])) {
        return "tolerance for " + each.joint + " is negative and not -1";
      }
    }
    return std::nullopt;
  };
  if (auto wrong = each_of(path, tolerances.path_positions, tolerances.path_velocities)) return wrong;
  if (auto wrong = each_of(goal, tolerances.goal_positions, tolerances.goal_velocities)) return wrong;
  if (goal_time_ns != 0) tolerances.goal_time_ns = std::max<Nanoseconds>(goal_time_ns, 0);
  return std::nullopt;
}

std::shared_ptr<TrajectoryGoal> TrajectoryController::accept(const Trajectory& trajectory, const Tolerances& tolerances,
                                                             std::optional<Nanoseconds> start_ns) {
  const std::shared_ptr<TrajectoryGoal> goal(
      new TrajectoryGoal(Spline(sorted(trajectory, settings_.joints)), tolerances, start_ns));
  const std::scoped_lock lock(accepting_);
  std::erase_if(goals_, [](const auto& each) { return each->retired_.load(std::memory_order_acquire); });
  goals_.push_back(goal);
  TrajectoryGoal* const unseen = incoming_.exchange(goal.get(), std::memory_order_acq_rel);
  if (unseen != nullptr) {  // the loop never saw it
    unseen->error_ = TrajectoryError::kInvalidGoal;
    unseen->status_.store(Status::kCanceled, std::memory_order_release);
    unseen->retired_.store(true, std::memory_order_release);
  }
  return goal;
}

bool TrajectoryController::cancel(TrajectoryGoal& goal) noexcept {
  goal.cancel_.store(true, std::memory_order_release);
  return !goal.ended();
}

void TrajectoryController::reset(std::span<const double> positions) noexcept {
  copy(positions, hold_);
  copy(positions, state_.output);
  copy(positions, output_before_);
  copy(positions, before_);
  mode_ = Mode::kHold;
  last_update_ns_ = kUnknownTime;
}

void TrajectoryController::update(Nanoseconds now_ns, std::span<const double> positions,
                                  std::span<const double> velocities) noexcept {
  state_.time_ns = now_ns;
  copy(positions, state_.positions);
  copy(velocities, state_.velocities);
  TrajectoryGoal* const goal = incoming_.exchange(nullptr, std::memory_order_acq_rel);
  if (goal != nullptr) take_over(*goal, now_ns);
  if (active_ != nullptr && active_->cancel_.load(std::memory_order_acquire)) {
    stopping_ = active_;
    begin_to_stop(now_ns, settings_.on_cancel);
    end(Status::kCanceled, TrajectoryError::kSuccessful, now_ns);
  }
  if (mode_ == Mode::kFollow) {
    follow(now_ns);
  } else {
    if (mode_ == Mode::kDecelerate) {
      decelerate(now_ns);
    } else {
      copy(hold_, state_.desired.positions);
      std::fill(state_.desired.velocities.begin(), state_.desired.velocities.end(), 0.0);
      std::fill(state_.desired.accelerations.begin(), state_.desired.accelerations.end(), 0.0);
    }
    find_errors();
  }
  limit(now_ns);
  watch_the_stop(now_ns);
  last_update_ns_ = now_ns;
  copy(state_.positions, before_);
}

void TrajectoryController::take_over(TrajectoryGoal& goal, Nanoseconds now_ns) noexcept {
  if (active_ != nullptr) end(Status::kCanceled, TrajectoryError::kInvalidGoal, now_ns);
  if (stopping_ != nullptr) {  // it never came to a standstill
    stopping_->retired_.store(true, std::memory_order_release);
    stopping_ = nullptr;
  }
  active_ = &goal;
  mode_ = Mode::kFollow;
  first_sample_ = true;
  copy(state_.positions, start_.positions);
  copy(state_.velocities, start_.velocities);
  goal.started_ns_ = goal.start_ns_.value_or(now_ns);
  copy(state_.positions, goal.from_);
  copy(state_.positions, before_);
  goal.status_.store(Status::kActive, std::memory_order_release);
}

void TrajectoryController::end(Status status, TrajectoryError error, Nanoseconds now_ns) noexcept {
  TrajectoryGoal& goal = *active_;
  active_ = nullptr;
  goal.error_ = error;
  goal.ended_ns_ = now_ns;
  const bool is_watched = stopping_ == &goal;
  goal.status_.store(status, std::memory_order_release);
  if (!is_watched) goal.retired_.store(true, std::memory_order_release);
}

bool TrajectoryController::within(std::span<const double> errors, std::span<const double> tolerances) noexcept {
  for (std::size_t joint = 0; joint < errors.size(); ++joint) {
    if (tolerances[joint] > 0.0 && std::abs(errors[joint]) > tolerances[joint]) {
      outside_ = joint;
      deviation_ = errors[joint];
      return false;
    }
  }
  return true;
}

void TrajectoryController::find_errors() noexcept {
  for (std::size_t joint = 0; joint < state_.positions.size(); ++joint) {
    state_.position_errors[joint] = state_.desired.positions[joint] - state_.positions[joint];
    state_.velocity_errors[joint] = state_.desired.velocities[joint] - state_.velocities[joint];
  }
}

void TrajectoryController::follow(Nanoseconds now_ns) noexcept {
  TrajectoryGoal& goal = *active_;
  const Nanoseconds time_ns = std::max<Nanoseconds>(now_ns - goal.started_ns_, 0);
  bool before_last = true;
  if (now_ns < goal.started_ns_) {
    copy(start_.positions, state_.desired.positions);
    std::fill(state_.desired.velocities.begin(), state_.desired.velocities.end(), 0.0);
    std::fill(state_.desired.accelerations.begin(), state_.desired.accelerations.end(), 0.0);
  } else {
    before_last = goal.spline_.sample(time_ns, start_, state_.desired);
  }
  find_errors();
  for (const double error : state_.position_errors) {
    goal.tracking_.square_sum += error * error;
    goal.tracking_.most = std::max(goal.tracking_.most, std::abs(error));
  }
  goal.tracking_.samples += state_.position_errors.size();
  goal.tracking_.path_length += distance_between(state_.positions, before_);

  // A trajectory with a single point due immediately is checked here as well.
  const bool on_the_way = before_last || first_sample_;
  first_sample_ = false;
  const auto abort_with = [&](TrajectoryError error) {
    goal.joint_ = outside_;
    goal.deviation_ = deviation_;
    stopping_ = &goal;
    begin_to_stop(now_ns, OnCancel::kHold);
    copy(hold_, state_.desired.positions);
    std::fill(state_.desired.velocities.begin(), state_.desired.velocities.end(), 0.0);
    std::fill(state_.desired.accelerations.begin(), state_.desired.accelerations.end(), 0.0);
    end(Status::kAborted, error, now_ns);
  };
  const Tolerances& tolerances = goal.tolerances_;
  if (on_the_way && !(within(state_.position_errors, tolerances.path_positions) &&
                      within(state_.velocity_errors, tolerances.path_velocities))) {
    abort_with(TrajectoryError::kPathToleranceViolated);
    return;
  }
  if (before_last) return;
  if (within(state_.position_errors, tolerances.goal_positions) &&
      within(state_.velocity_errors, tolerances.goal_velocities)) {
    copy(state_.desired.positions, hold_);
    mode_ = Mode::kHold;
    end(Status::kSucceeded, TrajectoryError::kSuccessful, now_ns);
    return;
  }
  if (tolerances.goal_time_ns != 0 && time_ns - goal.duration() > tolerances.goal_time_ns) {
    abort_with(TrajectoryError::kGoalToleranceViolated);
  }
}

void TrajectoryController::begin_to_stop(Nanoseconds now_ns, OnCancel how) noexcept {
  stopping_->stop_.from_ns = now_ns;
  copy(state_.positions, stopping_->stop_.from);
  copy(state_.positions, stopping_->stop_.farthest);
  swung_ = 0.0;
  copy(state_.positions, hold_);
  mode_ = Mode::kHold;
  if (how == OnCancel::kHold) return;
  // Continues from the last command, so that the command does not jump.
  slowing_for_ = 0.0;
  for (std::size_t joint = 0; joint < hold_.size(); ++joint) {
    slowing_from_[joint] = state_.output[joint];
    slowing_velocity_[joint] = state_.desired.velocities[joint];
    slowing_for_ = std::max(slowing_for_, std::abs(slowing_velocity_[joint]) / settings_.limits[joint].acceleration);
  }
  slowing_since_ns_ = last_update_ns_ == kUnknownTime ? now_ns : last_update_ns_;
  mode_ = Mode::kDecelerate;
}

void TrajectoryController::decelerate(Nanoseconds now_ns) noexcept {
  const double since = static_cast<double>(now_ns - slowing_since_ns_) * kSecondsPerNanosecond;
  const double t = std::min(since, slowing_for_);
  for (std::size_t joint = 0; joint < hold_.size(); ++joint) {
    const double acceleration = slowing_for_ > 0.0 ? -slowing_velocity_[joint] / slowing_for_ : 0.0;
    state_.desired.positions[joint] =
        slowing_from_[joint] + t * (slowing_velocity_[joint] + 0.5 * t * acceleration);
    state_.desired.velocities[joint] = slowing_velocity_[joint] + t * acceleration;
    state_.desired.accelerations[joint] = since < slowing_for_ ? acceleration : 0.0;
  }
  if (since < slowing_for_) return;
  copy(state_.desired.positions, hold_);
  mode_ = Mode::kHold;
}

void TrajectoryController::watch_the_stop(Nanoseconds now_ns) noexcept {
  if (stopping_ == nullptr) return;
  TrajectoryGoal::Stop& stop = stopping_->stop_;
  if (const double swung = distance_between(state_.positions, stop.from); swung > swung_) {
    swung_ = swung;
    copy(state_.positions, stop.farthest);
  }
  if (mode_ == Mode::kDecelerate) return;
  const double standstill = settings_.stopped_velocity_tolerance;
  for (const double velocity : state_.velocities) {
    if (std::abs(velocity) > standstill) return;
  }
  TrajectoryGoal& goal = *stopping_;
  stopping_ = nullptr;
  goal.stop_.until_ns = now_ns;
  copy(state_.positions, goal.stop_.until);
  goal.stopped_.store(true, std::memory_order_release);
  goal.retired_.store(true, std::memory_order_release);
}

// Like ros2_control's joint limits for commands of a controller: limited to the range, and to the distance
// that the velocity limit allows in one cycle.
void TrajectoryController::limit(Nanoseconds now_ns) noexcept {
  const bool first = last_update_ns_ == kUnknownTime;
  const double period = first ? 0.0 : static_cast<double>(std::max<Nanoseconds>(now_ns - last_update_ns_, 0)) * kSecondsPerNanosecond;
  bool cut = false;
  for (std::size_t joint = 0; joint < settings_.limits.size(); ++joint) {
    const Limits& limits = settings_.limits[joint];
    const double asked = state_.desired.positions[joint];
    double given = std::clamp(asked, limits.lower, limits.upper);
    if (!first) {
      const double furthest = limits.velocity * period;
      given = std::clamp(given, output_before_[joint] - furthest, output_before_[joint] + furthest);
    }
    cut = cut || std::abs(given - asked) > kRounding;
    state_.output[joint] = given;
  }
  limited_ += cut ? 1 : 0;
  copy(state_.output, output_before_);
}

}  // namespace perflab::manipulation
