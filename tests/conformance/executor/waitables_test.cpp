// Waitables: triggers from threads of no executor, and which thread runs what.
#include "fixture.h"

namespace perflab::runtime::conformance {
namespace {

class Answers final : public WaitableHandler {
 public:
  void on_triggered(Nanoseconds due_ns) noexcept override {
    const Alone alone(running_);
    entered_.fetch_add(1);
    if (on_each) on_each(due_ns);
    executed_.fetch_add(1);
  }
  void on_coalesced(Nanoseconds) noexcept override { coalesced_.fetch_add(1); }
  std::size_t entered() const { return entered_; }
  std::size_t executed() const { return executed_; }
  std::size_t coalesced() const { return coalesced_; }

  std::function<void(Nanoseconds)> on_each;

 private:
  std::atomic<std::size_t> entered_{0}, executed_{0}, coalesced_{0};
  std::atomic<bool> running_{false};
};

class Waitables : public AnyExecutor {};

// An executor that is about to wait must not miss it.
TEST_P(Waitables, ATriggerWakesAnExecutorThatWaits) {
  constexpr std::size_t kTriggers = 3'000;
  Answers answers;
  Waitable& one = runtime().create_waitable(executor(), {"one", 0}, answers);
  runtime().start(clock_.now());
  for (std::size_t i = 1; i <= kTriggers; ++i) {
    one.trigger(static_cast<Nanoseconds>(i));
    while (answers.executed() < i) {
      ASSERT_TRUE(eventually([&] { return answers.executed() >= i; })) << "trigger " << i;
    }
  }
  runtime().stop();
  EXPECT_EQ(answers.executed(), kTriggers);
  EXPECT_EQ(answers.coalesced(), 0u);
}

TEST_P(Waitables, EveryTriggerOfManyThreadsIsAnsweredOnce) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kTriggers = 5'000;
  Answers answers;
  // What was set before the last trigger is seen by its callback.
  std::array<std::atomic<std::size_t>, kThreads> set{};
  std::array<std::size_t, kThreads> seen{};
  answers.on_each = [&](Nanoseconds) {
    for (std::size_t t = 0; t < kThreads; ++t) seen[t] = set[t].load(std::memory_order_relaxed);
  };
  Waitable& one = runtime().create_waitable(executor(3), {"one", 0}, answers);
  runtime().start(clock_.now());
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 1; i <= kTriggers; ++i) {
        set[t].store(i, std::memory_order_relaxed);
        one.trigger(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return answers.executed() + answers.coalesced() == kThreads * kTriggers; }));
  runtime().stop();
  EXPECT_EQ(answers.executed() + answers.coalesced(), kThreads * kTriggers);
  for (const std::size_t last : seen) EXPECT_EQ(last, kTriggers);
}

// ... nor does who triggers, with inline another thread than the one that runs the callback, wait for it.
TEST_P(Waitables, NobodyWaitsForTheCallbackThatHeTriggers) {
  Answers answers;
  Gate gate;
  answers.on_each = [&](Nanoseconds due) {
    if (due == 1) gate.pass();
  };
  Waitable& one = runtime().create_waitable(executor(), {"one", 0}, answers);
  runtime().start(clock_.now());
  std::thread first([&] { one.trigger(1); });
  EXPECT_TRUE(eventually([&] { return answers.entered() == 1; }));
  for (Nanoseconds due = 2; due <= 5; ++due) one.trigger(due);
  EXPECT_EQ(answers.executed(), 0u);
  EXPECT_EQ(answers.coalesced(), 3u);
  gate.open();
  first.join();
  EXPECT_TRUE(eventually([&] { return answers.executed() == 2; }));
  runtime().stop();
  EXPECT_EQ(answers.executed() + answers.coalesced(), 5u);
}

INSTANTIATE_TEST_SUITE_P(, Waitables, testing::ValuesIn(all_executors()), case_name);

class WaitableGroups : public Lab {};

TEST_F(WaitableGroups, OneRunsWhileAnotherGroupIsBusyAndNotWhileItsOwnIs) {
  open({});
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 2);
  Answers busy, same, other;
  Gate gate;
  busy.on_each = [&](Nanoseconds) { gate.pass(); };
  Waitable& to_busy = runtime().create_waitable(on, {"busy", 1}, busy);
  Waitable& to_same = runtime().create_waitable(on, {"same", 1}, same);
  Waitable& to_other = runtime().create_waitable(on, {"other", 2}, other);
  runtime().start(clock_.now());
  to_busy.trigger(1);
  EXPECT_TRUE(eventually([&] { return busy.entered() == 1; }));
  to_same.trigger(1);
  for (std::size_t i = 1; i <= 10; ++i) {
    to_other.trigger(1);
    EXPECT_TRUE(eventually([&] { return other.executed() == i; }));
  }
  EXPECT_EQ(same.entered(), 0u);
  gate.open();
  EXPECT_TRUE(eventually([&] { return same.executed() == 1; }));
  runtime().stop();
}

}  // namespace
}  // namespace perflab::runtime::conformance
