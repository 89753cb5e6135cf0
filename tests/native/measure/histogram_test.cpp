#include "measure/histogram.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <thread>
#include <vector>

namespace perflab::measure {
namespace {

struct One {
  HistogramMemory memory{1};
  Histogram histogram{memory};
};

TEST(Histogram, LayoutIsThatOfHdrHistogramForThreeDigitsAndOneHundredSeconds) {
  EXPECT_EQ(kSubBucketCount, 2048u);
  EXPECT_EQ(kCountsLength, 28672u);  // (27 buckets + 1) * 1024, as HdrHistogram computes it
}

TEST(Histogram, ValuesBelow2048AreExact) {
  for (std::int64_t value = 0; value < 2048; ++value) {
    EXPECT_EQ(value_at_index(counts_index(value)), value);
    EXPECT_EQ(highest_equivalent(value), value);
  }
}

TEST(Histogram, EveryValueLiesInItsBucketWithinTheStatedError) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> exponent(0.0, std::log(1e11));
  for (int i = 0; i < 200'000; ++i) {
    const auto value = std::min(static_cast<std::int64_t>(std::exp(exponent(random))), kHighestTrackable);
    const std::int64_t lowest = value_at_index(counts_index(value));
    const std::int64_t highest = highest_equivalent(value);
    ASSERT_LE(lowest, value);
    ASSERT_GE(highest, value);
    ASSERT_LE(static_cast<double>(highest - lowest), kRelativeError * static_cast<double>(value)) << value;
  }
}

TEST(Histogram, IndexesAreContiguousAcrossBuckets) {
  for (std::uint32_t index = 0; index + 1 < kCountsLength; ++index) {
    ASSERT_EQ(counts_index(value_at_index(index)), index);
    ASSERT_EQ(counts_index(value_at_index(index + 1) - 1), index);
  }
}

TEST(Histogram, EmptyHistogramHasNoQuantile) {
  One one;
  EXPECT_EQ(one.histogram.count(), 0u);
  EXPECT_FALSE(one.histogram.value_at_quantile(0.5));
}

TEST(Histogram, QuantilesOfOneToTenThousandFollowHdrHistogramsRule) {
  One one;
  for (std::int64_t value = 1; value <= 10'000; ++value) one.histogram.record(value, value);
  EXPECT_EQ(one.histogram.value_at_quantile(0.0), 1);
  EXPECT_EQ(one.histogram.value_at_quantile(0.5), highest_equivalent(5'000));
  EXPECT_EQ(one.histogram.value_at_quantile(0.99), highest_equivalent(9'900));
  EXPECT_EQ(one.histogram.value_at_quantile(1.0), highest_equivalent(10'000));
  EXPECT_EQ(one.histogram.min(), 1);
  EXPECT_EQ(one.histogram.max(), 10'000);
  EXPECT_EQ(one.histogram.sum(), 50'005'000);
}

TEST(Histogram, RemembersWhenTheMaximumHappenedFirst) {
  One one;
  one.histogram.record(10, 100);
  one.histogram.record(30, 200);
  one.histogram.record(20, 300);
  one.histogram.record(30, 400);
  EXPECT_EQ(one.histogram.max_at(), 200);
}

TEST(Histogram, SaturatesAndCountsWhatSaturates) {
  One one;
  one.histogram.record(kHighestTrackable, 1);
  one.histogram.record(kHighestTrackable + 1, 2);
  one.histogram.record(INT64_MAX / 4, 3);
  EXPECT_EQ(one.histogram.saturated(), 2u);
  EXPECT_EQ(one.histogram.count(), 3u);
  EXPECT_EQ(one.histogram.max(), INT64_MAX / 4);
  EXPECT_EQ(one.histogram.count_at(counts_index(kHighestTrackable)), 3u);
}

TEST(Histogram, NegativeValuesAreCountedApartAndNowhereElse) {
  One one;
  one.histogram.record(-1, 1);
  EXPECT_EQ(one.histogram.negative(), 1u);
  EXPECT_EQ(one.histogram.count(), 0u);
}

TEST(Histogram, MergingEqualsRecordingEverythingInOne) {
  HistogramMemory memory(3);
  Histogram first(memory), second(memory), both(memory);
  std::mt19937_64 random(11);
  std::lognormal_distribution<double> latency(11.0, 2.0);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<std::int64_t>(latency(random));
    (i % 3 == 0 ? first : second).record(value, i);
    both.record(value, i);
  }
  first.merge(second);
  EXPECT_EQ(first.count(), both.count());
  EXPECT_EQ(first.sum(), both.sum());
  EXPECT_EQ(first.min(), both.min());
  EXPECT_EQ(first.max(), both.max());
  EXPECT_EQ(first.max_at(), both.max_at());
  for (std::uint32_t index = 0; index < kCountsLength; ++index)
    ASSERT_EQ(first.count_at(index), both.count_at(index));
}

TEST(Histogram, ClearLeavesNothingBehind) {
  One one;
  for (std::int64_t value = 1; value < 1'000'000; value += 997) one.histogram.record(value, 1);
  one.histogram.clear();
  EXPECT_EQ(one.histogram.count(), 0u);
  for (std::uint32_t index = 0; index < kCountsLength; ++index) ASSERT_EQ(one.histogram.count_at(index), 0u);
  one.histogram.record(5, 9);
  EXPECT_EQ(one.histogram.value_at_quantile(0.5), 5);
}

TEST(Histogram, AnotherThreadMayReadWhileOneRecords) {
  One one;
  constexpr std::uint64_t kValues = 200'000;
  std::thread writer([&] {
    for (std::uint64_t i = 0; i < kValues; ++i) one.histogram.record(static_cast<std::int64_t>(i % 5'000), 1);
  });
  std::uint64_t last = 0;
  while (last < kValues) {
    const std::uint64_t count = one.histogram.count();
    EXPECT_GE(count, last);
    last = count;
    static_cast<void>(one.histogram.value_at_quantile(0.99));
  }
  writer.join();
}

TEST(PageArena, RefusesMoreThanItWasMadeFor) {
  PageArena arena(2 * PageArena::kPageBytes);
  EXPECT_EQ(arena.allocate<std::uint64_t>(512).size(), 512u);
  EXPECT_EQ(arena.allocate<std::uint64_t>(1).front(), 0u);
  EXPECT_THROW(arena.allocate<std::uint64_t>(1), std::length_error);
}

TEST(HistogramMemory, RefusesMoreHistogramsThanItWasMadeFor) {
  HistogramMemory memory(1);
  const Histogram histogram(memory);
  EXPECT_THROW(Histogram{memory}, std::length_error);
}

TEST(HistogramMemory, EveryCountOfEveryHistogramHasItsOwnPlace) {
  HistogramMemory memory(3);
  std::vector<Histogram> histograms;
  for (int i = 0; i < 3; ++i) histograms.emplace_back(memory);
  const std::uint32_t end = counts_index(kHighestTrackable);
  // Each histogram fills its counts in a different order, so that their blocks are interleaved.
  for (std::uint32_t step = 0; step <= end; ++step) {
    for (std::uint32_t i = 0; i < 3; ++i) {
      const std::uint32_t index = (step + i * (end / 3)) % (end + 1);
      for (std::uint32_t n = 0; n <= i; ++n) histograms[i].record(value_at_index(index), 1);
    }
  }
  for (std::uint32_t index = 0; index <= end; ++index) {
    for (std::uint32_t i = 0; i < 3; ++i) ASSERT_EQ(histograms[i].count_at(index), i + 1) << index;
  }
}

// Over hours more and more different values occur once or twice: they cost a quarter of frequent ones.
TEST(HistogramMemory, RareValuesCostAByteEach) {
  using Width = HistogramMemory::Width;
  HistogramMemory memory(1);
  Histogram histogram(memory);
  constexpr std::uint32_t kFirst = 20 * HistogramMemory::kBlockCounts;
  constexpr std::uint32_t kValues = 10 * HistogramMemory::kBlockCounts;
  auto count_first_to = [&, counted = 1u](std::uint32_t count) mutable {
    for (; counted < count; ++counted) histogram.record(value_at_index(kFirst), 1);
  };
  for (std::uint32_t i = 0; i < kValues; ++i) histogram.record(value_at_index(kFirst + i), 1);
  count_first_to(HistogramMemory::highest(Width::k8));
  EXPECT_EQ(memory.bytes_taken(), kValues);
  count_first_to(HistogramMemory::highest(Width::k8) + 1);
  EXPECT_EQ(memory.bytes_taken(), kValues + HistogramMemory::kBlockCounts * sizeof(std::uint32_t));
  EXPECT_EQ(histogram.count_at(kFirst), HistogramMemory::highest(Width::k8) + 1);
  for (std::uint32_t i = 1; i < kValues; ++i) EXPECT_EQ(histogram.count_at(kFirst + i), 1u) << i;
}

TEST(HistogramMemory, AReaderNeverSeesACountFallWhileItsBlockMoves) {
  for (int round = 0; round < 50; ++round) {
    One one;
    constexpr std::uint32_t kEnough = 300;
    std::thread writer([&] {
      for (std::uint32_t i = 0; i < kEnough; ++i) one.histogram.record(7, 1);
    });
    for (std::uint32_t last = 0; last < kEnough;) {
      const std::uint32_t now = one.histogram.count_at(7);
      EXPECT_GE(now, last);
      last = now;
    }
    writer.join();
  }
}

TEST(HistogramMemory, ThreadsMayTakeBlocksAtTheSameTime) {
  HistogramMemory memory(2);
  Histogram first(memory), second(memory);
  const auto fill = [](Histogram& histogram) {
    for (std::uint32_t index = 0; index <= counts_index(kHighestTrackable); ++index) {
      histogram.record(value_at_index(index), 1);
    }
  };
  std::thread other([&] { fill(second); });
  fill(first);
  other.join();
  for (std::uint32_t index = 0; index <= counts_index(kHighestTrackable); ++index) {
    ASSERT_EQ(first.count_at(index), 1u);
    ASSERT_EQ(second.count_at(index), 1u);
  }
}

}  // namespace
}  // namespace perflab::measure
