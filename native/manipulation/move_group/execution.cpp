#include "manipulation/move_group/execution.h"

#include <chrono>
#include <cmath>
#include <thread>

#include "messages/control_msgs/action/follow_joint_trajectory.h"

namespace perflab::manipulation {
namespace {

using Codes = messages::control_msgs::action::FollowJointTrajectory_Result;

Ending failed(std::string branch, std::string message) {
  return {"CONTROL_FAILED", std::move(branch), std::move(message)};
}

Nanoseconds now() noexcept { return read_clock(CLOCK_MONOTONIC); }

Nanoseconds nanoseconds(double seconds) {
  return static_cast<Nanoseconds>(std::llround(seconds * static_cast<double>(kNanosecondsPerSecond)));
}

double seconds(Nanoseconds time) { return static_cast<double>(time) / static_cast<double>(kNanosecondsPerSecond); }

// The reason behind MoveIt's CONTROL_FAILED, from the controller's result.
Ending ending_of(const Controller::Result& result) {
  switch (result.status) {
    case Controller::Status::kSucceeded: return {};
    case Controller::Status::kUnknown: return failed("result_unknown", "the controller does not know the goal that it took");
    case Controller::Status::kCanceled:
      return failed("goal_canceled", "the controller's goal was cancelled by another client");
    case Controller::Status::kAborted: break;
  }
  const std::string text = result.error_text.empty() ? "the controller gave no reason" : result.error_text;
  switch (result.error_code) {
    case Codes::PATH_TOLERANCE_VIOLATED: return failed("path_tolerance", text);
    case Codes::GOAL_TOLERANCE_VIOLATED: return failed("goal_tolerance", text);
    case Codes::INVALID_GOAL:
    case Codes::INVALID_JOINTS:
    case Codes::OLD_HEADER_TIMESTAMP: return failed("goal_rejected", text);
    default: return failed("goal_aborted", text);
  }
}

}  // namespace

// State filled in by the controller's handlers, which may come when nobody waits any more.
struct Execution::Exchange {
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<bool> accepted;
  std::optional<Controller::Result> result;
  Nanoseconds answered_ns = kUnknownTime;
  Nanoseconds ended_ns = kUnknownTime;
};

Execution::Execution(std::shared_ptr<const Model> model, const SimClock& clock, const StateMonitor& monitor,
                     Controller& controller, const ExecutionSettings& settings)
    : model_(std::move(model)), clock_(clock), monitor_(monitor), controller_(controller), settings_(settings) {}

Ending Execution::run(const planning::Trajectory& trajectory, const Watch& watch) {
  times_ = {};
  cancelled_.store(false);
  started_.store(0);
  sent_ = false;
  ended_ = false;
  Ending ending;
  std::exception_ptr thrown;
  std::atomic<bool> done{false};
  std::jthread thread([&] {
    try {
      if (watch.begin_thread) watch.begin_thread();
      ending = execute(trajectory);
    } catch (...) {
      thrown = std::current_exception();
    }
    done.store(true);
  });
  std::optional<Ending> early;
  for (Nanoseconds due = now() + settings_.poll;; due += settings_.poll) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(due - now()));
    if (due < now()) due = now();  // like WallRate: missed cycles are skipped
    if (done.load()) break;
    if (early) continue;
    if (abandoned_.load() || (watch.cancelled && watch.cancelled())) {
      early = Ending{"PREEMPTED", "preempted", "the motion was cancelled"};
    } else if (watch.blocked && started_.load() > 0) {
      if (const auto wrong = watch.blocked(seconds(clock_.now() - started_.load()))) {
        early = Ending{"MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE", "would_collide", *wrong};
      }
    }
    if (early) cancel();
  }
  thread.join();
  started_.store(0);
  if (thrown) std::rethrow_exception(thrown);
  return early ? *early : ending;
}

std::optional<Nanoseconds> Execution::elapsed() const noexcept {
  const Nanoseconds started = started_.load();
  return started > 0 ? std::optional(clock_.now() - started) : std::nullopt;
}

void Execution::cancel() {
  const std::scoped_lock lock(sending_);
  ended_ = true;
  cancelled_.store(true);
  if (sent_) controller_.cancel();
}

Ending Execution::execute(const planning::Trajectory& trajectory) {
  if (auto differs = start_differs(trajectory)) return *differs;
  const Ending ending = follow(trajectory);
  if (ending.label == "SUCCESS") wait_for_standstill();
  return ending;
}

std::optional<Ending> Execution::start_differs(const planning::Trajectory& trajectory) {
  if (settings_.start_tolerance <= 0.0) return std::nullopt;
  const Nanoseconds begin = now();
  const bool fresh = monitor_.wait_for(clock_.now(), kStateWait);
  times_.state_wait = now() - begin;
  const std::optional<ArmState> current = monitor_.current();
  if (!fresh || !current) return failed("no_state", "no state of the joints that is newer than the start came within 1 s");
  const Positions first = planning::positions_of(trajectory.points.front().position);
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double apart = std::abs(first[i] - current->positions[i]);
    if (apart <= settings_.start_tolerance) continue;
    return failed("start_deviation", model_->joints()[i] + " is " + std::to_string(apart) + " rad from where the motion starts");
  }
  return std::nullopt;
}

Ending Execution::follow(const planning::Trajectory& trajectory) {
  const auto exchange = std::make_shared<Exchange>();
  Controller::Handlers handlers;
  handlers.on_answer = [exchange](bool accepted) {
    const std::scoped_lock lock(exchange->mutex);
    exchange->accepted = accepted;
    exchange->answered_ns = now();
    exchange->changed.notify_all();
  };
  handlers.on_result = [exchange](const Controller::Result& result) {
    const std::scoped_lock lock(exchange->mutex);
    exchange->result = result;
    exchange->ended_ns = now();
    exchange->changed.notify_all();
  };
  const Nanoseconds sent = now();
  {
    const std::scoped_lock lock(sending_);
    if (ended_) return {};  // run() has the reason
    if (!controller_.send(trajectory, std::move(handlers))) {
      return failed("server_not_ready", "the goal could not be sent to the controller");
    }
    sent_ = true;
  }
  std::unique_lock lock(exchange->mutex);
  exchange->changed.wait_for(lock, std::chrono::nanoseconds(settings_.answer_limit),
                             [&] { return exchange->accepted.has_value(); });
  if (!exchange->accepted) return failed("server_not_ready", "the controller did not answer the goal");
  times_.accept = exchange->answered_ns - sent;
  if (!*exchange->accepted) return failed("goal_rejected", "the controller rejected the goal");

  const Nanoseconds start = clock_.now();
  started_.store(start);
  const Nanoseconds limit = nanoseconds(settings_.duration_scaling * trajectory.duration() + settings_.duration_margin);
  Nanoseconds give_up = kUnknownTime;  // when to stop waiting for the result of a cancelled goal
  while (!exchange->result) {
    exchange->changed.wait_for(lock, std::chrono::nanoseconds(settings_.result_poll));
    if (exchange->result || abandoned_.load()) break;
    if (clock_.now() - start > limit) {
      lock.unlock();
      cancel();
      return {"TIMED_OUT", "execution_timeout",
              "the controller took longer than " + std::to_string(seconds(limit)) + " s"};
    }
    if (!cancelled_.load()) continue;
    if (give_up == kUnknownTime) give_up = now() + settings_.answer_limit;
    if (now() > give_up) break;
  }
  if (!exchange->result) return {};  // run() has the reason
  times_.result = exchange->ended_ns - exchange->answered_ns;
  return ending_of(*exchange->result);
}

// Three nearly equal states in a row, within a second; failing that is not an error (as in MoveIt).
void Execution::wait_for_standstill() {
  if (settings_.start_tolerance <= 0.0) return;
  const Nanoseconds begin = now();
  std::optional<ArmState> before = monitor_.current();
  int unchanged = 0;
  while (unchanged < 3) {
    const Nanoseconds left = kNanosecondsPerSecond - (now() - begin);
    if (left <= 0 || !monitor_.wait_for(clock_.now(), left)) return;
    const std::optional<ArmState> current = monitor_.current();
    if (!before || !current) return;
    bool moved = false;
    for (std::size_t i = 0; i < current->positions.size(); ++i) {
      moved = moved || std::abs(current->positions[i] - before->positions[i]) > settings_.start_tolerance;
    }
    unchanged = moved ? 0 : unchanged + 1;
    before = current;
  }
  times_.standstill = now() - begin;
}

}  // namespace perflab::manipulation
