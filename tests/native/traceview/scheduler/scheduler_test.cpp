// One test for each definition of scheduler.h, on lists of a few events.
#include "traceview/scheduler.h"

#include <gtest/gtest.h>

#include <utility>

#include "support.h"

namespace perflab::traceview {
namespace {

using test::Recording;
constexpr auto kPreempted = EndState::preempted;
constexpr auto kSleeping = EndState::sleeping;
constexpr auto kEnded = EndState::ended;

TEST(States, RunningIsFromTheSwitchToAThreadUntilTheSwitchAway) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(30, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-30");
  EXPECT_EQ(r.scheduler.states().end_state[0], EndState::sleeping);
  EXPECT_EQ(r.scheduler.states().priority[0], 107);
}

TEST(States, PreemptedIsUntilItIsSwitchedInAgain) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kPreempted, 8);
  r.switched(50, 0, 8, kSleeping, 7);
  r.switched(60, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-20, preempted@0 20-50, running@0 50-60");
}

TEST(States, BlockedIsUntilTheWakeUpAndWokenUntilItIsSwitchedIn) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, EndState::uninterruptible, 0);
  r.waking(38, 1, 7, 0);
  r.wakeup(40, 1, 7, 0);
  r.switched(45, 0, 0, kPreempted, 7);
  r.switched(50, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-20, blocked 20-40, woken@0 40-45, running@0 45-50");
  EXPECT_EQ(r.wake_ups_of(7), "waking 38, woken 40, ran 45, by -");
}

TEST(States, AThreadThatIsSwitchedAwayFirstRanSinceTheEventsOfItsCpuBegan) {
  Recording r;
  r.switched(1, 1, 0, kPreempted, 9);
  r.wakeup(5, 0, 8, 1);
  r.switched(20, 0, 7, kSleeping, 0);
  r.switched(30, 1, 9, kSleeping, 8);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 5-20, blocked 20-30");
  EXPECT_EQ(r.split_of(7, 4, 10), "");
  EXPECT_EQ(r.split_of(7, 5, 10), "on 5, preempted 0, blocked 0, woken 0, moved 0");
}

TEST(States, WhatIsOpenAtTheEndIsKnownUntilTheLastEventOfTheHost) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(15, 1, 0, kPreempted, 8);
  r.switched(90, 1, 8, kPreempted, 9);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-90");
  EXPECT_EQ(r.split_of(7, 10, 91), "");
  for (std::size_t i = 0; i < r.scheduler.states().thread.size(); ++i) {
    if (r.scheduler.states().thread[i] == r.thread(7)) {
      EXPECT_FALSE(r.scheduler.states().end_state.valid(i));
    }
  }
}

TEST(States, IdleIsNoThread) {
  Recording r;
  r.switched(10, 0, 7, kSleeping, 0);
  r.wakeup(12, 0, 0, 0);
  r.migrate(13, 0, 0, 0, 1);
  r.switched(20, 0, 0, kPreempted, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.directory.threads().size(), 1u);
}

TEST(States, EventsOfEqualTimeLeaveNoEmptyRows) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.wakeup(40, 1, 7, 0);
  r.switched(40, 0, 0, kPreempted, 7);
  r.switched(40, 0, 7, kPreempted, 8);
  r.switched(50, 0, 8, kSleeping, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-20, blocked 20-40, preempted@0 40-50");
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 40, ran 40, by -");
  EXPECT_EQ(r.split_of(7, 10, 50), "on 10, preempted 10, blocked 20, woken 0, moved 0");
}

TEST(WakeUps, OnlyTheFirstCountsUntilTheThreadRuns) {
  Recording r;
  r.switched(10, 0, 7, kSleeping, 0);
  r.wakeup(20, 1, 7, 0);
  r.wakeup(25, 1, 7, 0);
  r.switched(30, 0, 0, kPreempted, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 20, ran 30, by -");
}

TEST(WakeUps, OfARunningThreadHaveNoLatency) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.wakeup(20, 1, 7, 0);
  r.switched(30, 0, 7, kSleeping, 0);
  r.switched(40, 0, 0, kPreempted, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 20, ran -, by -, ran already");
}

TEST(WakeUps, OfAThreadThatTurnsOutToHaveRunHaveNoLatency) {
  Recording r;
  r.wakeup(5, 0, 8, 0);
  r.wakeup(20, 1, 7, 0);
  r.switched(30, 0, 7, kSleeping, 8);
  r.switched(40, 0, 8, kSleeping, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 20, ran -, by -, ran already");
  EXPECT_EQ(r.wake_ups_of(8), "waking -, woken 5, ran 30, by -");
  EXPECT_EQ(r.states_of(8), "woken@0 5-30, running@0 30-40");
  EXPECT_EQ(r.holds_of(8), "woken@0 5-30 by 7");
}

TEST(WakeUps, OfAPreemptedThreadHaveALatencyButBeginNoState) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kPreempted, 8);
  r.wakeup(25, 1, 7, 0);
  r.switched(30, 0, 8, kSleeping, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-20, preempted@0 20-30");
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 25, ran 30, by -");
}

TEST(WakeUps, AreByWhatRanWhereTheWakingBegan) {
  Recording r;
  r.switched(10, 0, 7, kSleeping, 9);
  r.switched(11, 1, 0, kPreempted, 8);
  r.waking(20, 1, 7, 0);
  r.wakeup(22, 0, 7, 0);  // handed over to CPU 0 by an interrupt
  r.switched(30, 0, 9, kPreempted, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.wake_ups_of(7), "waking 20, woken 22, ran 30, by 8");
}

TEST(WakeUps, MayBeginWhileTheThreadIsStillOnItsWayToSleep) {
  Recording r;
  r.switched(1, 1, 0, kPreempted, 8);
  r.waking(20, 1, 7, 0);
  r.switched(22, 0, 7, kSleeping, 0);
  r.wakeup(24, 1, 7, 0);
  r.switched(30, 0, 0, kPreempted, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.wake_ups_of(7), "waking 20, woken 24, ran 30, by 8");
}

TEST(WakeUps, WithoutASwitchBeforeTheEndHaveNone) {
  Recording r;
  r.switched(10, 0, 7, kSleeping, 8);
  r.wakeup(20, 0, 7, 0);
  r.switched(30, 0, 8, kPreempted, 9);
  r.scheduler.finish();
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 20, ran -, by 8");
  EXPECT_EQ(r.states_of(7), "blocked 10-20, woken@0 20-30");
}

TEST(Migrations, AreSeenByTheSwitchToAnotherCpu) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kPreempted, 8);
  r.switched(30, 1, 0, kPreempted, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.migrations_of(7), "30: 0>1");
  EXPECT_EQ(r.states_of(7), "running@0 10-20, preempted@0 20-30");
}

TEST(Migrations, CountOnceWhereTheyAreRecorded) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kPreempted, 8);
  r.migrate(25, 1, 7, 0, 1);
  r.switched(30, 1, 0, kPreempted, 7);
  r.switched(35, 1, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.migrations_of(7), "25: 0>1");
  EXPECT_EQ(r.states_of(7), "running@0 10-20, preempted@0 20-25, preempted@1 25-30, running@1 30-35");
  EXPECT_EQ(r.holds_of(7), "preempted@0 20-25 by 8, preempted@1 25-30 by -");
  EXPECT_EQ(r.split_of(7, 10, 35), "on 15, preempted 10, blocked 0, woken 0, moved 1");
  EXPECT_EQ(r.split_of(7, 10, 25), "on 10, preempted 5, blocked 0, woken 0, moved 1");
  EXPECT_EQ(r.split_of(7, 25, 35), "on 5, preempted 5, blocked 0, woken 0, moved 0")
      << "neighbours do not count it twice";
}

TEST(Holds, AreTheStretchesOthersRanWhereAThreadWaits) {
  Recording r;
  r.switched(10, 0, 7, kSleeping, 8);
  r.wakeup(20, 0, 7, 0);
  r.switched(30, 0, 8, kPreempted, 9);
  r.switched(40, 0, 9, kSleeping, 0);
  r.switched(45, 0, 0, kPreempted, 7);
  r.switched(60, 0, 7, kPreempted, 8);
  r.switched(70, 0, 8, kSleeping, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.holds_of(7),
            "woken@0 20-30 by 8, woken@0 30-40 by 9, woken@0 40-45 by -, preempted@0 60-70 by 8");
  EXPECT_EQ(r.holds_of(8), "preempted@0 30-40 by 9, preempted@0 40-45 by -, preempted@0 45-60 by 7");
}

TEST(Holds, OfStretchesAreSummedPerStateCpuAndHolder) {
  Recording r;
  r.switched(10, 0, 7, kSleeping, 8);
  r.wakeup(20, 0, 7, 0);
  r.switched(30, 0, 8, kPreempted, 9);
  r.switched(35, 0, 9, kPreempted, 8);
  r.switched(40, 0, 8, kSleeping, 0);
  r.switched(45, 0, 0, kPreempted, 7);
  r.scheduler.finish();
  const std::int32_t seven = r.thread(7);
  const std::vector<std::int32_t> threads{seven, seven, seven, -1};
  const std::vector<std::int64_t> begins{10, 25, 5, 10}, ends{45, 33, 45, 45};
  const auto table = r.scheduler.holds_of(threads, begins, ends);
  ASSERT_EQ(table.interval.size(), 4u) << "of the third not everything is known, the fourth is no thread";
  const auto row = [&](std::size_t i) {
    return std::tuple(table.interval[i], table.state[i], table.cpu[i], table.holder[i], table.held_ns[i]);
  };
  EXPECT_EQ(row(0), std::tuple(0u, ThreadState::woken, 0, r.thread(8), 15));
  EXPECT_EQ(row(1), std::tuple(0u, ThreadState::woken, 0, r.thread(9), 5));
  EXPECT_EQ(row(2), std::tuple(1u, ThreadState::woken, 0, r.thread(8), 5));
  EXPECT_EQ(row(3), std::tuple(1u, ThreadState::woken, 0, r.thread(9), 3));
}

TEST(Split, SharesAStretchOutAmongTheStates) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.wakeup(40, 1, 7, 0);
  r.switched(45, 0, 0, kPreempted, 7);
  r.switched(55, 0, 7, kPreempted, 8);
  r.switched(70, 0, 8, kSleeping, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.split_of(7, 12, 65), "on 18, preempted 10, blocked 20, woken 5, moved 0");
  EXPECT_EQ(r.split_of(7, 20, 20), "on 0, preempted 0, blocked 0, woken 0, moved 0");
  EXPECT_EQ(r.split_of(7, 30, 20), "") << "a stretch that ends before it begins";
  EXPECT_FALSE(r.scheduler.split(99, 10, 20));
  EXPECT_FALSE(r.scheduler.split(-1, 10, 20));
}

TEST(MissingKinds, WithoutWakeUpsAThreadIsBlockedUntilItIsSwitchedIn) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.switched(45, 0, 0, kPreempted, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-20, blocked 20-45");
  EXPECT_TRUE(r.scheduler.coverage().has_switches);
  EXPECT_FALSE(r.scheduler.coverage().has_wakeups);
  EXPECT_FALSE(r.scheduler.coverage().has_waking);
  EXPECT_FALSE(r.scheduler.coverage().has_migrations);
  EXPECT_EQ(r.scheduler.coverage().begin_ns, 10);
  EXPECT_EQ(r.scheduler.coverage().end_ns, 45);
}

TEST(MissingKinds, OneMissingWakeUpLeavesItsSleepUnknown) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.switched(45, 0, 0, kPreempted, 7);
  r.wakeup(50, 0, 8, 0);
  r.switched(55, 0, 7, kPreempted, 8);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-20, running@0 45-55");
  EXPECT_EQ(r.split_of(7, 15, 50), "");
}

TEST(MissingKinds, WithoutSwitchesNothingIsClaimed) {
  Recording r;
  r.wakeup(10, 0, 7, 0);
  r.scheduler.finish();
  EXPECT_FALSE(r.scheduler.empty());
  EXPECT_EQ(r.states_of(7), "");
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 10, ran -, by -");
}

TEST(MissingKinds, NoEventsAreEmpty) {
  Recording r;
  r.scheduler.finish();
  EXPECT_TRUE(r.scheduler.empty());
  EXPECT_FALSE(r.scheduler.coverage().begin_ns);
  EXPECT_FALSE(r.scheduler.split(0, 0, 1));
}

TEST(Filtered, ARunWhoseEndIsMissingIsNotClaimed) {
  Recording r;  // only switches from and to 7 are recorded
  r.switched(10, 0, 3, kSleeping, 7);
  r.switched(20, 0, 7, kPreempted, 4);
  r.switched(50, 0, 5, kSleeping, 7);
  r.switched(60, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-20, preempted@0 20-50, running@0 50-60");
  EXPECT_EQ(r.states_of(4), "");
  EXPECT_EQ(r.states_of(5), "blocked 50-60");
  EXPECT_EQ(r.holds_of(7), "preempted@0 20-50 by -")
      << "4 did not hold the CPU until 50: 5 was switched away";
  EXPECT_EQ(r.scheduler.coverage().contradictions, 1u);
}

TEST(Filtered, SwitchesInThatAreMissingLeaveGaps) {
  Recording r;  // only switches away from 7
  r.switched(10, 0, 7, kSleeping, 0);
  r.switched(30, 0, 7, kSleeping, 0);
  r.switched(50, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "");
  EXPECT_EQ(r.split_of(7, 10, 50), "");
  EXPECT_GT(r.scheduler.coverage().contradictions, 0u);
}

// What a thread did in user space: when, by its number.
Scheduler::Evidence ran_at(const Recording& r, std::int32_t tid, std::int64_t instant) {
  return [&r, tid, instant](std::int32_t thread, std::int64_t begin, std::int64_t end) {
    return thread == r.thread(tid) && begin < instant && instant < end ? std::optional(instant) : std::nullopt;
  };
}

TEST(Inferred, AThreadRanFromItsFirstSignOfLifeWhereTheSwitchToItIsMissing) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.switched(60, 0, 7, kSleeping, 0);  // who switched it in was not recorded
  r.switched(90, 0, 0, kPreempted, 7);
  r.scheduler.finish(ran_at(r, 7, 50));
  EXPECT_EQ(r.states_of(7), "running@0 10-20, running@0 50-60, blocked 60-90");
  EXPECT_EQ(r.split_of(7, 52, 58), "on 6, preempted 0, blocked 0, woken 0, moved 0");
  EXPECT_EQ(r.split_of(7, 45, 58), "");
  EXPECT_EQ(r.scheduler.states().inferred[1], 1);
  EXPECT_EQ(r.scheduler.states().inferred[0], 0);
  EXPECT_EQ(r.scheduler.coverage().inferred_states, 1U);
  EXPECT_EQ(r.scheduler.states().end_state[1], EndState::sleeping);
}

TEST(Contradictions, AThreadThatDidSomethingWhileItSleptDidNotSleep) {
  const auto run = [](std::int64_t sign_of_life) {
    Recording r;
    r.switched(10'000, 0, 0, kPreempted, 7);
    r.switched(20'000, 0, 7, kSleeping, 0);
    r.wakeup(300'000, 0, 7, 0);
    r.switched(500'000, 0, 0, kPreempted, 7);
    r.switched(600'000, 0, 7, kSleeping, 0);
    r.scheduler.finish(ran_at(r, 7, sign_of_life));
    return std::pair(r.states_of(7), r.wake_ups_of(7));
  };
  EXPECT_EQ(run(100'000).first, "running@0 10000-20000, woken@0 300000-500000, running@0 500000-600000");
  EXPECT_EQ(run(400'000).first, "running@0 10000-20000, blocked 20000-300000, running@0 500000-600000");
  EXPECT_EQ(run(400'000).second, "waking -, woken 300000, ran -, by -");
  // What the clocks of two tracers may differ by shows nothing.
  EXPECT_EQ(run(25'000).first,
            "running@0 10000-20000, blocked 20000-300000, woken@0 300000-500000, running@0 500000-600000");
}

TEST(Stopped, AThreadIsUntilItIsWoken) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, EndState::stopped, 0);
  r.wakeup(50, 0, 7, 0);
  r.switched(60, 0, 0, kPreempted, 7);
  r.switched(70, 0, 7, EndState::traced, 0);
  r.wakeup(90, 0, 7, 0);
  r.switched(95, 0, 0, kPreempted, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7),
            "running@0 10-20, stopped 20-50, woken@0 50-60, running@0 60-70, traced 70-90, woken@0 90-95");
  const auto split = r.scheduler.split(r.thread(7), 10, 95);
  ASSERT_TRUE(split);
  EXPECT_EQ(split->stopped_ns, 50);
  EXPECT_EQ(split->blocked_ns, 0);
}

TEST(Inferred, NothingIsClaimedWithoutASignOfLife) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.switched(60, 0, 7, kSleeping, 0);
  r.scheduler.finish(ran_at(r, 8, 50));
  EXPECT_EQ(r.states_of(7), "running@0 10-20");
  EXPECT_EQ(r.scheduler.coverage().inferred_states, 0U);
}

TEST(Inferred, ASignOfLifeCountsOnlyAfterTheLastSwitchOfTheCpuAndTheLastWakeUp) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.wakeup(40, 1, 7, 0);
  r.switched(60, 0, 7, kSleeping, 0);
  std::int64_t asked_from = 0;
  r.scheduler.finish([&](std::int32_t, std::int64_t begin, std::int64_t) {
    asked_from = begin;
    return std::optional<std::int64_t>();
  });
  EXPECT_EQ(asked_from, 40);
}

TEST(Inferred, NothingIsClaimedWithinALoss) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.scheduler.lost(r.host, 0, 25, 55);
  r.switched(60, 0, 7, kSleeping, 0);
  r.switched(70, 0, 0, kPreempted, 8);
  r.scheduler.finish(ran_at(r, 7, 50));
  EXPECT_EQ(r.scheduler.coverage().inferred_states, 0U);
}

TEST(Lost, StatesEndWhereTheLossBegins) {
  Recording r;
  r.scheduler.lost(r.host, 0, 30, 40);
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(12, 1, 0, kPreempted, 8);
  r.switched(14, 2, 9, kSleeping, 0);
  r.switched(50, 0, 7, kSleeping, 0);
  r.switched(60, 1, 8, kSleeping, 0);
  r.wakeup(65, 1, 9, 2);
  r.switched(70, 2, 0, kPreempted, 9);
  r.switched(80, 2, 9, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-30, running@0 40-50, blocked 50-80");
  EXPECT_EQ(r.states_of(8), "running@1 12-60, blocked 60-80") << "it ran on another CPU";
  EXPECT_EQ(r.states_of(9), "blocked 14-30, woken@2 65-70, running@2 70-80")
      << "CPU 0 may have run it in between";
  EXPECT_EQ(r.split_of(7, 20, 45), "");
  EXPECT_EQ(r.split_of(8, 20, 45), "on 25, preempted 0, blocked 0, woken 0, moved 0");
  EXPECT_EQ(r.scheduler.coverage().contradictions, 0u);
}

TEST(Lost, OfAllCpusStopsEveryState) {
  Recording r;
  r.scheduler.lost(r.host, std::nullopt, 30, 40);
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(12, 1, 0, kPreempted, 8);
  r.switched(50, 0, 9, kSleeping, 0);
  r.switched(60, 1, 8, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-30");
  EXPECT_EQ(r.states_of(8), "running@1 12-30, running@1 40-60");
  EXPECT_EQ(r.states_of(9), "running@0 40-50, blocked 50-60");
}

TEST(Lost, NoLatencyIsClaimedAcrossALoss) {
  Recording r;
  r.switched(10, 0, 7, kSleeping, 8);
  r.wakeup(20, 0, 7, 0);
  r.scheduler.lost(r.host, 0, 30, 40);
  r.switched(50, 0, 8, kSleeping, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 20, ran -, by 8");
  EXPECT_EQ(r.states_of(7), "blocked 10-20, woken@0 20-30");
  EXPECT_EQ(r.holds_of(7), "woken@0 20-30 by 8");
}

TEST(Lost, WhatSleepsOrWaitsDuringALossIsNotKnown) {
  Recording r;
  r.scheduler.lost(r.host, 0, 30, 60);
  r.switched(10, 1, 0, kPreempted, 7);
  r.switched(40, 1, 7, kSleeping, 0);
  r.wakeup(45, 1, 7, 1);
  r.switched(50, 1, 0, kPreempted, 7);
  r.switched(55, 1, 7, kPreempted, 8);
  r.switched(70, 1, 8, kSleeping, 7);
  r.switched(80, 1, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@1 10-40, running@1 50-55, running@1 70-80");
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 45, ran -, by -");
}

TEST(Lost, SaidAfterTheEventsCutsTheStatesThatReachIntoIt) {
  Recording r;
  r.switched(10, 0, 7, kSleeping, 8);
  r.switched(12, 1, 0, kPreempted, 9);
  r.wakeup(20, 0, 7, 0);
  r.switched(50, 0, 8, kSleeping, 7);
  r.switched(90, 1, 9, kSleeping, 0);
  r.scheduler.lost(r.host, 0, 30, 40);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "blocked 10-20, woken@0 20-30, running@0 50-90");
  EXPECT_EQ(r.states_of(9), "running@1 12-90");
  EXPECT_EQ(r.holds_of(7), "woken@0 20-30 by 8");
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 20, ran -, by 8");
}

TEST(Lives, ANumberMayBeUsedAnewAfterTheExit) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.exit(15, 0, 7);
  r.switched(20, 0, 7, kEnded, 0);
  r.fork(30, 0, 7, 70, "young");
  r.wakeup_new(31, 0, 7, 0);
  r.switched(40, 0, 0, kPreempted, 7);
  r.switched(50, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  ASSERT_EQ(r.directory.threads().size(), 2u);
  EXPECT_EQ(r.states_of_row(0), "running@0 10-20") << "nothing after its end";
  EXPECT_EQ(r.states_of_row(1), "woken@0 31-40, running@0 40-50");
  EXPECT_TRUE(r.directory.threads()[0].ended);
  EXPECT_EQ(r.directory.threads()[1].name, "young");
  const auto process = r.directory.threads()[1].process;
  ASSERT_TRUE(process);
  EXPECT_EQ(r.directory.processes()[static_cast<std::size_t>(*process)].pid, 70);
}

TEST(Lives, ANewThreadWithAKnownNumberIsAnotherOne) {
  Recording r;  // the exit was not recorded
  r.switched(10, 0, 7, kSleeping, 0);
  r.wakeup_new(30, 0, 7, 0);
  r.switched(40, 0, 0, kPreempted, 7);
  r.scheduler.finish();
  ASSERT_EQ(r.directory.threads().size(), 2u);
  EXPECT_EQ(r.wake_ups_of(7), "waking -, woken 30, ran 40, by -");
  EXPECT_EQ(r.states_of_row(0), "");
}

TEST(Lives, AnExitingThreadMayStillSleep) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.exit(15, 0, 7);
  r.switched(20, 0, 7, EndState::uninterruptible, 0);
  r.wakeup(30, 1, 7, 0);
  r.switched(35, 0, 0, kPreempted, 7);
  r.switched(40, 0, 7, EndState::other, 0);  // 64: dead before Linux 4.14, parked since
  r.wakeup(50, 0, 8, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-20, blocked 20-30, woken@0 30-35, running@0 35-40");
  EXPECT_TRUE(r.directory.threads()[0].ended);
}

TEST(Lives, UserSpaceSaysWhichOfTwoThreadsItIs) {
  Recording r;
  const auto first = r.directory.thread_of(r.directory.process(r.host, 70), 7);
  const auto second = r.directory.thread_of(r.directory.process(r.host, 80), 7);
  for (const auto& [row, from, to] : {std::tuple(first, 12, 18), std::tuple(second, 112, 118)}) {
    auto& thread = r.directory.thread_row(row);
    thread.first_ns = from, thread.last_ns = to, thread.events = 2;
  }
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.exit(30, 1, 7);
  r.switched(35, 1, 7, kEnded, 0);
  r.fork(100, 1, 7, 80, "second");
  r.wakeup_new(101, 1, 7, 0);
  r.switched(110, 0, 0, kPreempted, 7);
  r.switched(120, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of_row(first), "running@0 10-20");
  EXPECT_EQ(r.states_of_row(second), "woken@0 101-110, running@0 110-120");
}

TEST(Lives, AThreadThatEndedBeforeTheOneOfUserSpaceBeganIsAnother) {
  Recording r;
  const auto user = r.directory.thread_of(r.directory.process(r.host, 70), 7);
  r.directory.thread_row(user).first_ns = 100;
  r.directory.thread_row(user).last_ns = 110;
  r.directory.thread_row(user).events = 2;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kEnded, 0);
  r.wakeup_new(90, 0, 7, 0);
  r.switched(95, 0, 0, kPreempted, 7);
  r.switched(120, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  ASSERT_EQ(r.directory.threads().size(), 2u);
  EXPECT_EQ(r.states_of_row(user), "woken@0 90-95, running@0 95-120");
  EXPECT_EQ(r.states_of_row(1 - user), "running@0 10-20");
}

TEST(Names, OfProcessesWithoutTracingAreThoseOfTheirFirstThreads) {
  Recording r;
  SchedulerEvent event;
  event.host = r.host;
  for (const auto& [tid, name] : {std::pair(70, "planner"), std::pair(71, "receive")}) {
    event.time_ns = tid;
    event.previous_tid = event.emitter_tid = tid;  // as perf records it: the thread that ran, and its process
    event.emitter_pid = 70;
    event.previous_name = name;
    event.previous_state = kSleeping;
    r.scheduler.add(event);
  }
  r.scheduler.finish();
  ASSERT_EQ(r.directory.processes().size(), 1u);
  EXPECT_EQ(r.directory.processes()[0].name, "planner");
  EXPECT_EQ(r.directory.threads()[static_cast<std::size_t>(r.thread(71))].process, 0);
}

TEST(Names, FollowForkExecAndTheSchedulersOwn) {
  Recording r;
  r.fork(10, 0, 7, 7, "shell");
  EXPECT_EQ(r.directory.threads()[0].name, "shell");
  r.wakeup_new(11, 0, 7, 0);
  r.switched(12, 0, 0, kPreempted, 7);
  r.exec(20, 0, -1, "/usr/bin/a_program_with_a_long_name");
  EXPECT_EQ(r.directory.threads()[0].name, "a_program_with_")
      << "the thread that ran; 15 characters as in the kernel";
  SchedulerEvent event;
  event.kind = SchedulerEvent::Kind::waking;
  event.time_ns = 30;
  event.cpu = 1;
  event.tid = 7;
  event.name = "executor";
  r.scheduler.add(event);
  EXPECT_EQ(r.directory.threads()[0].name, "executor");
}

TEST(Hosts, HaveThreadsAndCpusOfTheirOwn) {
  Directory directory;
  Scheduler scheduler(directory);
  const auto a = directory.host("a"), b = directory.host("b");
  SchedulerEvent event;
  event.tid = 7;
  for (const auto host : {b, a}) {
    event.host = host;
    event.time_ns = 10 + host;
    scheduler.add(event);
  }
  event.host = a;
  event.time_ns = 50;
  event.tid = 0;
  event.previous_tid = 7;
  scheduler.add(event);
  scheduler.finish();
  ASSERT_EQ(directory.threads().size(), 2u);
  EXPECT_EQ(scheduler.states().thread.size(), 1u) << "of b nothing is known but one instant";
  EXPECT_EQ(scheduler.states().end_ns[0], 50);
}

}  // namespace
}  // namespace perflab::traceview
