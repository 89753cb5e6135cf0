// The order of events of several streams.
#include "ctf/merge.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ctf/decoder.h"
#include "made_trace.h"

namespace perflab::ctf::test {
namespace {

struct Merged {
  std::uint32_t input = 0;
  Seen seen;
  bool operator==(const Merged&) const = default;
};

std::vector<MergeInput> all_of(const Trace& trace) {
  std::vector<MergeInput> inputs;
  for (std::size_t i = 0; i < trace.streams.size(); ++i) inputs.push_back({&trace, 0, i, 0, {}});
  return inputs;
}

std::vector<Merged> merge(const std::vector<MergeInput>& inputs, unsigned threads) {
  Merger merger(inputs, threads);
  std::vector<Merged> result;
  for (MergedEvent event; merger.next(event);) {
    result.push_back({event.input, look_at(*inputs[event.input].trace, event.event)});
  }
  MergedEvent after;
  EXPECT_FALSE(merger.next(after));
  return result;
}

// A trace with one stream for each list of times.
OneTrace made_of(const std::vector<std::vector<std::uint64_t>>& streams, int sequence = 0) {
  std::map<std::string, std::vector<std::uint8_t>> files;
  for (std::size_t i = 0; i < streams.size(); ++i) {
    MadePacket packet(0, 1U << 30U, 0, 0, i, static_cast<std::uint32_t>(i));
    for (const auto time : streams[i]) {
      packet.event(0, time);
      const auto length = sequence == 0 ? 0 : (time + i) % static_cast<std::uint64_t>(sequence);
      packet.bits.put(length, 8);
      for (std::uint64_t k = 0; k < length; ++k) packet.bits.put(time + k, 16);
      packet.bits.text(std::to_string(time % 100));
    }
    files["s" + std::to_string(1000 + i)] = packet.bytes();
  }
  return OneTrace(prologue() + stream(kPlainHeader, {{"e", "u8 n; u16 v[n]; string s;"}}), files);
}

std::vector<std::pair<std::uint32_t, std::int64_t>> order(const std::vector<Merged>& events) {
  std::vector<std::pair<std::uint32_t, std::int64_t>> result;
  for (const auto& event : events) result.emplace_back(event.input, event.seen.time_ns);
  return result;
}

class Merging : public testing::TestWithParam<unsigned> {};

TEST_P(Merging, IsByTimeAndThenByInput) {
  const OneTrace made = made_of({{1, 5, 5, 9}, {2, 5, 5}, {5, 8}});
  EXPECT_EQ(order(merge(all_of(*made), GetParam())),
            (std::vector<std::pair<std::uint32_t, std::int64_t>>{
                {0, 1}, {1, 2}, {0, 5}, {0, 5}, {1, 5}, {1, 5}, {2, 5}, {2, 8}, {0, 9}}));
}

TEST_P(Merging, HandsOutAnOlderEventRightAfterItsPredecessor) {
  const OneTrace made = made_of({{10, 3, 12}, {4, 10, 11}});
  EXPECT_EQ(order(merge(all_of(*made), GetParam())),
            (std::vector<std::pair<std::uint32_t, std::int64_t>>{
                {1, 4}, {0, 10}, {0, 3}, {1, 10}, {1, 11}, {0, 12}}));
}

TEST_P(Merging, ShiftsTimes) {
  const OneTrace made = made_of({{1, 5}, {2, 5}});
  auto inputs = all_of(*made);
  inputs[0].shift_ns = 100;
  inputs[0].trace_index = 7;
  inputs[1].shift_ns = -3;
  EXPECT_EQ(order(merge(inputs, GetParam())),
            (std::vector<std::pair<std::uint32_t, std::int64_t>>{{1, -1}, {1, 2}, {0, 101}, {0, 105}}));
}

TEST_P(Merging, OfNothingIsNothing) {
  Merger merger({}, GetParam());
  MergedEvent event;
  EXPECT_FALSE(merger.next(event));
}

TEST_P(Merging, GivesEachReaderItsCounts) {
  const OneTrace made = made_of({{1, 5, 5, 9}, {}, {5, 8}});
  auto inputs = all_of(*made);
  inputs[2].wanted = {false};
  Merger merger(inputs, GetParam());
  std::size_t events = 0;
  for (MergedEvent event; merger.next(event);) ++events;
  EXPECT_EQ(events, 4U);
  EXPECT_EQ(merger.reader(0).counts().at(0), 4U);
  EXPECT_EQ(merger.reader(1).counts().at(0), 0U);
  EXPECT_EQ(merger.reader(2).counts().at(0), 2U);
}

INSTANTIATE_TEST_SUITE_P(Threads, Merging, testing::Values(1U, 2U, 4U));

std::vector<std::vector<std::uint64_t>> random_times(std::size_t streams, std::size_t events) {
  std::mt19937 random(11);
  std::vector<std::vector<std::uint64_t>> result(streams);
  for (auto& times : result) {
    std::uint64_t time = 0;
    // One in a few thousand is older than the one before.
    for (std::size_t i = 0; i < events; ++i)
      times.push_back(time += random() % 9 - (random() % 3000 == 0 && time > 9 ? 9 : 0));
  }
  return result;
}

// Many batches, elements that need memory of their own.
TEST(MergingAhead, HandsOutTheSame) {
  const OneTrace made = made_of(random_times(7, 6000), 40);
  const auto expected = merge(all_of(*made), 1);
  ASSERT_EQ(expected.size(), 42000U);
  for (const unsigned threads : {2U, 3U, 16U})
    EXPECT_TRUE(merge(all_of(*made), threads) == expected) << threads;
}

// With LTTng's headers, and events of fixed size beside others: some are decoded many at once, some are not.
TEST(MergingAhead, HandsOutTheSameOfLttngsHeaders) {
  for (const bool is_large : {true, false}) {
    std::map<std::string, std::vector<std::uint8_t>> files;
    std::mt19937 random(5);
    std::vector<std::pair<std::int64_t, std::uint64_t>> expected;  // time, and the input
    for (std::uint32_t input = 0; input < 4; ++input) {
      MadePacket packet(0, 1U << 30U, 0, 0, input, input);
      std::uint64_t time = 0;
      for (int i = 0; i < 5000; ++i) {
        time += random() % 50;
        const std::uint64_t id = random() % 16 == 0 ? 1 + random() % 2 : 0;
        packet.bits.align(8).put(id, is_large ? 16 : 5).put(time, is_large ? 32 : 27);
        if (id == 0) packet.bits.put(input, 32).put(time, 64);
        if (id == 1) packet.bits.text(std::to_string(input));
        expected.emplace_back(static_cast<std::int64_t>(time), input);
      }
      files["s" + std::to_string(input)] = packet.bytes();
    }
    std::stable_sort(expected.begin(), expected.end());
    const OneTrace trace(
        prologue() + stream(is_large ? kLargeHeader : kCompactHeader,
                            {{"fixed", "u32 a; u64 b;"}, {"text", "string s;"}, {"empty", ""}}),
        files);
    const auto inputs = all_of(*trace);
    for (const unsigned threads : {1U, 2U, 4U}) {
      const auto merged = merge(inputs, threads);
      ASSERT_EQ(merged.size(), expected.size());
      for (std::size_t i = 0; i < merged.size(); ++i) {
        ASSERT_EQ(merged[i].seen.time_ns, expected[i].first) << i;
        ASSERT_EQ(merged[i].input, expected[i].second) << i;
        if (merged[i].seen.name != "fixed") continue;
        ASSERT_EQ(merged[i].seen.values,
                  (std::vector<std::uint64_t>{merged[i].input,
                                              static_cast<std::uint64_t>(merged[i].seen.time_ns)}));
      }
    }
  }
}

TEST_P(Merging, TakesMemoryByWhatThereIs) {
  constexpr std::size_t kInputs = 2000;
  const OneTrace made = made_of({{1, 2, 3}});
  const std::vector<MergeInput> inputs(kInputs, MergeInput{&*made, 0, 0, 0, {}});
  Merger merger(inputs, GetParam());
  std::size_t events = 0;
  for (MergedEvent event; merger.next(event);) ++events;
  EXPECT_EQ(events, 3 * kInputs);
  EXPECT_GE(merger.words(), 3 * kInputs);
  EXPECT_LE(merger.words(), 600 * kInputs);
}

TEST_P(Merging, TakesBoundedMemory) {
  constexpr std::size_t kInputs = 2000;
  std::vector<std::uint64_t> times(1500);
  for (std::size_t i = 0; i < times.size(); ++i) times[i] = i;
  const OneTrace made = made_of({times});
  const std::vector<MergeInput> inputs(kInputs, MergeInput{&*made, 0, 0, 0, {}});
  Merger merger(inputs, GetParam());
  MergedEvent event;
  // Until each input had several batches.
  for (std::size_t i = 0; i < 600 * kInputs; ++i) ASSERT_TRUE(merger.next(event));
  EXPECT_LE(merger.words(), (std::size_t{100} << 20U) / 8);
}

TEST(Reading, ByEventAndByBatchDoNotMix) {
  const OneTrace made = made_of({{1, 2, 3}});
  StreamReader reader(*made, 0);
  Event event;
  ASSERT_TRUE(reader.next(event));
  std::vector<Event> events(4);
  std::vector<std::uint64_t> slots(4 * reader.slots());
  ElementMemory memory;
  EXPECT_THROW((void)reader.next(std::span(events), std::span(slots), memory), std::logic_error);
}

TEST(MergingAhead, CanBeGivenUpAnywhere) {
  const OneTrace made = made_of(random_times(5, 5000), 4);
  for (const std::size_t events : {0U, 1U, 1500U, 20000U}) {
    Merger merger(all_of(*made), 3);
    MergedEvent event;
    for (std::size_t i = 0; i < events; ++i) ASSERT_TRUE(merger.next(event));
  }
}

}  // namespace
}  // namespace perflab::ctf::test
