// Waitables: every trigger is answered by a callback that begins after it, alone or together with others.
#include "lab.h"

namespace perflab::runtime::conformance {
namespace {

class Waitables : public AnyExecutor {};

TEST_P(Waitables, RunOnceForEachTriggerThatFindsThoseBeforeItAnswered) {
  constexpr Nanoseconds kTriggers = 50;
  const Guarded one = waitable(node());
  at(10ms, [&] {
    for (Nanoseconds due = 1; due <= kTriggers; ++due) {
      one.endpoint->trigger(due);
      hold(1ms, [&] { return one.answers->executed() == static_cast<std::size_t>(due); });
    }
  });
  start();
  EXPECT_TRUE(eventually([&] { return one.answers->executed() == kTriggers; })) << one.answers->executed();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  EXPECT_EQ(one.answers->dues(), dues(1, kTriggers + 1));
  EXPECT_TRUE(one.answers->coalesced().empty());
}

// The last thing that a callback does may be what makes the next one necessary.
TEST_P(Waitables, TriggersOfItsOwnCallbackAreAnsweredByOneMore) {
  const Guarded one = waitable(node());
  one.answers->on_each = [&](Nanoseconds due) {
    if (due != 1) return;
    for (Nanoseconds next = 2; next <= 11; ++next) one.endpoint->trigger(next);
  };
  at(10ms, [&] { one.endpoint->trigger(1); });
  start();
  EXPECT_TRUE(eventually([&] { return one.answers->executed() == 2; })) << one.answers->executed();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  EXPECT_EQ(one.answers->dues(), dues(1, 3)) << "what the first trigger was given";
  EXPECT_EQ(one.answers->coalesced(), dues(3, 12));
}

TEST_P(Waitables, TriggersFromBeforeTheStartAreAnsweredAfterIt) {
  const Guarded one = waitable(node());
  one.endpoint->trigger(1);
  one.endpoint->trigger(2);
  EXPECT_EQ(one.answers->executed(), 0u);
  start();
  EXPECT_TRUE(eventually([&] { return one.answers->answered() == 2; })) << one.answers->answered();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  EXPECT_EQ(one.answers->dues(), dues(1, 2));
  EXPECT_EQ(one.answers->coalesced(), dues(2, 3));
}

// Timers on executors of their own, which are threads of their own where there are threads.
TEST_P(Waitables, NoTriggerIsForgottenWhoeverTriggers) {
  constexpr int kSources = 4;
  constexpr int kTicks = 150;
  const Node on = node(4);
  const std::array<Guarded, 2> both{waitable(on), waitable(node_on(on.executor))};
  both[1].answers->on_each = [&](Nanoseconds) { runtime().work(300'000); };
  std::vector<Ticks*> ticks;
  for (int s = 0; s < kSources; ++s) {
    ticks.push_back(&timer(Lab::node(ExecutorKind::kSingleThreaded), 200us, 1, kTicks));
    ticks.back()->on_each = [&](Nanoseconds due) {
      for (const Guarded& one : both) one.endpoint->trigger(due);
    };
  }
  start();
  EXPECT_TRUE(timers_done());
  std::size_t triggers = 0;
  for (const Ticks* one : ticks) triggers += one->count();
  for (const Guarded& one : both)
    EXPECT_TRUE(eventually([&] { return one.answers->answered() == triggers; })) << one.answers->answered();
  runtime().stop();
  for (const Guarded& one : both) {
    EXPECT_EQ(one.answers->answered(), triggers);
    EXPECT_EQ(one.answers->executed() + one.answers->coalesced().size(), triggers);
    EXPECT_GT(one.answers->executed(), 0u);
  }
}

TEST_P(Waitables, IdleOnesAreNeverRun) {
  constexpr std::uint64_t kMessages = 50;
  const Node on = node();
  std::vector<Guarded> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(waitable(on));
  const Guarded busy = waitable(on);
  Inbox& inbox = subscribe(on, "/a", kSmall);
  Publisher& writer = publisher("/a", kSmall);
  Ticks& ticks = timer(source(), 1ms, 1, kMessages);
  ticks.on_each = [&, number = std::uint64_t{0}](Nanoseconds due) mutable {
    busy.endpoint->trigger(due);
    EXPECT_TRUE(send(writer, kSmall, number++));
  };
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] {
    return inbox.count() == ticks.count() && busy.answers->answered() == ticks.count();
  })) << inbox.count();
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, ticks.count()));
  for (const Guarded& one : idle) EXPECT_EQ(one.answers->answered(), 0u);
}

TEST_P(Waitables, NoneIsRunAfterTheStop) {
  const Guarded one = waitable(node());
  at(10ms, [&] { one.endpoint->trigger(1); });
  start();
  EXPECT_TRUE(eventually([&] { return one.answers->executed() == 1; }));
  runtime().stop();
  one.endpoint->trigger(2);
  std::this_thread::sleep_for(20ms);  // so that what goes on is seen
  EXPECT_EQ(one.answers->executed(), 1u);
}

INSTANTIATE_TEST_SUITE_P(, Waitables, testing::ValuesIn(all_executors()), case_name);

class QueuedWaitables : public AnyExecutor {};

TEST_P(QueuedWaitables, TriggersWhileTheCallbackRunsAreAnsweredByOneMore) {
  const Guarded one = waitable(node());
  std::atomic<bool> released{false};
  one.answers->on_each = [&](Nanoseconds due) {
    if (due == 1) hold(20ms, [&] { return released.load(); });
  };
  at(10ms, [&] { one.endpoint->trigger(1); });
  // Of an executor of its own: it waits for what the other timer does.
  Ticks& other = timer(Lab::node(ExecutorKind::kSingleThreaded), 1h, 1, 1, false, {}, 15ms - 1h);
  other.on_each = [&](Nanoseconds) {
    hold(0ms, [&] { return one.answers->entered() == 1; });
    for (Nanoseconds next = 2; next <= 11; ++next) one.endpoint->trigger(next);
    released = true;
  };
  start();
  EXPECT_TRUE(eventually([&] { return one.answers->executed() == 2; })) << one.answers->executed();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  EXPECT_EQ(one.answers->dues(), dues(1, 3));
  EXPECT_EQ(one.answers->coalesced(), dues(3, 12));
}

// One that triggers itself again and again takes turns with all others.
TEST_P(QueuedWaitables, NoneHoldsUpTimersAndMessages) {
  if (GetParam().kind == ExecutorKind::kStaticSingleThreaded)
    GTEST_SKIP() << "rclcpp's runs one callback after each wait, of all waitables the first that is ready";
  constexpr std::uint64_t kMessages = 20;
  const Node on = node();
  const Guarded restless = waitable(on);
  const Guarded other = waitable(on);
  Inbox& inbox = subscribe(on, "/a", kSmall);
  Publisher& writer = publisher_of(on, "/a", kSmall);
  Ticks& ticks = timer(on, 2ms, 1, kMessages);
  std::atomic<bool> enough{false};
  restless.answers->on_each = [&](Nanoseconds due) {
    runtime().work(50'000);
    if (!enough) restless.endpoint->trigger(due + 1);
    // Virtual time has nobody who could say so meanwhile.
    if (!real_time() && ticks.count() == kMessages && inbox.count() == kMessages) enough = true;
  };
  ticks.on_each = [&, number = std::uint64_t{0}](Nanoseconds due) mutable {
    EXPECT_TRUE(send(writer, kSmall, number++));
    other.endpoint->trigger(due);
  };
  restless.endpoint->trigger(1);
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] {
    return inbox.count() == ticks.count() && other.answers->answered() == ticks.count();
  })) << inbox.count();
  enough = true;
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, ticks.count()));
}

INSTANTIATE_TEST_SUITE_P(, QueuedWaitables, testing::ValuesIn(queueing_executors()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
