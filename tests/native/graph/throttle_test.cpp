// The rate controller of throttled publishers, with known answers; no clock and no threads.
#include "graph/throttle.h"

#include <gtest/gtest.h>

namespace perflab::graph {
namespace {

constexpr Nanoseconds kMillisecond = 1'000'000;

Throttle of_a_flood() {
  return {.sources = {{.node = "/listener", .topic = "/acknowledgement", .every = 10}},
          .target_ns = 50 * kMillisecond,
          .interval_ns = 100 * kMillisecond,
          .accepted = 0.9,
          .decrease = 0.5,
          .increase = 0.1,
          .lowest = 0.05};
}

// 1000 messages/s: 100 per interval, of which 50 may be in flight, and 10 wait for a complete
// acknowledgement.
struct Controlled : testing::Test {
  using Verdict = RateControl::Verdict;
  Throttle throttle = of_a_flood();
  RateControl control{throttle, 1000.0, 10};
};

TEST_F(Controlled, RateIsHalvedWhereAMessageIsTooOldAndGrowsByATenthOfTheFullOne) {
  EXPECT_DOUBLE_EQ(control.share(), 1.0);
  EXPECT_EQ(control.judge({.sent = 100, .accepted = 100, .all_heard = true, .worst_age = 51 * kMillisecond}), Verdict::kBehind);
  EXPECT_DOUBLE_EQ(control.share(), 0.5);
  EXPECT_EQ(control.judge({.sent = 50, .accepted = 50, .all_heard = true, .worst_age = 50 * kMillisecond}), Verdict::kInTime);
  EXPECT_DOUBLE_EQ(control.share(), 0.6);
}

TEST_F(Controlled, RateNeverExceedsTheFullOneNorFallsBelowTheLowest) {
  EXPECT_EQ(control.judge({.sent = 100, .accepted = 100, .all_heard = true, .worst_age = kMillisecond}), Verdict::kInTime);
  EXPECT_DOUBLE_EQ(control.share(), 1.0);
  for (int i = 0; i < 10; ++i) static_cast<void>(control.judge({.sent = 100, .worst_age = 80 * kMillisecond}));
  EXPECT_DOUBLE_EQ(control.share(), 0.05);
}

TEST_F(Controlled, TooFewAcknowledgementsAreBehindBeyondWhatMayBeOnItsWay) {
  // Missing: 200 - 50 - 10 - accepted, of which a tenth of 200 is tolerated.
  EXPECT_EQ(control.judge({.sent = 200, .accepted = 121, .all_heard = true, .worst_age = kMillisecond}), Verdict::kInTime);
  EXPECT_EQ(control.judge({.sent = 200, .accepted = 118, .all_heard = true, .worst_age = kMillisecond}), Verdict::kBehind);
}

TEST_F(Controlled, SilenceOfAReaderKeepsTheRateUntilMoreIsMissingThanMayBeOnItsWay) {
  EXPECT_EQ(control.judge({.sent = 60}), Verdict::kUnknown);
  EXPECT_DOUBLE_EQ(control.share(), 1.0);
  EXPECT_EQ(control.judge({.sent = 100}), Verdict::kBehind);
  EXPECT_DOUBLE_EQ(control.share(), 0.5);
}

TEST(Acknowledged, CountsAndKeepsTheOldestSinceItWasTaken) {
  Acknowledged source;
  source.heard(100, 110);
  source.heard(200, 230);
  source.heard(300, 305);
  const Acknowledged::Heard heard = source.take();
  EXPECT_EQ(heard.count, 3u);
  EXPECT_EQ(heard.worst_age, 30);
  EXPECT_EQ(source.take().worst_age, kUnknownTime);
}

TEST(Acknowledged, WhatWasDueBeforeADecreaseSaysNothing) {
  Acknowledged source;
  source.ignore_until(200);
  source.heard(200, 900);
  source.heard(201, 210);
  const Acknowledged::Heard heard = source.take();
  EXPECT_EQ(heard.count, 1u);
  EXPECT_EQ(heard.worst_age, 9);
}

// Ticks every ms; an acknowledgement comes `age` later for every tenth message sent.
struct Ticking {
  Throttle throttle = of_a_flood();
  LiveThrottle live{throttle, 1000.0, 10'000 * kMillisecond};
  Nanoseconds now = 0;
  std::uint64_t sent = 0;

  void tick(Nanoseconds age) {
    now += kMillisecond;
    if (!live.admits(now, true)) return;
    if (++sent % 10 == 0) live.source(0).heard(now, now + age);
  }
};

TEST(LiveThrottle, LetsEverythingThroughWhileReadersKeepUp) {
  Ticking one;
  for (int i = 0; i < 1000; ++i) one.tick(5 * kMillisecond);
  EXPECT_EQ(one.sent, 1000u);
  EXPECT_EQ(one.live.withheld(), 0u);
  ASSERT_EQ(one.live.steps(), 9u);  // the tenth interval is not over
  EXPECT_DOUBLE_EQ(one.live.step(8).rate_hz, 1000.0);
}

TEST(LiveThrottle, HalvesTheRateOfEachIntervalInWhichReadersAreLateAndComesBackAfterwards) {
  Ticking one;
  for (int i = 0; i < 301; ++i) one.tick(60 * kMillisecond);
  ASSERT_EQ(one.live.steps(), 3u);
  EXPECT_DOUBLE_EQ(one.live.step(0).rate_hz, 500.0);
  EXPECT_DOUBLE_EQ(one.live.step(1).rate_hz, 250.0);
  EXPECT_DOUBLE_EQ(one.live.step(2).rate_hz, 125.0);
  EXPECT_EQ(one.live.withheld(), 301u - one.sent);
  for (int i = 0; i < 1500; ++i) one.tick(kMillisecond);
  EXPECT_DOUBLE_EQ(one.live.step(one.live.steps() - 1).rate_hz, 1000.0);
}

TEST(LiveThrottle, MessagesOfOthersCountByTheirAgeAlone) {
  Throttle throttle = of_a_flood();
  throttle.sources.push_back({.node = "/listener", .topic = "/watched", .every = 1, .counted = false});
  LiveThrottle live(throttle, 1000.0, 1000 * kMillisecond);
  Nanoseconds now = 0;
  const auto interval = [&] {
    for (int i = 1; i <= 100; ++i) {
      now += kMillisecond;
      static_cast<void>(live.admits(now, true));
      if (i % 10 == 0) live.source(0).heard(now, now + kMillisecond);
    }
  };
  interval();
  live.source(1).heard(now, now + 90 * kMillisecond);
  interval();
  ASSERT_EQ(live.steps(), 1u);
  EXPECT_DOUBLE_EQ(live.step(0).rate_hz, 500.0);
}

TEST(LiveThrottle, StepsBeyondTheTrialAreCounted) {
  Throttle throttle = of_a_flood();
  LiveThrottle live(throttle, 1000.0, 0);
  for (Nanoseconds now = 0; now < 5'000 * kMillisecond; now += kMillisecond) static_cast<void>(live.admits(now, true));
  EXPECT_EQ(live.steps(), 16u);
  EXPECT_GT(live.steps_beyond(), 0u);
}

}  // namespace
}  // namespace perflab::graph
