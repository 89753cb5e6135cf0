// The disturbance of one edge, with exact answers.
#include "middleware/disturb/disturbance.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

namespace perflab::middleware::disturb {
namespace {

// What becomes of `count` messages, sent one per millisecond from 0.
struct Result {
  std::vector<int> order;  // of arrival, by number from 1, copies included
  std::vector<std::int64_t> due_ns;
  std::uint64_t lost;
  int overtaken = 0;
  int copies = 0;
  int stalled = 0;
};

Result run(const Program& program, int count, std::uint64_t stream = 0) {
  Disturbance disturbance(program, stream);
  std::vector<int> messages(static_cast<std::size_t>(count));
  std::iota(messages.begin(), messages.end(), 1);
  Result result{};
  Disturbance::Arrivals arrivals;
  const auto note = [&] {
    for (const auto& arrival : arrivals) {
      result.order.push_back(*static_cast<int*>(arrival.message));
      result.due_ns.push_back(arrival.due_ns);
      result.overtaken += arrival.overtaken && !arrival.copy ? 1 : 0;
      result.copies += arrival.copy ? 1 : 0;
      result.stalled += arrival.stalled && !arrival.copy ? 1 : 0;
    }
  };
  for (int& message : messages) {
    disturbance.offer(&message, (message - 1) * std::int64_t{1'000'000}, arrivals);
    note();
  }
  disturbance.release(arrivals);
  note();
  result.lost = disturbance.lost();
  EXPECT_EQ(disturbance.offered(), static_cast<std::uint64_t>(count));
  return result;
}

TEST(Disturbance, PassesEverythingAtOnceByDefault) {
  const Result result = run({}, 4);
  EXPECT_EQ(result.order, (std::vector{1, 2, 3, 4}));
  EXPECT_EQ(result.due_ns, (std::vector<std::int64_t>{0, 1'000'000, 2'000'000, 3'000'000}));
  EXPECT_EQ(result.lost, 0u);
}

TEST(Disturbance, DelaysEveryMessageByTheSame) {
  Program program;
  program.delay_ns = 2'500'000;
  EXPECT_EQ(run(program, 3).due_ns, (std::vector<std::int64_t>{2'500'000, 3'500'000, 4'500'000}));
}

TEST(Disturbance, LosesEveryNth) {
  Program program;
  program.loss_every = 3;
  const Result result = run(program, 10);
  EXPECT_EQ(result.order, (std::vector{1, 2, 4, 5, 7, 8, 10}));
  EXPECT_EQ(result.lost, 3u);
}

TEST(Disturbance, LosesAllOrNothingAtTheEndsOfProbability) {
  Program program;
  program.loss = 1;
  EXPECT_EQ(run(program, 100).lost, 100u);
  program.loss = 0;
  EXPECT_EQ(run(program, 100).lost, 0u);
}

TEST(Disturbance, LosesByProbabilityTheSameOnesForTheSameSeed) {
  Program program;
  program.loss = 0.1;
  const Result result = run(program, 10'000);
  EXPECT_EQ(run(program, 10'000).order, result.order);
  // Binomial: 1000 expected, 30 is the standard deviation.
  EXPECT_NEAR(static_cast<double>(result.lost), 1000, 150);
  EXPECT_NE(run(program, 10'000, 1).order, result.order) << "another edge";
  program.seed = 2;
  EXPECT_NE(run(program, 10'000).order, result.order);
}

TEST(Disturbance, JitterDoesNotChangeWhatIsLost) {
  Program program;
  program.loss = 0.2;
  const auto order = run(program, 1000).order;
  program.jitter_ns = 5'000'000;
  EXPECT_EQ(run(program, 1000).order, order);
}

TEST(Disturbance, DeliversEveryNthAfterItsSuccessor) {
  Program program;
  program.reorder_every = 3;
  const Result result = run(program, 9);
  EXPECT_EQ(result.order, (std::vector{1, 2, 4, 3, 5, 7, 6, 8, 9}))
      << "9 has no successor and is released in order";
  EXPECT_EQ(result.overtaken, 2);
  EXPECT_EQ(result.due_ns[3], result.due_ns[2]) << "due with its successor";
}

TEST(Disturbance, ReorderingSkipsLostSuccessors) {
  Program program;
  program.reorder_every = 4;
  program.loss_every = 5;
  const Result result = run(program, 8);
  EXPECT_EQ(result.order, (std::vector{1, 2, 3, 6, 4, 7, 8}));
  EXPECT_EQ(result.lost, 1u);
  EXPECT_EQ(result.overtaken, 1);
}

TEST(Disturbance, ReorderingEverySecondSwapsPairs) {
  Program program;
  program.reorder_every = 2;
  EXPECT_EQ(run(program, 7).order, (std::vector{1, 3, 2, 5, 4, 7, 6}));
}

TEST(Disturbance, HeldMessageTellsUntilWhenItWaits) {
  Program program;
  program.delay_ns = 1000;
  program.reorder_every = 2;
  Disturbance disturbance(program, 0);
  Disturbance::Arrivals arrivals;
  int first = 1, second = 2;
  EXPECT_EQ(disturbance.offer(&first, 0, arrivals), Disturbance::Outcome::passed);
  EXPECT_EQ(disturbance.offer(&second, 500, arrivals), Disturbance::Outcome::held);
  EXPECT_EQ(arrivals.size(), 0u);
  EXPECT_EQ(disturbance.held(), &second);
  EXPECT_EQ(disturbance.held_until_ns(), 1500 + kReorderFlush_ns);
  disturbance.release(arrivals);
  ASSERT_EQ(arrivals.size(), 1u);
  EXPECT_FALSE(arrivals.begin()->overtaken);
  EXPECT_EQ(disturbance.held(), nullptr);
}

TEST(Disturbance, WhatIsHeldIsNotReleasedInAStall) {
  Program program;
  program.reorder_every = 2;
  program.stall_every_ns = 200'000'000;
  program.stall_ns = 150'000'000;
  Disturbance disturbance(program, 0);
  Disturbance::Arrivals arrivals;
  int first = 1, second = 2;
  disturbance.offer(&first, 189'000'000, arrivals);
  EXPECT_EQ(disturbance.offer(&second, 190'000'000, arrivals), Disturbance::Outcome::held);
  EXPECT_EQ(disturbance.held_until_ns(), 350'000'000) << "190 + 50 ms lies in the stall from 200 to 350";
}

TEST(Disturbance, DoublesEveryNth) {
  Program program;
  program.duplicate_every = 2;
  const Result result = run(program, 5);
  EXPECT_EQ(result.order, (std::vector{1, 2, 2, 3, 4, 4, 5}));
  EXPECT_EQ(result.copies, 2);
}

TEST(Disturbance, DoubledAndReorderedArrivesTwiceAfterItsSuccessor) {
  Program program;
  program.duplicate_every = 2;
  program.reorder_every = 2;
  const Result result = run(program, 3);
  EXPECT_EQ(result.order, (std::vector{1, 3, 2, 2}));
  EXPECT_EQ(result.overtaken, 1);
}

TEST(Disturbance, StallsHoldBackWhatIsDueInThemUntilTheirEnd) {
  Program program;
  program.stall_every_ns = 10'000'000;
  program.stall_ns = 3'000'000;
  // Sent at 0, 1, 2, ... ms: the first three of each ten are due in a stall.
  const Result result = run(program, 14);
  EXPECT_EQ(result.order, (std::vector{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}));
  EXPECT_EQ(result.stalled, 6);
  std::vector<std::int64_t> ms;
  for (const std::int64_t due_ns : result.due_ns) ms.push_back(due_ns / 1'000'000);
  EXPECT_EQ(ms, (std::vector<std::int64_t>{3, 3, 3, 3, 4, 5, 6, 7, 8, 9, 13, 13, 13, 13}));
}

TEST(Disturbance, StallsCountFromWhenAMessageIsDueAndNotFromWhenItIsSent) {
  Program program;
  program.delay_ns = 8'000'000;
  program.stall_every_ns = 10'000'000;
  program.stall_ns = 3'000'000;
  const Result result = run(program, 6);
  EXPECT_EQ(result.due_ns, (std::vector<std::int64_t>{8'000'000, 9'000'000, 13'000'000, 13'000'000, 13'000'000, 13'000'000}));
  EXPECT_EQ(result.stalled, 3);
}

TEST(Disturbance, JitterLiesWithinItsBoundsAndKeepsTheOrder) {
  Program program;
  program.delay_ns = 10'000'000;
  program.jitter_ns = 800'000;  // less than the period: nothing is pushed by its predecessor
  const Result result = run(program, 10'000);
  std::int64_t least = INT64_MAX, most = 0;
  double sum = 0;
  for (std::size_t i = 0; i < result.due_ns.size(); ++i) {
    const std::int64_t extra = result.due_ns[i] - static_cast<std::int64_t>(i) * 1'000'000 - 10'000'000;
    least = std::min(least, extra);
    most = std::max(most, extra);
    sum += static_cast<double>(extra);
  }
  EXPECT_GE(least, 0);
  EXPECT_LT(most, 800'000);
  EXPECT_LT(least, 8'000);
  EXPECT_GT(most, 792'000);
  EXPECT_NEAR(sum / 10'000, 400'000, 10'000);  // standard error of the mean: 2310
  program.jitter_ns = 50'000'000;
  const Result pushed = run(program, 1000);
  EXPECT_TRUE(std::is_sorted(pushed.order.begin(), pushed.order.end()));
  EXPECT_TRUE(std::is_sorted(pushed.due_ns.begin(), pushed.due_ns.end()));
}

}  // namespace
}  // namespace perflab::middleware::disturb
