#include "measure/page_arena.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "measure/histogram.h"

namespace perflab::measure {
namespace {

constexpr std::size_t kPages = 64;

std::size_t resident(std::span<std::byte> bytes) {
  std::vector<unsigned char> pages(bytes.size() / PageArena::kPageBytes);
  EXPECT_EQ(mincore(bytes.data(), bytes.size(), pages.data()), 0);
  return static_cast<std::size_t>(std::ranges::count_if(pages, [](unsigned char page) { return page & 1; }));
}

class Arena : public ::testing::Test {
 protected:
  PageArena arena_{kPages * PageArena::kPageBytes};
  std::span<std::byte> bytes_ = arena_.allocate<std::byte>(kPages * PageArena::kPageBytes);
};

TEST_F(Arena, HasNoMemoryBeforeItIsUsed) { EXPECT_EQ(resident(bytes_), 0u); }

TEST_F(Arena, HasWhatIsPrefaulted) {
  arena_.prefault(10 * PageArena::kPageBytes + 1);
  EXPECT_EQ(resident(bytes_), 11u);
  arena_.prefault(2 * kPages * PageArena::kPageBytes);
  EXPECT_EQ(resident(bytes_), kPages);
  EXPECT_TRUE(std::ranges::all_of(bytes_, [](std::byte b) { return b == std::byte{0}; }));
}

TEST_F(Arena, PrefaultingKeepsWhatIsThere) {
  bytes_[0] = bytes_[PageArena::kPageBytes] = std::byte{7};
  arena_.prefault(2 * PageArena::kPageBytes);
  EXPECT_EQ(bytes_[0], std::byte{7});
  EXPECT_EQ(bytes_[PageArena::kPageBytes], std::byte{7});
}

TEST(HistogramMemoryOfARun, GrowsWithTheRootOfItsDurationToALimit) {
  constexpr Nanoseconds kMinute = 60 * kNanosecondsPerSecond;
  const auto usual = [](Nanoseconds duration) { return HistogramMemory::usual_bytes(duration); };
  EXPECT_EQ(usual(0), 0u);
  EXPECT_EQ(usual(-kMinute), 0u);
  EXPECT_EQ(usual(4 * kMinute), 2 * usual(kMinute));
  EXPECT_GT(usual(31 * kMinute), std::size_t{9400});  // what was measured
  EXPECT_EQ(usual(1000 * kMinute), usual(10000 * kMinute));
}

}  // namespace
}  // namespace perflab::measure
