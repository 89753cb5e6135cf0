// A log-linear histogram with HdrHistogram's semantics: lossless merging, bounded relative error, constant
// memory and constant recording time.
//
// Values are nanoseconds from 0 to 100 s with 3 significant digits. A recorded value and the one read back
// differ by less than one part in 1024 (kRelativeError); values below 2048 ns are exact. Values above the
// maximum are counted at the maximum and in saturated(); negative values are counted only in negative().
//
// One thread records; any thread may read concurrently and sees each count either before or after an update,
// never torn. Recording neither allocates nor locks nor calls the kernel.
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
// The smallest value counted at this index.
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

// The counts of many histograms: one mapping, sized in advance for the worst case. A histogram takes a block
// of kBlockCounts adjacent counts when the first value falls into it. Most blocks hold rare values, and a
// long run touches ever more of them; so a block starts with 8-bit counts. When a count overflows, the block
// moves to one with 32-bit counts; its old place stays unchanged, because a reader may still be looking at
// it. Taking a block is an atomic addition, not an allocation; blocks never taken cost no memory. With memory
// locking the kernel prefaults the whole mapping.
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

  // Throws std::bad_alloc if the address space is exhausted.
  explicit HistogramMemory(std::size_t histograms)
      : arena_(bytes(histograms)),
        bytes_(arena_.allocate<std::uint8_t>(bytes(histograms)).data()),
        histograms_(histograms),
        histograms_left_(histograms) {}

  // Throws std::length_error if all the histograms that the memory was sized for exist already.
  void add_histogram() {
    if (histograms_left_ == 0) throw std::length_error("histogram memory: sized for fewer histograms");
    --histograms_left_;
  }
  // Takes a new zeroed block and returns its handle (position and width), never 0. From any thread.
  [[nodiscard]] std::uint32_t take(Width width) noexcept {
    return next_unit_.fetch_add(units(width), std::memory_order_relaxed) | static_cast<std::uint32_t>(width)
                                                                               << kWidthShift;
  }
  [[nodiscard]] static constexpr Width width_of(std::uint32_t block) noexcept {
    return static_cast<Width>(block >> kWidthShift);
  }
  // The count at position `place` (below kBlockCounts) of a taken block.
  [[nodiscard]] std::uint32_t get(std::uint32_t block, std::uint32_t place) const noexcept {
    std::uint8_t* const first = at(block);
    if (width_of(block) == Width::k32) return detail::load(reinterpret_cast<std::uint32_t*>(first)[place]);
    return detail::load(first[place]);
  }
  // One thread at a time. Precondition: the count fits into the block's width.
  void set(std::uint32_t block, std::uint32_t place, std::uint32_t count) const noexcept {
    std::uint8_t* const first = at(block);
    if (width_of(block) == Width::k32) {
      detail::store(reinterpret_cast<std::uint32_t*>(first)[place], count);
    } else {
      detail::store(first[place], static_cast<std::uint8_t>(count));
    }
  }
  // Prefaults what the histograms usually take in a run of this duration, so that recording rarely causes a
  // page fault and the measurement does not grow the resident memory of a long run.
  void prefault(Nanoseconds duration) noexcept { arena_.prefault(histograms_ * usual_bytes(duration)); }
  // Bytes that one histogram usually takes; rare values become ever rarer. sierra_nevada at 100 messages a
  // second on a busy machine took 4.8 KiB in 5 minutes and 9.4 in 31. benchmarks/memory_growth.py measures
  // the remaining growth.
  [[nodiscard]] static std::size_t usual_bytes(Nanoseconds duration) noexcept {
    constexpr double kBytesPerRootOfMinute = 2048.0;
    constexpr std::size_t kMost = 16 * 1024;
    const double minutes = static_cast<double>(duration) / (60.0 * kNanosecondsPerSecond);
    return std::min(kMost, static_cast<std::size_t>(kBytesPerRootOfMinute * std::sqrt(std::max(minutes, 0.0))));
  }
  // Bytes taken by blocks so far.
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
  std::atomic<std::uint32_t> next_unit_{1};  // unit 0 is never handed out
};

class Histogram {
 public:
  // The memory outlives the histogram. Throws std::length_error if the memory was sized for fewer.
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
  // Exact, not rounded to the histogram's resolution; meaningless while count() is 0.
  [[nodiscard]] std::int64_t min() const noexcept { return detail::load(min_); }
  [[nodiscard]] std::int64_t max() const noexcept { return detail::load(max_); }
  [[nodiscard]] Nanoseconds max_at() const noexcept { return detail::load(max_at_); }
  // Sum of all values, ns. 2^63 ns are 292 years of accumulated latency.
  [[nodiscard]] std::int64_t sum() const noexcept { return detail::load(sum_); }
  [[nodiscard]] std::uint64_t saturated() const noexcept { return detail::load(saturated_); }
  [[nodiscard]] std::uint64_t negative() const noexcept { return detail::load(negative_); }
  // Values that are in count() and sum() but not in the buckets, because their 32-bit count was full.
  [[nodiscard]] std::uint64_t overflowed() const noexcept { return detail::load(overflowed_); }

  [[nodiscard]] std::uint32_t count_at(std::uint32_t index) const noexcept {
    const std::uint32_t block = visible_block(index);
    return block == 0 ? 0 : memory_->get(block, place(index));
  }
  // Calls visit(index, count) for each non-zero count in this half-open range, ascending. Empty ranges, most
  // of a histogram, cost almost nothing.
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
  // Half-open range of indexes; all counts outside are 0.
  [[nodiscard]] std::uint32_t begin_index() const noexcept;
  [[nodiscard]] std::uint32_t end_index() const noexcept;

  // As in HdrHistogram: the highest value equivalent to the first one at which the cumulative count reaches
  // round(quantile * count); for quantile 0 the lowest one. Null for an empty histogram; `quantile` in [0,
  // 1].
  [[nodiscard]] std::optional<std::int64_t> value_at_quantile(double quantile) const noexcept;

  // Adds the counts of another histogram; exact. No other thread may record into this one meanwhile.
  void merge(const Histogram& other) noexcept;
  // Resets to empty; releases no memory.
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

  // Acquire: makes the counts of a block that has just moved visible.
  [[nodiscard]] std::uint32_t visible_block(std::uint32_t index) const noexcept {
    return std::atomic_ref(const_cast<std::uint32_t&>(block_of(index))).load(std::memory_order_acquire);
  }

  // False, and nothing is counted, if the count would exceed 32 bits.
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
  // Returns the block of this index, allocated or widened if necessary to hold `count`.
  std::uint32_t widen(std::uint32_t index, std::uint32_t count) noexcept;

  HistogramMemory* memory_;
  std::array<std::uint32_t, HistogramMemory::kBlocksPerHistogram> blocks_{};  // 0: no block yet
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
