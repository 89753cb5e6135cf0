// One test for each definition of scheduler.h, on lists of a few events.
#include "traceview/scheduler.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "support.h"

namespace perflab::traceview {
namespace {

using test::Recording;
constexpr auto kPreempted = EndState::preempted;
constexpr auto kSleeping = EndState::sleeping;
constexpr auto kEnded = EndState::ended;

// A few events, in order, and what they mean.
struct Definition {
  const char* name;
  const char* events;
  std::vector<const char*> expected;
};

const Definition kDefinitions[] = {
    {"States_PreemptedIsUntilItIsSwitchedInAgain",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 preempted > 8; 50 cpu0 8 sleeping > 7; 60 cpu0 7 sleeping > 0",
     {"states 7: running@0 10-20, preempted@0 20-50, running@0 50-60"}},
    {"States_BlockedIsUntilTheWakeUpAndWokenUntilItIsSwitchedIn",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 uninterruptible > 0; 38 cpu1 waking 7 on 0; "
     "40 cpu1 wakeup 7 on 0; 45 cpu0 0 preempted > 7; 50 cpu0 7 sleeping > 0",
     {"states 7: running@0 10-20, blocked 20-40, woken@0 40-45, running@0 45-50",
      "wake_ups 7: waking 38, woken 40, ran 45, by -"}},
    {"States_AThreadThatIsSwitchedAwayFirstRanSinceTheEventsOfItsCpuBegan",
     "1 cpu1 0 preempted > 9; 5 cpu0 wakeup 8 on 1; 20 cpu0 7 sleeping > 0; 30 cpu1 9 sleeping > 8",
     {"states 7: running@0 5-20, blocked 20-30",
      "split 7 4 10: ", "split 7 5 10: on 5, preempted 0, blocked 0, woken 0, moved 0"}},
    {"States_EventsOfEqualTimeLeaveNoEmptyRows",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 sleeping > 0; 40 cpu1 wakeup 7 on 0; 40 cpu0 0 preempted > 7; "
     "40 cpu0 7 preempted > 8; 50 cpu0 8 sleeping > 7",
     {"states 7: running@0 10-20, blocked 20-40, preempted@0 40-50",
      "wake_ups 7: waking -, woken 40, ran 40, by -",
      "split 7 10 50: on 10, preempted 10, blocked 20, woken 0, moved 0"}},
    {"WakeUps_OnlyTheFirstCountsUntilTheThreadRuns",
     "10 cpu0 7 sleeping > 0; 20 cpu1 wakeup 7 on 0; 25 cpu1 wakeup 7 on 0; 30 cpu0 0 preempted > 7",
     {"wake_ups 7: waking -, woken 20, ran 30, by -"}},
    {"WakeUps_OfARunningThreadHaveNoLatency",
     "10 cpu0 0 preempted > 7; 20 cpu1 wakeup 7 on 0; 30 cpu0 7 sleeping > 0; 40 cpu0 0 preempted > 7",
     {"wake_ups 7: waking -, woken 20, ran -, by -, ran already"}},
    {"WakeUps_OfAThreadThatTurnsOutToHaveRunHaveNoLatency",
     "5 cpu0 wakeup 8 on 0; 20 cpu1 wakeup 7 on 0; 30 cpu0 7 sleeping > 8; 40 cpu0 8 sleeping > 7",
     {"wake_ups 7: waking -, woken 20, ran -, by -, ran already",
      "wake_ups 8: waking -, woken 5, ran 30, by -", "states 8: woken@0 5-30, running@0 30-40",
      "holds 8: woken@0 5-30 by 7"}},
    {"WakeUps_OfAPreemptedThreadHaveALatencyButBeginNoState",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 preempted > 8; 25 cpu1 wakeup 7 on 0; 30 cpu0 8 sleeping > 7",
     {"states 7: running@0 10-20, preempted@0 20-30", "wake_ups 7: waking -, woken 25, ran 30, by -"}},
    // 22 cpu0 wakeup 7 on 0: passed to CPU 0 by an interrupt
    {"WakeUps_AreByWhatRanWhereTheWakingBegan",
     "10 cpu0 7 sleeping > 9; 11 cpu1 0 preempted > 8; 20 cpu1 waking 7 on 0; 22 cpu0 wakeup 7 on 0; "
     "30 cpu0 9 preempted > 7",
     {"wake_ups 7: waking 20, woken 22, ran 30, by 8"}},
    {"WakeUps_MayBeginWhileTheThreadIsStillOnItsWayToSleep",
     "1 cpu1 0 preempted > 8; 20 cpu1 waking 7 on 0; 22 cpu0 7 sleeping > 0; 24 cpu1 wakeup 7 on 0; "
     "30 cpu0 0 preempted > 7",
     {"wake_ups 7: waking 20, woken 24, ran 30, by 8"}},
    {"WakeUps_WithoutASwitchBeforeTheEndHaveNone",
     "10 cpu0 7 sleeping > 8; 20 cpu0 wakeup 7 on 0; 30 cpu0 8 preempted > 9",
     {"wake_ups 7: waking -, woken 20, ran -, by 8", "states 7: blocked 10-20, woken@0 20-30"}},
    // Woken 25 before it is switched in at 45; the outgoing thread had arrived 38 before.
    {"WakeUps_ThatOnlyTheRecorderKnowsOfCountFromWhereTheyWere",
     "10 cpu0 0 preempted > 7; 12 cpu0 7 sleeping > 8; 45 cpu0 recovered 7 on 0 25 33; "
     "45 cpu0 8 sleeping > 7; 50 cpu0 7 sleeping > 0",
     {"states 7: running@0 10-12, blocked 12-20, woken@0 20-45, running@0 45-50",
      "wake_ups 7: waking -, woken 20, ran 45, by -", "holds 7: woken@0 20-45 by 8", "recovered: 1",
      "contradictions: 0"}},
    {"WakeUps_ThatOnlyTheRecorderKnowsOfAreByWhatBeganThem",
     "1 cpu1 0 preempted > 8; 10 cpu0 0 preempted > 7; 12 cpu0 7 sleeping > 0; 18 cpu1 waking 7 on 0; "
     "45 cpu0 recovered 7 on 0 25 33; 45 cpu0 0 preempted > 7",
     {"wake_ups 7: waking 18, woken 20, ran 45, by 8"}},
    {"WakeUps_ThatOnlyTheRecorderKnowsOfMayComeWithAMigration",
     "10 cpu0 0 preempted > 7; 12 cpu0 7 sleeping > 8; 40 cpu1 recovered 7 on 0 20 -1; "
     "40 cpu1 migrate 7 0>1; 45 cpu1 0 preempted > 7; 50 cpu1 7 sleeping > 0",
     {"states 7: running@0 10-12, blocked 12-20, woken@0 20-40, woken@1 40-45, running@1 45-50",
      "holds 7: woken@0 20-40 by 8, woken@1 40-45 by idle", "wake_ups 7: waking -, woken 20, ran 45, by -"}},
    {"WakeUps_ThatTheRecorderPutsBeforeTheSleepAreNotBelieved",
     "10 cpu0 0 preempted > 7; 30 cpu0 7 sleeping > 8; 45 cpu0 recovered 7 on 0 25 33; "
     "45 cpu0 8 sleeping > 7; 50 cpu0 wakeup 9 on 0",
     {"states 7: running@0 10-30, running@0 45-50", "recovered: 0"}},
    {"WakeUps_OfAWokenThreadAreNotRecovered",
     "10 cpu0 7 sleeping > 8; 20 cpu0 wakeup 7 on 0; 45 cpu0 recovered 7 on 0 15 33; 45 cpu0 8 sleeping > 7",
     {"wake_ups 7: waking -, woken 20, ran 45, by 8", "recovered: 0"}},
    {"Migrations_AreSeenByTheSwitchToAnotherCpu",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 preempted > 8; 30 cpu1 0 preempted > 7",
     {"migrations 7: 30: 0>1", "states 7: running@0 10-20, preempted@0 20-30"}},
    {"Migrations_CountOnceWhereTheyAreRecorded",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 preempted > 8; 25 cpu1 migrate 7 0>1; 30 cpu1 0 preempted > 7; "
     "35 cpu1 7 sleeping > 0",
     {"migrations 7: 25: 0>1",
      "states 7: running@0 10-20, preempted@0 20-25, preempted@1 25-30, running@1 30-35",
      "holds 7: preempted@0 20-25 by 8, preempted@1 25-30 by idle",
      "split 7 10 35: on 15, preempted 10, blocked 0, woken 0, moved 1",
      "split 7 10 25: on 10, preempted 5, blocked 0, woken 0, moved 1",
      "split 7 25 35: on 5, preempted 5, blocked 0, woken 0, moved 0"}},
    {"Holds_AreTheStretchesOthersRanWhereAThreadWaits",
     "10 cpu0 7 sleeping > 8; 20 cpu0 wakeup 7 on 0; 30 cpu0 8 preempted > 9; 40 cpu0 9 sleeping > 0; "
     "45 cpu0 0 preempted > 7; 60 cpu0 7 preempted > 8; 70 cpu0 8 sleeping > 7",
     {"holds 7: woken@0 20-30 by 8, woken@0 30-40 by 9, woken@0 40-45 by idle, preempted@0 60-70 by 8",
      "holds 8: preempted@0 30-40 by 9, preempted@0 40-45 by idle, preempted@0 45-60 by 7"}},
    // A thread other than the idle one leaves the CPU: its arrival was not seen, and the time is unknown.
    {"Holds_ACpuIsIdleOnlyWhereTheIdleThreadIsSeenToLeaveIt",
     "10 cpu0 7 sleeping > 0; 20 cpu0 wakeup 7 on 0; 30 cpu0 9 sleeping > 7; 40 cpu0 7 sleeping > 0; "
     "50 cpu0 wakeup 7 on 0; 60 cpu0 0 preempted > 7",
     {"holds 7: woken@0 20-30 by -, woken@0 50-60 by idle", "contradictions: 1"}},
    {"MissingKinds_OneMissingWakeUpLeavesItsSleepUnknown",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 sleeping > 0; 45 cpu0 0 preempted > 7; 50 cpu0 wakeup 8 on 0; "
     "55 cpu0 7 preempted > 8",
     {"states 7: running@0 10-20, running@0 45-55", "split 7 15 50: "}},
    {"Lost_StatesEndWhereTheLossBegins",
     "lost cpu0 30-40; 10 cpu0 0 preempted > 7; 12 cpu1 0 preempted > 8; 14 cpu2 9 sleeping > 0; "
     "50 cpu0 7 sleeping > 0; 60 cpu1 8 sleeping > 0; 65 cpu1 wakeup 9 on 2; 70 cpu2 0 preempted > 9; "
     "80 cpu2 9 sleeping > 0",
     {"states 7: running@0 10-30, running@0 40-50, blocked 50-80", "states 8: running@1 12-60, blocked 60-80",
      "states 9: blocked 14-30, woken@2 65-70, running@2 70-80", "split 7 20 45: ",
      "split 8 20 45: on 25, preempted 0, blocked 0, woken 0, moved 0", "contradictions: 0"}},
    {"Lost_OfAllCpusStopsEveryState",
     "lost all 30-40; 10 cpu0 0 preempted > 7; 12 cpu1 0 preempted > 8; 50 cpu0 9 sleeping > 0; "
     "60 cpu1 8 sleeping > 0",
     {"states 7: running@0 10-30", "states 8: running@1 12-30, running@1 40-60",
      "states 9: running@0 40-50, blocked 50-60"}},
    {"Lost_NoLatencyIsClaimedAcrossALoss",
     "10 cpu0 7 sleeping > 8; 20 cpu0 wakeup 7 on 0; lost cpu0 30-40; 50 cpu0 8 sleeping > 7",
     {"wake_ups 7: waking -, woken 20, ran -, by 8", "states 7: blocked 10-20, woken@0 20-30",
      "holds 7: woken@0 20-30 by 8"}},
    {"Lost_WhatSleepsOrWaitsDuringALossIsNotKnown",
     "lost cpu0 30-60; 10 cpu1 0 preempted > 7; 40 cpu1 7 sleeping > 0; 45 cpu1 wakeup 7 on 1; "
     "50 cpu1 0 preempted > 7; 55 cpu1 7 preempted > 8; 70 cpu1 8 sleeping > 7; 80 cpu1 7 sleeping > 0",
     {"states 7: running@1 10-40, running@1 50-55, running@1 70-80",
      "wake_ups 7: waking -, woken 45, ran -, by -"}},
    {"Lost_SaidAfterTheEventsCutsTheStatesThatReachIntoIt",
     "10 cpu0 7 sleeping > 8; 12 cpu1 0 preempted > 9; 20 cpu0 wakeup 7 on 0; 50 cpu0 8 sleeping > 7; "
     "90 cpu1 9 sleeping > 0; lost cpu0 30-40",
     {"states 7: blocked 10-20, woken@0 20-30, running@0 50-90", "states 9: running@1 12-90",
      "holds 7: woken@0 20-30 by 8", "wake_ups 7: waking -, woken 20, ran -, by 8"}},
    {"States_IdleIsNoThread",
     "10 cpu0 7 sleeping > 0; 12 cpu0 wakeup 0 on 0; 13 cpu0 migrate 0 0>1; 20 cpu0 0 preempted > 7",
     {"threads: 1"}},
    {"MissingKinds_WithoutSwitchesNothingIsClaimed",
     "10 cpu0 wakeup 7 on 0",
     {"states 7: ", "wake_ups 7: waking -, woken 10, ran -, by -", "threads: 1"}},
    // Only switches from and to 7 are recorded. 4 did not hold the CPU until 50: 5 was switched away.
    {"Filtered_ARunWhoseEndIsMissingIsNotClaimed",
     "10 cpu0 3 sleeping > 7; 20 cpu0 7 preempted > 4; 50 cpu0 5 sleeping > 7; 60 cpu0 7 sleeping > 0",
     {"states 7: running@0 10-20, preempted@0 20-50, running@0 50-60",
      "states 4: ", "states 5: blocked 50-60", "holds 7: preempted@0 20-50 by -", "contradictions: 1"}},
    // Only switches away from 7: the later ones contradict what the CPU does as well as what the thread does.
    {"Filtered_SwitchesInThatAreMissingLeaveGaps",
     "10 cpu0 7 sleeping > 0; 30 cpu0 7 sleeping > 0; 50 cpu0 7 sleeping > 0",
     {"states 7: ", "split 7 10 50: ", "contradictions: 4"}},
    {"Tree_WhoHasTheCpuThatAThreadLeavesIsNotKnown",
     "tree 7; 10 cpu0 0 preempted > 7; 12 cpu0 7 sleeping > 9; 20 cpu1 wakeup 7 on 0; 40 cpu1 migrate 7 0>1; "
     "45 cpu1 0 preempted > 7",
     {"holds 7: woken@0 20-40 by -, woken@1 40-45 by idle"}},
    {"Tree_WhoHasTheCpuThatAThreadLeavesIsAsTheRecorderSays",
     "tree 7; 10 cpu0 0 preempted > 7; 12 cpu0 7 sleeping > 9; 20 cpu1 wakeup 7 on 0; "
     "40 cpu1 held 9 on 0 28 0; 40 cpu1 migrate 7 0>1; 45 cpu1 0 preempted > 7",
     {"holds 7: woken@0 20-40 by 9, woken@1 40-45 by idle"}},
    {"Tree_TheRecorderMaySayThatACpuWasIdle",
     "tree 7; 10 cpu0 0 preempted > 7; 12 cpu0 7 sleeping > 9; 20 cpu1 wakeup 7 on 0; "
     "40 cpu1 held 0 on 0 15 0; 40 cpu1 held 9 on 0 28 17; 40 cpu1 migrate 7 0>1; 45 cpu1 0 preempted > 7",
     {"holds 7: woken@0 20-23 by 9, woken@0 23-25 by -, woken@0 25-40 by idle, woken@1 40-45 by idle"}},
    {"Tree_AMigrationOfAWaitThatOnlyTheRecorderKnowsOf",
     "tree 7; 10 cpu0 0 preempted > 7; 12 cpu0 7 sleeping > 9; 40 cpu1 held 9 on 0 28 0; "
     "40 cpu1 recovered 7 on 0 20 -1; 40 cpu1 migrate 7 0>1; 45 cpu1 0 preempted > 7",
     {"holds 7: woken@0 20-40 by 9, woken@1 40-45 by idle"}},
    // 8 belongs to the tree, too: its wait is seen, and then that of 7 turns out to have been longer.
    {"Tree_WhoHadACpuBeforeAnotherOneWaitedForIt",
     "tree 7; tree 8; 10 cpu0 0 preempted > 7; 12 cpu0 7 sleeping > 9; 50 cpu1 wakeup 8 on 0; "
     "60 cpu0 9 sleeping > 8; 70 cpu0 held 8 on 0 10 0; 70 cpu0 held 9 on 0 58 10; "
     "70 cpu0 recovered 7 on 0 50 10; 70 cpu0 8 sleeping > 7; 75 cpu0 7 sleeping > 0",
     {"holds 7: woken@0 20-60 by 9, woken@0 60-70 by 8", "holds 8: woken@0 50-60 by 9"}},
    {"Inferred_NothingIsClaimedWithoutASignOfLife",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 sleeping > 0; 60 cpu0 7 sleeping > 0; 50 cpu0 alive 8",
     {"states 7: running@0 10-20", "inferred: 0"}},
    {"Inferred_NothingIsClaimedWithinALoss",
     "10 cpu0 0 preempted > 7; 20 cpu0 7 sleeping > 0; lost cpu0 25-55; 60 cpu0 7 sleeping > 0; "
     "70 cpu0 0 preempted > 8; 50 cpu0 alive 7",
     {"inferred: 0"}},
    {"Contradictions_AThreadThatDidSomethingWhileItSleptDidNotSleep",
     "10000 cpu0 0 preempted > 7; 20000 cpu0 7 sleeping > 0; 300000 cpu0 wakeup 7 on 0; "
     "500000 cpu0 0 preempted > 7; 600000 cpu0 7 sleeping > 0; 100000 cpu0 alive 7",
     {"states 7: running@0 10000-20000, woken@0 300000-500000, running@0 500000-600000"}},
    {"Contradictions_AThreadThatDidSomethingWhileItWaitedDidNotWait",
     "10000 cpu0 0 preempted > 7; 20000 cpu0 7 sleeping > 0; 300000 cpu0 wakeup 7 on 0; "
     "500000 cpu0 0 preempted > 7; 600000 cpu0 7 sleeping > 0; 400000 cpu0 alive 7",
     {"states 7: running@0 10000-20000, blocked 20000-300000, running@0 500000-600000",
      "wake_ups 7: waking -, woken 300000, ran -, by -"}},
    {"Contradictions_WhatTheClocksOfTwoTracersMayDifferByShowsNothing",
     "10000 cpu0 0 preempted > 7; 20000 cpu0 7 sleeping > 0; 300000 cpu0 wakeup 7 on 0; "
     "500000 cpu0 0 preempted > 7; 600000 cpu0 7 sleeping > 0; 25000 cpu0 alive 7",
     {"states 7: running@0 10000-20000, blocked 20000-300000, woken@0 300000-500000, running@0 "
      "500000-600000"}},
    // The exit was not recorded.
    {"Lives_ANewThreadWithAKnownNumberIsAnotherOne",
     "10 cpu0 7 sleeping > 0; 30 cpu0 wakeup_new 7 on 0; 40 cpu0 0 preempted > 7",
     {"threads: 2", "wake_ups 7: waking -, woken 30, ran 40, by -", "row 0: "}},
    // 40: 64, which was dead before Linux 4.14 and is parked since.
    {"Lives_AnExitingThreadMayStillSleep",
     "10 cpu0 0 preempted > 7; 15 cpu0 exit 7; 20 cpu0 7 uninterruptible > 0; 30 cpu1 wakeup 7 on 0; "
     "35 cpu0 0 preempted > 7; 40 cpu0 7 other > 0; 50 cpu0 wakeup 8 on 0",
     {"states 7: running@0 10-20, blocked 20-30, woken@0 30-35, running@0 35-40", "ended 0: yes"}},
    {"Futexes_AWaitIsFromTheCallUntilItsReturn",
     "1 cpu0 fork 7 in 70; 2 cpu0 fork 8 in 70; 20 cpu0 futex 7 at 64 of 8; 50 cpu0 back 7 at 64 is 0; "
     "60 cpu0 futex 7 at 64 of 8; 61 cpu0 back 7 at 64 is 11",
     {"futexes 7: 20 to 50 at 64 of 8 is 0, 60 to 61 at 64 of 8 is 11", "futexes 8: "}},
    {"Futexes_AnOwnerIsAThreadOfTheSameProcessOrNobody",
     "1 cpu0 fork 7 in 70; 2 cpu0 fork 8 in 80; 3 cpu0 wakeup 6 on 0; 20 cpu0 futex 7 at 64 of 8; "
     "21 cpu0 back 7 at 64 is 0; 22 cpu0 futex 7 at 64 of 6; 23 cpu0 back 7 at 64 is 0; "
     "24 cpu0 futex 7 at 64 of 5; 25 cpu0 back 7 at 64 is 0; 26 cpu0 futex 7 at 64 of 0; "
     "27 cpu0 back 7 at 64 is 0",
     {"futexes 7: 20 to 21 at 64 of - is 0, 22 to 23 at 64 of - is 0, 24 to 25 at 64 of - is 0, "
      "26 to 27 at 64 of - is 0",
      "threads: 3"}},
    {"Futexes_WhatALossMayHaveEndedHasNoEnd",
     "1 cpu0 fork 7 in 70; lost all 30-40; 20 cpu0 futex 7 at 64 of 0; 50 cpu0 back 7 at 64 is 0; "
     "60 cpu0 futex 7 at 64 of 0; 70 cpu0 futex 7 at 80 of 0; 80 cpu0 back 7 at 80 is 0",
     {"futexes 7: 20 to - at 64 of - is -, 60 to - at 64 of - is -, 70 to 80 at 80 of - is 0"}},
    {"Futexes_WhatALossThatIsSaidLaterMayHaveEndedHasNoEnd",
     "1 cpu0 fork 7 in 70; 2 cpu0 fork 8 in 70; 20 cpu0 futex 7 at 64 of 0; 22 cpu0 futex 8 at 64 of 0; "
     "60 cpu0 back 8 at 64 is 0; lost cpu0 30-40; 70 cpu0 wakeup 9 on 0",
     {"futexes 7: 20 to - at 64 of - is -", "futexes 8: 22 to 60 at 64 of - is 0"}},
    {"Futexes_AWaitLastsUntilTheThreadOrTheTraceEnds",
     "1 cpu0 fork 7 in 70; 2 cpu0 fork 8 in 70; 10 cpu0 0 preempted > 7; 20 cpu0 futex 7 at 64 of 8; "
     "30 cpu0 exit 7; 35 cpu0 7 ended > 0; 40 cpu0 futex 8 at 64 of 7; 90 cpu0 wakeup 9 on 0",
     {"futexes 7: 20 to 35 at 64 of 8 is -", "futexes 8: 40 to 90 at 64 of - is -"}},
    {"Futexes_AReturnWhoseCallIsNotThereIsNoWait",
     "1 cpu0 fork 7 in 70; 20 cpu0 back 7 at 64 is 0; 30 cpu0 futex 7 at 64 of 0; 40 cpu0 back 7 at 80 is 0; "
     "50 cpu0 back 7 at 64 is 0",
     {"futexes 7: 30 to 50 at 64 of - is 0"}},
};

// What a thread did in user space, by its number.
Scheduler::Evidence ran_at(const Recording& r, std::int32_t tid, std::int64_t instant) {
  return [&r, tid, instant](std::int32_t thread, std::int64_t begin, std::int64_t end) {
    return thread == r.thread(tid) && begin < instant && instant < end ? std::optional(instant)
                                                                       : std::nullopt;
  };
}

// "10 cpu0 7 sleeping > 8" switches from 7, which is left in that state, to 8, "20 cpu1 wakeup 7 on 0" wakes
// 7, to run on CPU 0; "45 cpu0 recovered 7 on 0 25 33" says that it had been woken 25 before, and that who
// leaves had come 33 before (-1: not known); "25 cpu1 migrate 7 0>1"; "30 cpu0 exit 7"; "lost cpu0 30-40".
// "50 cpu0 alive 7": what 7 did in user space says that it ran then. "tree 7": only what concerns 7 is
// recorded, and "40 cpu1 held 9 on 0 28 3" that 9 came to CPU 0 28 before and left it 3 before. "20 cpu0
// futex 7 at 64 of 8" waits at that address for what 8 holds, "30 cpu0 back 7 at 64 is 0" returns;
// "5 cpu0 fork 7 in 70" begins it in the process 70.
void tell(Recording& r, const std::string& event, Scheduler::Evidence& evidence) {
  std::istringstream text(std::regex_replace(event, std::regex("cpu|[>-]"), " "));
  std::string first, what;
  if (event.starts_with("lost")) {
    std::int64_t begin = 0, end = 0;
    text >> first >> what >> begin >> end;
    r.scheduler.lost(r.host, what == "all" ? std::nullopt : std::optional(std::stoi(what)), begin, end);
    return;
  }
  std::int64_t time = 0;
  std::int32_t cpu = 0, tid = 0, other = 0;
  if (event.starts_with("tree")) {
    text >> first >> tid;
    return r.keep(tid);
  }
  text >> time >> cpu >> what;
  if (what == "migrate") {
    text >> tid >> other >> cpu;
    return r.migrate(time, cpu, tid, other, cpu);
  }
  if (what == "recovered") {
    std::int64_t waited = 0;
    text.str(std::regex_replace(event, std::regex("cpu"), " "));
    std::int64_t held = 0;
    text >> time >> cpu >> what >> tid >> first >> other >> waited >> held;
    return r.recovered(time, cpu, tid, other, waited, held < 0 ? std::nullopt : std::optional(held));
  }
  if (what == "held") {
    std::int64_t since = 0, until = 0;
    text >> tid >> first >> other >> since >> until;
    return r.held(time, cpu, tid, other, since, until);
  }
  if (what == "futex" || what == "back") {
    std::uint64_t address = 0;
    text >> tid >> first >> address >> first >> other;
    return what == "futex" ? r.futex_wait(time, cpu, tid, address, other)
                           : r.futex_return(time, cpu, tid, address, other);
  }
  if (what == "fork") {
    text >> tid >> first >> other;
    return r.fork(time, cpu, tid, other, "");
  }
  if (what == "exit") {
    text >> tid;
    return r.exit(time, cpu, tid);
  }
  if (what == "alive") {
    text >> tid;
    evidence = ran_at(r, tid, time);
    return;
  }
  const std::map<std::string, void (Recording::*)(std::int64_t, std::int32_t, std::int32_t, std::int32_t)>
      wakes{{"waking", &Recording::waking},
            {"wakeup", &Recording::wakeup},
            {"wakeup_new", &Recording::wakeup_new}};
  if (const auto wake = wakes.find(what); wake != wakes.end()) {
    text >> tid >> first >> other;
    return (r.*wake->second)(time, cpu, tid, other);
  }
  text >> first >> other;
  const auto states = names(EndState{});
  const auto state = std::find(states.begin(), states.end(), first);
  ASSERT_NE(state, states.end()) << event;
  r.switched(time, cpu, std::stoi(what), static_cast<EndState>(state - states.begin()), other);
}

std::string told(const Recording& r, const std::string& question) {
  std::istringstream text(question);
  std::string what;
  std::int32_t tid = 0;
  std::int64_t begin = 0, end = 0;
  text >> what >> tid >> begin >> end;
  if (what == "split") return r.split_of(tid, begin, end);
  if (what == "contradictions") return std::to_string(r.scheduler.coverage().contradictions);
  if (what == "inferred") return std::to_string(r.scheduler.coverage().inferred_states);
  if (what == "recovered") return std::to_string(r.scheduler.coverage().recovered_wakeups);
  if (what == "threads") return std::to_string(r.directory.threads().size());
  if (what == "row") return r.states_of_row(tid);
  if (what == "ended") return r.directory.threads().at(static_cast<std::size_t>(tid)).ended ? "yes" : "no";
  const std::map<std::string, std::string (Recording::*)(std::int32_t) const> answers{
      {"states", &Recording::states_of},
      {"holds", &Recording::holds_of},
      {"wake_ups", &Recording::wake_ups_of},
      {"migrations", &Recording::migrations_of},
      {"futexes", &Recording::futexes_of}};
  return (r.*answers.at(what))(tid);
}

class Definitions : public testing::TestWithParam<Definition> {};

TEST_P(Definitions, Hold) {
  Recording r;
  std::istringstream events(GetParam().events);
  Scheduler::Evidence evidence;
  for (std::string event; std::getline(events >> std::ws, event, ';');) tell(r, event, evidence);
  r.scheduler.finish(evidence);
  for (const std::string expected : GetParam().expected) {
    const std::size_t colon = expected.find(": ");
    EXPECT_EQ(told(r, expected.substr(0, colon)), expected.substr(colon + 2)) << expected;
  }
}

INSTANTIATE_TEST_SUITE_P(OfFewEvents, Definitions, testing::ValuesIn(kDefinitions),
                         [](const auto& made) { return std::string(made.param.name); });

TEST(States, RunningIsFromTheSwitchToAThreadUntilTheSwitchAway) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(30, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(7), "running@0 10-30");
  EXPECT_EQ(r.scheduler.states().end_state[0], EndState::sleeping);
  EXPECT_EQ(r.scheduler.states().priority[0], 107);
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

TEST(MissingKinds, NoEventsAreEmpty) {
  Recording r;
  r.scheduler.finish();
  EXPECT_TRUE(r.scheduler.empty());
  EXPECT_FALSE(r.scheduler.coverage().begin_ns);
  EXPECT_FALSE(r.scheduler.split(0, 0, 1));
}

TEST(Inferred, AThreadRanFromItsFirstSignOfLifeWhereTheSwitchToItIsMissing) {
  Recording r;
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 0);
  r.switched(60, 0, 7, kSleeping, 0);  // the thread that switched it in was not recorded
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
    event.previous_tid = event.emitter_tid = tid;  // as recorded by perf: the thread that ran, and its
                                                   // process
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
