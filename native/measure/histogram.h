// A log-linear histogram with HdrHistogram's semantics: lossless merging, a bounded relative error,
// constant memory and constant recording time.
//
// Values are nanoseconds from 0 to 100 s with 3 significant digits. A recorded value and the one read back
// differ by less than one part in 1024 (kRelativeError); values below 2048 ns are exact. Larger values than
// the highest are counted at the highest and in saturated(); negative ones are counted in negative() and
// nowhere else.
//
// One thread records; any thread may read meanwhile and then sees each count either before or after
// an update, never torn. Recording neither allocates nor locks nor calls the kernel.
//
// Example:
//   HistogramMemory memory(1);
//   Histogram latency(memory);
//   latency.record(125'000, now);
//   latency.value_at_quantile(0.5);   // 125'055: the highest value equivalent to 125'000
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "measure/clock.h"
#include "measure/page_arena.h"

namespace perflab::measure {

// The layout follows from 3 significant digits: 2 * 10^3 rounded up to a power of two.
inline constexpr int kSubBucketHalfMagnitude = 10;
inline constexpr std::uint32_t kSubBucketHalfCount = 1u << kSubBucketHalfMagnitude;
inline constexpr std::uint32_t kSubBucketCount = 2 * kSubBucketHalfCount;
inline constexpr std::int64_t kLowestDiscernible = 1;
inline constexpr std::int64_t kHighestTrackable = 100 * kNanosecondsPerSecond;
inline constexpr int kSignificantDigits = 3;
inline constexpr double kRelativeError = 1.0 / kSubBucketHalfCount;

// Buckets needed until the last one holds kHighestTrackable; each further bucket adds kSubBucketHalfCount
// counts.
consteval std::uint32_t bucket_count() {
  std::uint32_t buckets = 1;
  for (std::int64_t limit = kSubBucketCount; limit <= kHighestTrackable; limit <<= 1) ++buckets;
  return buckets;
}
inline constexpr std::uint32_t kCountsLength = (bucket_count() + 1) * kSubBucketHalfCount;

[[nodiscard]] constexpr std::uint32_t counts_index(std::int64_t value) noexcept {
  const auto bits = static_cast<std::uint64_t>(value) | (kSubBucketCount - 1);
  const int bucket = static_cast<int>(std::bit_width(bits)) - (kSubBucketHalfMagnitude + 1);
  const auto sub_bucket = static_cast<std::uint32_t>(value >> bucket);
  return ((static_cast<std::uint32_t>(bucket) + 1) << kSubBucketHalfMagnitude) + sub_bucket -
         kSubBucketHalfCount;
}
// The smallest value that is counted at that index.
[[nodiscard]] constexpr std::int64_t value_at_index(std::uint32_t index) noexcept {
  const std::uint32_t bucket = index >> kSubBucketHalfMagnitude;
  const std::int64_t sub_bucket = index & (kSubBucketHalfCount - 1);
  if (bucket == 0) return sub_bucket;
  return (sub_bucket + kSubBucketHalfCount) << (bucket - 1);
}
[[nodiscard]] constexpr std::int64_t highest_equivalent(std::int64_t value) noexcept {
  return value_at_index(counts_index(value) + 1) - 1;
}

namespace detail {
// Single-writer counters that another thread may read: plain moves on x86 and ARM.
template <typename T>
void store(T& cell, T value) noexcept {
  std::atomic_ref<T>(cell).store(value, std::memory_order_relaxed);
}
template <typename T>
[[nodiscard]] T load(const T& cell) noexcept {
  return std::atomic_ref<T>(const_cast<T&>(cell)).load(std::memory_order_relaxed);
}
template <typename T>
void add(T& cell, T amount) noexcept {
  store(cell, static_cast<T>(load(cell) + amount));
}
}  // namespace detail

// The counts of many histograms: one mapping, sized beforehand for the worst case, from which a histogram
// takes a block of kBlockCounts neighbouring counts when the first value falls into it. Most blocks hold rare
// values, of which a long run sees ever more; so a block begins with counts of 8 bits. When one outgrows its
// bits the block moves to where they have 32; the place it had stays as it was, for a reader may be looking
// at it. Taking memory is an atomic addition, no allocation: what was never counted costs none.
// With memory locking the kernel prefaults all of it.
class HistogramMemory {
 public:
  static constexpr int kBlockMagnitude = 6;
  static constexpr std::uint32_t kBlockCounts = 1u << kBlockMagnitude;
  static constexpr std::uint32_t kBlocksPerHistogram = kCountsLength / kBlockCounts;
  static_assert(kCountsLength % kBlockCounts == 0);

  // Bits of a count.
  enum class Width : std::uint32_t { k8 = 0, k32 = 1 };
  static constexpr std::uint32_t bits(Width width) { return width == Width::k8 ? 8 : 32; }
  static constexpr std::uint32_t highest(Width width) {
    return static_cast<std::uint32_t>((std::uint64_t{1} << bits(width)) - 1);
  }
  // A block of the smallest width takes one unit.
  static constexpr std::uint32_t kUnitBytes = kBlockCounts;
  static constexpr std::uint32_t units(Width width) { return bits(width) / 8; }

  // Throws std::bad_alloc if the address space cannot be had.
  explicit HistogramMemory(std::size_t histograms)
      : arena_(bytes(histograms)),
        bytes_(arena_.allocate<std::uint8_t>(bytes(histograms)).data()),
        histograms_(histograms),
        histograms_left_(histograms) {}

  // Throws std::length_error for one histogram more than the memory was made for.
  void add_histogram() {
    if (histograms_left_ == 0) throw std::length_error("histogram memory: made for fewer histograms");
    --histograms_left_;
  }
  // A new block of zeros, as a number that says where it is and how wide; never 0. From any thread.
  [[nodiscard]] std::uint32_t take(Width width) noexcept {
    return next_unit_.fetch_add(units(width), std::memory_order_relaxed) | static_cast<std::uint32_t>(width)
                                                                               << kWidthShift;
  }
  [[nodiscard]] static constexpr Width width_of(std::uint32_t block) noexcept {
    return static_cast<Width>(block >> kWidthShift);
  }
  // Of a block that was taken, the count at a place below kBlockCounts.
  [[nodiscard]] std::uint32_t get(std::uint32_t block, std::uint32_t place) const noexcept {
    std::uint8_t* const first = at(block);
    if (width_of(block) == Width::k32) return detail::load(reinterpret_cast<std::uint32_t*>(first)[place]);
    return detail::load(first[place]);
  }
  // One thread at a time; the count fits into the block's width.
  void set(std::uint32_t block, std::uint32_t place, std::uint32_t count) const noexcept {
    std::uint8_t* const first = at(block);
    if (width_of(block) == Width::k32) {
      detail::store(reinterpret_cast<std::uint32_t*>(first)[place], count);
    } else {
      detail::store(first[place], static_cast<std::uint8_t>(count));
    }
  }
  // Has memory ready for what its histograms usually take in a run of that duration, so that recording seldom
  // meets a page for the first time and the resident memory of a long run does not grow by its instrument.
  void prefault(Nanoseconds duration) noexcept { arena_.prefault(histograms_ * usual_bytes(duration)); }
  // Of a histogram: rare values come ever more seldom. sierra_nevada, 100 messages a second on a busy machine,
  // took 4.8 KiB in 5 minutes and 9.4 in 31. benchmarks/memory_growth.py shows what is left.
  [[nodiscard]] static std::size_t usual_bytes(Nanoseconds duration) noexcept {
    constexpr double kBytesPerRootOfMinute = 2048.0;
    constexpr std::size_t kMost = 16 * 1024;
    const double minutes = static_cast<double>(duration) / (60.0 * kNanosecondsPerSecond);
    return std::min(kMost, static_cast<std::size_t>(kBytesPerRootOfMinute * std::sqrt(std::max(minutes, 0.0))));
  }
  // What blocks have taken so far.
  [[nodiscard]] std::size_t bytes_taken() const noexcept {
    return std::size_t{next_unit_.load(std::memory_order_relaxed) - 1} * kUnitBytes;
  }

 private:
  static constexpr int kWidthShift = 30;
  static constexpr std::size_t bytes(std::size_t histograms) {
    constexpr std::size_t kWorst = units(Width::k8) + units(Width::k32);
    return (histograms * kBlocksPerHistogram * kWorst + 1) * kUnitBytes;
  }
  [[nodiscard]] std::uint8_t* at(std::uint32_t block) const noexcept {
    return bytes_ + std::size_t{block & ((1u << kWidthShift) - 1)} * kUnitBytes;
  }

  PageArena arena_;
  std::uint8_t* bytes_;
  std::size_t histograms_;
  std::size_t histograms_left_;
  std::atomic<std::uint32_t> next_unit_{1};  // unit 0 is never given out
};

class Histogram {
 public:
  // The memory outlives the histogram. Throws std::length_error if it was made for fewer.
  explicit Histogram(HistogramMemory& memory) : memory_(&memory) { memory.add_histogram(); }

  void record(std::int64_t value, Nanoseconds at) noexcept {
    if (value < 0) [[unlikely]] {
      detail::add<std::uint64_t>(negative_, 1);
      return;
    }
    std::int64_t counted = value;
    if (value > kHighestTrackable) [[unlikely]] {
      detail::add<std::uint64_t>(saturated_, 1);
      counted = kHighestTrackable;
    }
    if (!add(counts_index(counted), 1)) [[unlikely]]
      detail::add<std::uint64_t>(overflowed_, 1);
    if (value > max_) {
      detail::store(max_, value);
      detail::store(max_at_, at);
    }
    if (value < min_) detail::store(min_, value);
    detail::add<std::int64_t>(sum_, value);
    detail::add<std::uint64_t>(count_, 1);
  }

  [[nodiscard]] std::uint64_t count() const noexcept { return detail::load(count_); }
  // Exact, not rounded to the histogram's resolution; without meaning while count() is 0.
  [[nodiscard]] std::int64_t min() const noexcept { return detail::load(min_); }
  [[nodiscard]] std::int64_t max() const noexcept { return detail::load(max_); }
  [[nodiscard]] Nanoseconds max_at() const noexcept { return detail::load(max_at_); }
  // Sum of all values, ns. 2^63 ns are 292 years of accumulated latency.
  [[nodiscard]] std::int64_t sum() const noexcept { return detail::load(sum_); }
  [[nodiscard]] std::uint64_t saturated() const noexcept { return detail::load(saturated_); }
  [[nodiscard]] std::uint64_t negative() const noexcept { return detail::load(negative_); }
  // Values not in the counts because their 32-bit count was full; part of count() and sum().
  [[nodiscard]] std::uint64_t overflowed() const noexcept { return detail::load(overflowed_); }

  [[nodiscard]] std::uint32_t count_at(std::uint32_t index) const noexcept {
    const std::uint32_t block = visible_block(index);
    return block == 0 ? 0 : memory_->get(block, place(index));
  }
  // Calls visit(index, count) for each count above 0 within that half-open range, ascending. Ranges into
  // which no value fell, most of a histogram, cost next to nothing.
  template <typename Visit>
  void each_count(std::uint32_t begin, std::uint32_t end, Visit visit) const {
    while (begin < end) {
      const std::uint32_t next = std::min(end, (begin | (HistogramMemory::kBlockCounts - 1)) + 1);
      const std::uint32_t block = visible_block(begin);
      for (; block != 0 && begin < next; ++begin) {
        if (const std::uint32_t count = memory_->get(block, place(begin)); count != 0) visit(begin, count);
      }
      begin = next;
    }
  }
  // The half-open range of indexes outside of which every count is 0.
  [[nodiscard]] std::uint32_t begin_index() const noexcept;
  [[nodiscard]] std::uint32_t end_index() const noexcept;

  // HdrHistogram's rule: the highest value equivalent to the first one at which the cumulative count reaches
  // round(quantile * count), and for quantile 0 the lowest one. Null for an empty histogram; `quantile` in
  // [0, 1].
  [[nodiscard]] std::optional<std::int64_t> value_at_quantile(double quantile) const noexcept;

  // Adds the counts of another histogram; exact. Not for a histogram that another thread records into.
  void merge(const Histogram& other) noexcept;
  // Back to empty; releases no memory.
  void clear() noexcept;

 private:
  [[nodiscard]] static constexpr std::uint32_t place(std::uint32_t index) noexcept {
    return index & (HistogramMemory::kBlockCounts - 1);
  }
  [[nodiscard]] const std::uint32_t& block_of(std::uint32_t index) const noexcept {
    return blocks_[index >> HistogramMemory::kBlockMagnitude];
  }
  [[nodiscard]] std::uint32_t& block_of(std::uint32_t index) noexcept {
    return blocks_[index >> HistogramMemory::kBlockMagnitude];
  }

  // With acquire: the counts of a block that has just moved are there as well.
  [[nodiscard]] std::uint32_t visible_block(std::uint32_t index) const noexcept {
    return std::atomic_ref(const_cast<std::uint32_t&>(block_of(index))).load(std::memory_order_acquire);
  }

  // False, and nothing is counted, where the count would not fit into 32 bits.
  bool add(std::uint32_t index, std::uint32_t amount) noexcept {
    std::uint32_t block = detail::load(block_of(index));
    const std::uint32_t before = block == 0 ? 0 : memory_->get(block, place(index));
    if (amount > UINT32_MAX - before) [[unlikely]]
      return false;
    const std::uint32_t after = before + amount;
    if (block == 0 || after > HistogramMemory::highest(HistogramMemory::width_of(block))) [[unlikely]]
      block = widen(index, after);
    memory_->set(block, place(index), after);
    return true;
  }
  // The block of this index, new where there was none, wide enough for that count.
  std::uint32_t widen(std::uint32_t index, std::uint32_t count) noexcept;

  HistogramMemory* memory_;
  std::array<std::uint32_t, HistogramMemory::kBlocksPerHistogram> blocks_{};  // 0: none yet
  std::uint64_t count_ = 0;
  std::int64_t min_ = INT64_MAX;
  std::int64_t max_ = -1;
  Nanoseconds max_at_ = kUnknownTime;
  std::int64_t sum_ = 0;
  std::uint64_t saturated_ = 0;
  std::uint64_t negative_ = 0;
  std::uint64_t overflowed_ = 0;
};

}  // namespace perflab::measure
