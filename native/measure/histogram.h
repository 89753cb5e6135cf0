// A log-linear histogram with HdrHistogram's semantics: lossless merging, a bounded relative error,
// constant memory and constant recording time.
//
// Values are nanoseconds from 0 to 100 s with 3 significant digits. A recorded value and the one read back differ by
// less than one part in 1024 (kRelativeError); values below 2048 ns are exact. Larger values than the
// highest are counted at the highest and in saturated(); negative ones are counted in negative() and nowhere else.
//
// One thread records; any thread may read meanwhile and then sees each count either before or after
// an update, never torn. Recording neither allocates nor locks nor calls the kernel.
//
// Example:
//   PageArena arena(Histogram::kArenaBytes);
//   Histogram latency(arena);
//   latency.record(125'000, now);
//   latency.value_at_quantile(0.5);   // 125'055: the highest value equivalent to 125'000
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>

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

// Buckets needed until the last one holds kHighestTrackable; each further bucket adds kSubBucketHalfCount counts.
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
  return ((static_cast<std::uint32_t>(bucket) + 1) << kSubBucketHalfMagnitude) + sub_bucket - kSubBucketHalfCount;
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

class Histogram {
 public:
  // What a histogram takes from its arena. A page holds exactly the counts of one power of two, so that a histogram
  // costs memory only for the magnitudes it has seen.
  static constexpr std::size_t kArenaBytes = PageArena::rounded(kCountsLength * sizeof(std::uint32_t));

  // The arena outlives the histogram.
  explicit Histogram(PageArena& arena) : counts_(arena.allocate<std::uint32_t>(kCountsLength).data()) {}

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
    std::uint32_t& cell = counts_[counts_index(counted)];
    const std::uint32_t before = detail::load(cell);
    if (before == UINT32_MAX) [[unlikely]] {
      detail::add<std::uint64_t>(overflowed_, 1);
    } else {
      detail::store(cell, before + 1);
    }
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

  [[nodiscard]] std::uint32_t count_at(std::uint32_t index) const noexcept { return detail::load(counts_[index]); }
  // The half-open range of indexes outside of which every count is 0.
  [[nodiscard]] std::uint32_t begin_index() const noexcept;
  [[nodiscard]] std::uint32_t end_index() const noexcept;

  // HdrHistogram's rule: the highest value equivalent to the first one at which the cumulative count reaches
  // round(quantile * count), and for quantile 0 the lowest one. Null for an empty histogram; `quantile` in [0, 1].
  [[nodiscard]] std::optional<std::int64_t> value_at_quantile(double quantile) const noexcept;

  // Adds the counts of another histogram; exact. Not for a histogram that another thread records into.
  void merge(const Histogram& other) noexcept;
  // Back to empty; releases no memory.
  void clear() noexcept;

 private:
  std::uint32_t* counts_;
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
