// Each way in which an execution can end, with a controller scripted by the test.
#include "manipulation/move_group/execution.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "support.h"

namespace perflab::manipulation {
namespace {

class Double final : public Controller {
 public:
  bool can_send = true;
  std::optional<bool> answer = true;
  std::optional<Result> result = Result{Status::kSucceeded, 0, ""};
  std::optional<Result> when_cancelled = Result{Status::kCanceled, 0, ""};
  std::function<void()> after_answer;

  bool send(const planning::Trajectory&, Handlers handlers) override {
    if (!can_send) return false;
    handlers_ = std::move(handlers);
    threads_.emplace_back([this] {
      if (!answer) return;
      handlers_.on_answer(*answer);
      if (after_answer) after_answer();
      if (*answer && result) handlers_.on_result(*result);
    });
    return true;
  }
  void cancel() override {
    ++cancelled;
    if (when_cancelled) threads_.emplace_back([this] { handlers_.on_result(*when_cancelled); });
  }
  void join() { threads_.clear(); }

  std::atomic<int> cancelled{0};

 private:
  Handlers handlers_;
  std::vector<std::jthread> threads_;
};

// The arm stands at `ready`, and reports that whenever the clock advances, as long as enabled.
class Stack {
 public:
  Stack() : model(panda()), clock(true), monitor(model, clock) {
    const planning::Joints start = planning::joints_of(model->named_state("ready"));
    const planning::Joints zero = planning::Joints::Zero(7);
    trajectory.points = {{0.0, start, zero, zero}, {0.1, start + planning::Joints::Constant(7, 0.01), zero, zero}};
    tick();
    ticking_ = std::jthread([this](const std::stop_token& token) {
      while (!token.stop_requested()) {
        tick();
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    });
  }

  Ending run(const std::function<std::optional<std::string>(double)>& blocked = {}) {
    const Ending ending = execution().run(trajectory, {{}, [this] { return cancelled.load(); }, blocked});
    controller.join();
    return ending;
  }
  Execution& execution() {
    if (!execution_) execution_.emplace(model, clock, monitor, controller, settings);
    return *execution_;
  }

  const std::shared_ptr<const Model> model;
  SimClock clock;
  StateMonitor monitor;
  Double controller;
  ExecutionSettings settings;
  planning::Trajectory trajectory;
  std::atomic<bool> says_state{true};
  std::atomic<bool> cancelled{false};
  std::atomic<int> fast{1};  // speed of the clock relative to wall time

 private:
  void tick() {
    now_ += fast.load() * 2'000'000;
    clock.set(now_, 0);
    if (!says_state.load()) return;
    auto message = joint_state(*model, model->named_state("ready"), 0);
    message.header.stamp.sec = static_cast<std::int32_t>(now_ / kNanosecondsPerSecond);
    message.header.stamp.nanosec = static_cast<std::uint32_t>(now_ % kNanosecondsPerSecond);
    monitor.take(message, 0);
  }
  Nanoseconds now_ = kNanosecondsPerSecond;
  std::optional<Execution> execution_;
  std::jthread ticking_;
};

TEST(Execution, SucceedsOnceTheArmStandsStill) {
  Stack stack;
  EXPECT_EQ(stack.run().label, "SUCCESS");
  const ExecutionTimes& times = stack.execution().times();
  for (const Nanoseconds took : {times.state_wait, times.accept, times.result, times.standstill}) EXPECT_GE(took, 0);
  EXPECT_EQ(stack.run().label, "SUCCESS") << "and again";
}

TEST(Execution, RefusesToStartElsewhere) {
  Stack stack;
  stack.trajectory.points.front().position[4] += 0.02;
  const Ending ending = stack.run();
  EXPECT_EQ(ending.label, "CONTROL_FAILED");
  EXPECT_EQ(ending.branch, "start_deviation");
  EXPECT_NE(ending.message.find("panda_joint5"), std::string::npos) << ending.message;
  stack.trajectory.points.front().position[4] -= 0.011;
  EXPECT_EQ(stack.run().label, "SUCCESS");
}

TEST(Execution, NeedsAFreshState) {
  Stack stack;
  stack.says_state.store(false);
  stack.fast.store(10);
  // The tick after this one no longer reports a state.
  const Nanoseconds last = stack.clock.now();
  while (stack.clock.now() == last) std::this_thread::yield();
  const Ending ending = stack.run();
  EXPECT_EQ(ending.label, "CONTROL_FAILED");
  EXPECT_EQ(ending.branch, "no_state");
}

TEST(Execution, EachAnswerAndResultOfTheControllerHasItsBranch) {
  struct Case {
    bool can_send;
    std::optional<bool> answer;
    Controller::Result result;
    const char* branch;
  };
  using Status = Controller::Status;
  for (const Case& each : std::initializer_list<Case>{{false, true, {}, "server_not_ready"},
                                                      {true, std::nullopt, {}, "server_not_ready"},
                                                      {true, false, {}, "goal_rejected"},
                                                      {true, true, {Status::kUnknown, 0, ""}, "result_unknown"},
                                                      {true, true, {Status::kAborted, -4, "too far"}, "path_tolerance"},
                                                      {true, true, {Status::kAborted, -5, "too far"}, "goal_tolerance"},
                                                      {true, true, {Status::kAborted, -2, ""}, "goal_rejected"},
                                                      {true, true, {Status::kAborted, 0, ""}, "goal_aborted"},
                                                      {true, true, {Status::kCanceled, 0, ""}, "goal_canceled"}}) {
    Stack stack;
    stack.settings.answer_limit = 50'000'000;
    stack.controller.can_send = each.can_send;
    stack.controller.answer = each.answer;
    stack.controller.result = each.result;
    const Ending ending = stack.run();
    EXPECT_EQ(ending.label, "CONTROL_FAILED") << each.branch;
    EXPECT_EQ(ending.branch, each.branch);
    EXPECT_FALSE(ending.message.empty());
  }
}

TEST(Execution, TimesOutByTheClockOfTheSimulationAndCancels) {
  Stack stack;
  stack.controller.result.reset();
  stack.fast.store(10);
  const Ending ending = stack.run();
  EXPECT_EQ(ending.label, "TIMED_OUT");
  EXPECT_EQ(ending.branch, "execution_timeout");
  EXPECT_EQ(stack.controller.cancelled.load(), 1);
}

TEST(Execution, IsStoppedAndWaitsForTheControllerToSaySo) {
  Stack stack;
  stack.controller.result.reset();
  stack.controller.after_answer = [&] { stack.cancelled.store(true); };
  const Ending ending = stack.run();
  EXPECT_EQ(ending.label, "PREEMPTED");
  EXPECT_EQ(stack.controller.cancelled.load(), 1);
}

TEST(Execution, WhatWasCancelledBeforeItBeganIsNotDriven) {
  Stack stack;
  stack.controller.result.reset();
  stack.cancelled.store(true);
  EXPECT_EQ(stack.run().label, "PREEMPTED");
}

TEST(Execution, EndsWhereTheWayIsBlocked) {
  Stack stack;
  stack.controller.result.reset();
  const Ending ending = stack.run([](double) { return std::optional<std::string>("a crate stands in the way"); });
  EXPECT_EQ(ending.label, "MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE");
  EXPECT_EQ(ending.branch, "would_collide");
  EXPECT_EQ(stack.controller.cancelled.load(), 1);
}

TEST(Execution, IsAbandonedAlsoWhereNothingAnswersAndTheClockStandsStill) {
  Stack stack;
  stack.controller.result.reset();
  stack.controller.when_cancelled.reset();
  stack.controller.after_answer = [&] {
    stack.fast.store(0);
    stack.execution().abandon();
  };
  EXPECT_EQ(stack.run().label, "PREEMPTED");
}

}  // namespace
}  // namespace perflab::manipulation
