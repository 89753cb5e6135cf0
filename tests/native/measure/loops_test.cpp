#include "measure/loops.h"

#include <gtest/gtest.h>

namespace perflab::measure {
namespace {

constexpr Nanoseconds kPeriod = 10, kFrom = 1000;

TEST(Loops, AreNumberedByWhenTheirTicksWereDue) {
  LoopRecorder loops(kPeriod, 3 * kPeriod);
  loops.measure_from(kFrom);
  loops.record_woken(kFrom + 3, 1004);  // of a timer whose phase is 3
  loops.record_woken(kFrom + 23, 1024);
  EXPECT_EQ(loops.ticked(), 3u);
  EXPECT_EQ(loops.row(0).due_ns, kFrom + 3);
  EXPECT_EQ(loops.row(0).woken_ns, 1004);
  EXPECT_EQ(loops.row(1).due_ns, kUnknownTime);
  EXPECT_EQ(loops.row(2).woken_ns, 1024);
}

TEST(Loops, HaveTheWholeWayOfAMessage) {
  LoopRecorder loops(kPeriod, kPeriod);
  loops.measure_from(kFrom);
  loops.record_woken(kFrom + kPeriod, 1011);
  loops.record_sent(kFrom + kPeriod, 1012, 1013);
  loops.record_back(kFrom + kPeriod, 1014, 1015);
  const LoopTimes row = loops.row(0);
  EXPECT_EQ(row.published_ns, 1012);
  EXPECT_EQ(row.sent_ns, 1013);
  EXPECT_EQ(row.answered_ns, 1014);
  EXPECT_EQ(row.back_ns, 1015);
}

TEST(Loops, TakeTheFirstAnswerAndTheFirstMessage) {
  LoopRecorder loops(kPeriod, kPeriod);
  loops.measure_from(kFrom);
  loops.record_sent(kFrom + kPeriod, 1, 2);
  loops.record_sent(kFrom + kPeriod, 3, 4);
  loops.record_back(kFrom + kPeriod, 5, 6);
  loops.record_back(kFrom + kPeriod, 7, 8);
  EXPECT_EQ(loops.row(0).published_ns, 1);
  EXPECT_EQ(loops.row(0).back_ns, 6);
}

TEST(Loops, LeaveTheWarmUpOutAndCountTicksWithoutARow) {
  LoopRecorder loops(kPeriod, 2 * kPeriod);
  loops.measure_from(kFrom);
  loops.record_woken(kFrom, 1001);
  EXPECT_EQ(loops.ticked(), 0u);
  for (int tick = 1; tick <= 5; ++tick) {
    loops.record_woken(kFrom + tick * kPeriod, 2000);
    loops.record_back(kFrom + tick * kPeriod, 2000, 2001);
  }
  EXPECT_EQ(loops.ticked(), 3u);  // a row more than fit, for a timer that begins at once
  EXPECT_EQ(loops.beyond(), 2u);
}

}  // namespace
}  // namespace perflab::measure
