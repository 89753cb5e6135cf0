#include "measure/sequence.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <vector>

#include "../rows.h"

namespace perflab::measure {
namespace {

struct Tracked {
  SequenceMemory memory{1};
  SequenceTracker tracker{memory};
  explicit Tracked(std::initializer_list<std::uint64_t> sequences = {}) {
    for (const std::uint64_t sequence : sequences) tracker.update(sequence);
  }
};

void expect(const SequenceTracker& tracker, std::uint64_t received, std::uint64_t gap,
            std::uint64_t reordered, std::uint64_t duplicate) {
  EXPECT_EQ(tracker.received(), received);
  EXPECT_EQ(tracker.gap(), gap);
  EXPECT_EQ(tracker.reordered(), reordered);
  EXPECT_EQ(tracker.duplicate(), duplicate);
  if (received > 0) {
    EXPECT_EQ(tracker.received() + tracker.gap(), tracker.highest() - tracker.lowest() + 1);
  }
}

// A sequence of arrivals, and the expected counts.
struct Stream {
  const char* name;
  std::vector<std::uint64_t> sequences;
  std::uint64_t received, gap, reordered, duplicate;
  SequenceVerdict of_the_last;
};
class SequenceStream : public testing::TestWithParam<Stream> {};

TEST_P(SequenceStream, IsCounted) {
  const Stream& stream = GetParam();
  Tracked tracked;
  SequenceVerdict verdict{};
  for (const std::uint64_t sequence : stream.sequences) verdict = tracked.tracker.update(sequence);
  expect(tracked.tracker, stream.received, stream.gap, stream.reordered, stream.duplicate);
  EXPECT_EQ(verdict, stream.of_the_last);
  EXPECT_EQ(tracked.tracker.lowest(), std::ranges::min(stream.sequences));
}

INSTANTIATE_TEST_SUITE_P(
    , SequenceStream,
    rows::of<Stream>(
        {{"CompleteWithoutLoss", {0, 1, 2, 3}, 4, 0, 0, 0, SequenceVerdict::kInOrder},
         {"AMissingNumberIsAGap", {0, 1, 4}, 3, 2, 0, 0, SequenceVerdict::kAfterGap},
         {"ALateArrivalMovesFromGapToReordered", {0, 1, 4, 3}, 4, 1, 1, 0, SequenceVerdict::kReordered},
         {"ASecondArrivalIsADuplicate", {0, 1, 4, 3, 3}, 4, 1, 1, 1, SequenceVerdict::kDuplicate},
         {"ADuplicateOfTheLast", {0, 1, 4, 3, 3, 4}, 4, 1, 1, 2, SequenceVerdict::kDuplicate},
         {"ADuplicateOfTheFirst", {0, 1, 4, 3, 3, 4, 0}, 4, 1, 1, 3, SequenceVerdict::kDuplicate},
         {"BeginsAnywhere", {100, 101}, 2, 0, 0, 0, SequenceVerdict::kInOrder},
         {"ReachesBackLater", {100, 101, 97}, 3, 2, 1, 0, SequenceVerdict::kReordered},
         {"FillsWhatItReachedOver", {100, 101, 97, 99}, 4, 1, 2, 0, SequenceVerdict::kReordered}}),
    rows::by_name);

TEST(SequenceTracker, AnArrivalOlderThanTheWindowIsNotGuessed) {
  Tracked tracked({0, 1});
  tracked.tracker.update(SequenceTracker::kWindow + 1);  // 1 is now just older than the oldest remembered
  EXPECT_EQ(tracked.tracker.update(1), SequenceVerdict::kBeyondWindow);
  EXPECT_EQ(tracked.tracker.update(3), SequenceVerdict::kReordered);
  EXPECT_EQ(tracked.tracker.beyond_window(), 1u);
}

TEST(SequenceTracker, TheWindowIsExactAtItsEdge) {
  Tracked tracked({0, 1, 2});
  const std::uint64_t highest = SequenceTracker::kWindow + 1;
  tracked.tracker.update(highest);
  EXPECT_EQ(tracked.tracker.update(highest - SequenceTracker::kWindow + 1),
            SequenceVerdict::kDuplicate);  // 2 was seen
  EXPECT_EQ(tracked.tracker.update(highest - SequenceTracker::kWindow), SequenceVerdict::kBeyondWindow);
}

TEST(SequenceTracker, AJumpFurtherThanTheWindowForgetsEverythingBefore) {
  Tracked tracked({0, 1, 2});
  const std::uint64_t far = 10 * SequenceTracker::kWindow;
  tracked.tracker.update(far);
  for (std::uint64_t sequence = far - SequenceTracker::kWindow + 1; sequence < far; ++sequence) {
    ASSERT_EQ(tracked.tracker.update(sequence), SequenceVerdict::kReordered) << sequence;
  }
  expect(tracked.tracker, 3 + SequenceTracker::kWindow, far + 1 - 3 - SequenceTracker::kWindow,
         SequenceTracker::kWindow - 1, 0);
}

// Any stream of losses, duplicates and displacements, checked against a set that remembers everything.
TEST(SequenceTracker, AgreesWithAnExactModelOnRandomStreams) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    const std::uint64_t first = random() % 1000;
    std::vector<std::uint64_t> stream;
    for (std::uint64_t i = 0; i < 500; ++i) {
      if (random() % 10 == 0) continue;
      stream.push_back(first + i);
      if (random() % 10 == 0) stream.push_back(first + i);
    }
    for (std::size_t i = 0; i + 8 < stream.size(); ++i) {
      if (random() % 5 == 0) std::swap(stream[i], stream[i + random() % 8]);
    }
    Tracked tracked;
    std::set<std::uint64_t> seen;
    std::uint64_t reordered = 0, duplicate = 0;
    for (const std::uint64_t sequence : stream) {
      if (seen.contains(sequence)) {
        ++duplicate;
      } else {
        if (!seen.empty() && sequence < *seen.rbegin()) ++reordered;
        seen.insert(sequence);
      }
      tracked.tracker.update(sequence);
    }
    expect(tracked.tracker, seen.size(), *seen.rbegin() - *seen.begin() + 1 - seen.size(), reordered,
           duplicate);
  }
}

TEST(SequenceTracker, WindowsBesideEachOtherStayApart) {
  SequenceMemory memory(3);
  std::vector<SequenceTracker> trackers;
  for (int i = 0; i < 3; ++i) trackers.emplace_back(memory);
  // Each misses another remainder of 5.
  for (std::uint64_t sequence = 0; sequence < 2 * SequenceTracker::kWindow; ++sequence) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (sequence % 5 != i) trackers[i].update(sequence);
    }
  }
  const std::uint64_t from = SequenceTracker::kWindow + 10;
  for (std::uint64_t sequence = from; sequence < from + 5000; ++sequence) {
    for (std::size_t i = 0; i < 3; ++i) {
      const SequenceVerdict expected = sequence % 5 != i ? SequenceVerdict::kDuplicate : SequenceVerdict::kReordered;
      ASSERT_EQ(trackers[i].update(sequence), expected) << sequence << " of " << i;
    }
  }
}

TEST(SequenceMemory, IsMadeForSoManyTrackers) {
  SequenceMemory memory(1);
  SequenceTracker tracker(memory);
  EXPECT_THROW(SequenceTracker{memory}, std::length_error);
}

TEST(SequenceTracker, LongStreamsReuseTheWindow) {
  Tracked tracked;
  for (std::uint64_t sequence = 0; sequence < 5 * SequenceTracker::kWindow; ++sequence) {
    if (sequence % 100 == 7) continue;
    ASSERT_NE(tracked.tracker.update(sequence), SequenceVerdict::kDuplicate);
  }
  EXPECT_EQ(tracked.tracker.duplicate(), 0u);
  const std::uint64_t missing = 5 * SequenceTracker::kWindow - 1 - tracked.tracker.received();
  EXPECT_NEAR(static_cast<double>(tracked.tracker.gap()), static_cast<double>(missing), 1.0);
}

}  // namespace
}  // namespace perflab::measure
