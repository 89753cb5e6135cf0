// Waitables: triggers from threads of no executor, and which thread runs what.
#include "../runtime/lab.h"

namespace perflab::runtime::conformance {
namespace {

class Waitables : public AnyExecutor {};

// An executor that is about to wait must not miss it.
TEST_P(Waitables, ATriggerWakesAnExecutorThatWaits) {
  constexpr std::size_t kTriggers = 3'000;
  const Guarded one = waitable(node());
  start();
  for (std::size_t i = 1; i <= kTriggers; ++i) {
    one.endpoint->trigger(static_cast<Nanoseconds>(i));
    while (one.answers->executed() < i) {
      ASSERT_TRUE(eventually([&] { return one.answers->executed() >= i; })) << "trigger " << i;
    }
  }
  runtime().stop();
  EXPECT_EQ(one.answers->executed(), kTriggers);
  EXPECT_TRUE(one.answers->coalesced().empty());
}

TEST_P(Waitables, EveryTriggerOfManyThreadsIsAnsweredOnce) {
  constexpr std::size_t kThreads = 4;
  constexpr std::size_t kTriggers = 5'000;
  // What was set before the last trigger is seen by its callback.
  std::array<std::atomic<std::size_t>, kThreads> set{};
  std::array<std::size_t, kThreads> seen{};
  const Guarded one = waitable(node(3));
  one.answers->on_each = [&](Nanoseconds) {
    for (std::size_t t = 0; t < kThreads; ++t) seen[t] = set[t].load(std::memory_order_relaxed);
  };
  start();
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 1; i <= kTriggers; ++i) {
        set[t].store(i, std::memory_order_relaxed);
        one.endpoint->trigger(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return one.answers->answered() == kThreads * kTriggers; }));
  runtime().stop();
  EXPECT_EQ(one.answers->executed() + one.answers->coalesced().size(), kThreads * kTriggers);
  for (const std::size_t last : seen) EXPECT_EQ(last, kTriggers);
}

INSTANTIATE_TEST_SUITE_P(, Waitables, testing::ValuesIn(all_executors()), case_name);

class WaitableThreads : public Lab {
 protected:
  WaitableThreads() { open(); }
};

// ... though the callback runs in a thread that triggers. Where it runs in another one, the tests of all
// runtimes say the same.
TEST_F(WaitableThreads, WithInlineNobodyElseWaitsForTheCallbackThatRuns) {
  const Guarded one = waitable(node(ExecutorKind::kInline));
  const Answers& answers = *one.answers;
  Gate gate;
  one.answers->on_each = [&](Nanoseconds due) {
    if (due == 1) gate.pass();
  };
  start();
  std::thread first([&] { one.endpoint->trigger(1); });
  EXPECT_TRUE(eventually([&] { return answers.entered() == 1; }));
  for (Nanoseconds due = 2; due <= 5; ++due) one.endpoint->trigger(due);
  EXPECT_EQ(answers.executed(), 0u);
  EXPECT_EQ(answers.coalesced().size(), 3u);
  gate.open();
  first.join();
  EXPECT_TRUE(eventually([&] { return answers.executed() == 2; }));
  runtime().stop();
  EXPECT_EQ(answers.answered(), 5u);
}

TEST_F(WaitableThreads, OneRunsWhileAnotherGroupIsBusyAndNotWhileItsOwnIs) {
  const Node on = node(ExecutorKind::kMultiThreaded, 2);
  const Guarded busy = waitable(on);
  const Guarded same = waitable(on);
  const Guarded other = waitable(node_on(on.executor));
  Gate gate;
  busy.answers->on_each = [&](Nanoseconds) { gate.pass(); };
  start();
  busy.endpoint->trigger(1);
  EXPECT_TRUE(eventually([&] { return busy.answers->entered() == 1; }));
  same.endpoint->trigger(1);
  for (std::size_t i = 1; i <= 10; ++i) {
    other.endpoint->trigger(1);
    EXPECT_TRUE(eventually([&] { return other.answers->executed() == i; }));
  }
  EXPECT_EQ(same.answers->entered(), 0u);
  gate.open();
  EXPECT_TRUE(eventually([&] { return same.answers->executed() == 1; }));
  runtime().stop();
}

}  // namespace
}  // namespace perflab::runtime::conformance
