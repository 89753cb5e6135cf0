// Tests each definition of docs/method.md on short lists of messages.
#include "measure/recorders.h"

#include <gtest/gtest.h>

#include <vector>

#include "../rows.h"

namespace perflab::measure {
namespace {

constexpr Nanoseconds kUs = 1'000;
constexpr Nanoseconds kMs = 1'000'000;

struct Edge {
  MessageEventQueue events;
  RecorderMemory memory{1, 0};
  EdgeRecorder recorder;
  explicit Edge(double frequency_hz = 100.0)
      : recorder(memory, events, 4, ThresholdSettings{}, frequency_hz, {.dispatch = true, .work = true}) {}
  std::vector<MessageEvent> happened() {
    std::vector<MessageEvent> list;
    for (MessageEvent event; events.pop(event);) list.push_back(event);
    return list;
  }
};

TEST(EdgeRecorder, LatencyIsCallbackMinusPublishedAndResponseIsCallbackMinusIntended) {
  Edge edge;
  edge.recorder.record_callback({1'000, 1'300, 0}, 2'000, 1'900);
  EXPECT_EQ(edge.recorder.latency().max(), 700);
  EXPECT_EQ(edge.recorder.response().max(), 1'000);
  EXPECT_EQ(edge.recorder.dispatch()->max(), 100);
  edge.recorder.record_done(2'000, 2'450);
  EXPECT_EQ(edge.recorder.work()->max(), 450);
}

TEST(EdgeRecorder, DispatchIsNotMeasuredWhereTheArrivalIsNotKnown) {
  Edge edge;
  edge.recorder.record_callback({1, 1, 0}, 2'000, kUnknownTime);
  EXPECT_EQ(edge.recorder.dispatch()->count(), 0u);
  EXPECT_EQ(edge.recorder.latency().count(), 1u);
}

TEST(EdgeRecorder, WhatIsNotAskedForIsAbsent) {
  RecorderMemory memory(1, 0);
  MessageEventQueue events;
  EdgeRecorder recorder(memory, events, 0, {}, 100.0);
  recorder.record_callback({1, 1, 0}, 2'000, 1'000);
  EXPECT_EQ(recorder.dispatch(), nullptr);
  EXPECT_EQ(recorder.work(), nullptr);
  EXPECT_FALSE(recorder.wants_done());
}

TEST(EdgeRecorder, WarmUpIsCountedApartAndRecordedNowhere) {
  Edge edge;
  edge.recorder.measure_from(1'000);
  EXPECT_FALSE(edge.recorder.record_callback({1'000, 1'001, 9}, 1'100, kUnknownTime));
  EXPECT_TRUE(edge.recorder.record_callback({1'001, 1'001, 10}, 1'100, kUnknownTime));
  EXPECT_EQ(edge.recorder.warmup_received(), 1u);
  EXPECT_EQ(edge.recorder.latency().count(), 1u);
  EXPECT_EQ(edge.recorder.sequence().lowest(), 10u);
  EXPECT_EQ(edge.recorder.sequence().gap(), 0u);
}

TEST(EdgeRecorder, DuplicatesEnterNoHistogram) {
  Edge edge;
  EXPECT_TRUE(edge.recorder.record_callback({1, 1, 0}, 10, kUnknownTime));
  EXPECT_FALSE(edge.recorder.record_callback({1, 1, 0}, 999, kUnknownTime));
  EXPECT_EQ(edge.recorder.latency().count(), 1u);
  EXPECT_EQ(edge.recorder.latency().max(), 9);
  EXPECT_EQ(edge.recorder.sequence().duplicate(), 1u);
  EXPECT_EQ(edge.recorder.on_time() + edge.recorder.late() + edge.recorder.too_late(), 1u);
}

// 100 Hz: late above min(5 ms, 20 % of 10 ms) = 2 ms, too late above min(50 ms, 10 ms) = 10 ms; strictly.
TEST(EdgeRecorder, ClassifiesByTheSmallerOfAbsoluteAndRelativeThreshold) {
  Edge edge(100.0);
  std::uint64_t sequence = 0;
  for (const Nanoseconds latency : {2 * kMs, 2 * kMs + 1, 10 * kMs, 10 * kMs + 1}) {
    edge.recorder.record_callback({1, 1, sequence++}, 1 + latency, kUnknownTime);
  }
  EXPECT_EQ(edge.recorder.on_time(), 1u);
  EXPECT_EQ(edge.recorder.late(), 2u);
  EXPECT_EQ(edge.recorder.too_late(), 1u);
  // Unlike in irobot_benchmark, too late messages stay in the statistics.
  EXPECT_EQ(edge.recorder.latency().max(), 10 * kMs + 1);
}

// Limits follow the period until the absolute limit is smaller; without a period only the absolute one
// applies.
struct Limits {
  const char* name;
  double frequency_hz;
  Nanoseconds late, too_late;
};
class ThresholdsAt : public testing::TestWithParam<Limits> {};

TEST_P(ThresholdsAt, AreTheSmallerOfBoth) {
  const Thresholds thresholds(ThresholdSettings{}, GetParam().frequency_hz);
  EXPECT_EQ(thresholds.late(), GetParam().late);
  EXPECT_EQ(thresholds.too_late(), GetParam().too_late);
}

INSTANTIATE_TEST_SUITE_P(, ThresholdsAt,
                         rows::of<Limits>({{"1kHz", 1000.0, 200 * kUs, 1 * kMs},
                                           {"100Hz", 100.0, 2 * kMs, 10 * kMs},
                                           {"10Hz", 10.0, 5 * kMs, 50 * kMs},
                                           {"2Hz", 2.0, 5 * kMs, 50 * kMs},
                                           {"NoPeriod", 0.0, 5 * kMs, 50 * kMs}}),
                         rows::by_name);

TEST(EdgeRecorder, LateAndLostMessagesBecomeEvents) {
  Edge edge(100.0);
  edge.recorder.record_callback({1, 1, 0}, 2, kUnknownTime);
  edge.recorder.record_callback({1, 1, 3}, 1 + 3 * kMs, kUnknownTime);
  edge.recorder.record_callback({1, 1, 4}, 1 + 11 * kMs, kUnknownTime);
  const std::vector<MessageEvent> events = edge.happened();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].kind, MessageEventKind::kLost);
  EXPECT_EQ(events[0].sequence, 1u);
  EXPECT_EQ(events[0].value, 2);
  EXPECT_EQ(events[1].kind, MessageEventKind::kLate);
  EXPECT_EQ(events[1].sequence, 3u);
  EXPECT_EQ(events[1].value, 3 * kMs);
  EXPECT_EQ(events[1].threshold_ns, 2 * kMs);
  EXPECT_EQ(events[2].kind, MessageEventKind::kTooLate);
  EXPECT_EQ(events[2].edge, 4u);
}

TEST(PublisherRecorder, PublishDelayAndPublishCall) {
  RecorderMemory memory(0, 1);
  PublisherRecorder recorder(memory);
  EXPECT_FALSE(recorder.first_sequence());
  recorder.record_sent({1'000, 1'250, 0}, 1'400);
  EXPECT_EQ(recorder.publish_delay().max(), 250);
  EXPECT_EQ(recorder.publish_call().max(), 150);
  EXPECT_EQ(recorder.sent(), 1u);
  EXPECT_EQ(recorder.first_sequence(), 0u);
}

TEST(PublisherRecorder, WarmUpIsCountedApart) {
  RecorderMemory memory(0, 1);
  PublisherRecorder recorder(memory);
  recorder.measure_from(5'000);
  recorder.record_sent({5'000, 5'100, 0}, 5'200);
  recorder.record_sent({6'000, 6'100, 1}, 6'200);
  recorder.record_not_sent(4'000, 3);
  recorder.record_not_sent(7'000, 2);
  recorder.record_write_error(3'000);
  recorder.record_write_error(8'000);
  EXPECT_EQ(recorder.warmup_sent(), 1u);
  EXPECT_EQ(recorder.sent(), 1u);
  EXPECT_EQ(recorder.first_sequence(), 1u);
  EXPECT_EQ(recorder.not_sent(), 2u);
  EXPECT_EQ(recorder.write_errors(), 1u);
}

TEST(PublisherRecorder, PeriodIsBetweenPublicationsAndJitterIsHowFarItIsFromWhatItShouldBe) {
  RecorderMemory memory(0, 1);
  PublisherRecorder recorder(memory, 1'000);
  recorder.measure_from(0);
  recorder.record_sent({0, 900, 0}, 910);  // warm-up: what is measured begins after it
  recorder.record_sent({1'000, 1'100, 0}, 1'110);
  ASSERT_NE(recorder.period(), nullptr);
  EXPECT_EQ(recorder.period()->count(), 0u);
  recorder.record_sent({2'000, 2'400, 1}, 2'410);
  recorder.record_sent({3'000, 3'100, 2}, 3'110);
  EXPECT_EQ(recorder.period()->count(), 2u);
  EXPECT_EQ(recorder.period()->min(), 700);
  EXPECT_EQ(recorder.period()->max(), 1'300);
  EXPECT_EQ(recorder.period_jitter()->min(), 300);
  EXPECT_EQ(recorder.period_jitter()->max(), 300);
}

TEST(PublisherRecorder, ATickThatWasLeftOutIsAPeriodOfTwo) {
  RecorderMemory memory(0, 1);
  PublisherRecorder recorder(memory, 1'000);
  recorder.record_sent({1'000, 1'000, 0}, 1'010);
  recorder.record_not_sent(2'000, 1);
  recorder.record_sent({3'000, 3'000, 1}, 3'010);
  EXPECT_EQ(recorder.period()->max(), 2'000);
  EXPECT_EQ(recorder.period_jitter()->max(), 1'000);
}

TEST(PublisherRecorder, WithoutAPeriodNoneIsRecorded) {
  RecorderMemory memory(0, 1);
  PublisherRecorder recorder(memory);
  recorder.record_sent({1'000, 1'000, 0}, 1'010);
  recorder.record_sent({2'000, 2'000, 1}, 2'010);
  EXPECT_EQ(recorder.period(), nullptr);
  EXPECT_EQ(recorder.period_jitter(), nullptr);
}

}  // namespace
}  // namespace perflab::measure
