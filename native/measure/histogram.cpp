#include "measure/histogram.h"

#include <algorithm>

namespace perflab::measure {

std::uint32_t Histogram::begin_index() const noexcept {
  return count() == 0 ? 0 : counts_index(std::min(min(), kHighestTrackable));
}

std::uint32_t Histogram::end_index() const noexcept {
  return count() == 0 ? 0 : counts_index(std::min(max(), kHighestTrackable)) + 1;
}

std::optional<std::int64_t> Histogram::value_at_quantile(double quantile) const noexcept {
  std::uint64_t total = 0;
  const std::uint32_t begin = begin_index();
  const std::uint32_t end = end_index();
  // Sums the buckets rather than using count(): a recording thread may be between the two updates.
  each_count(begin, end, [&](std::uint32_t, std::uint32_t count) { total += count; });
  if (total == 0) return std::nullopt;
  const double wanted = std::clamp(quantile, 0.0, 1.0) * static_cast<double>(total);
  // 0.5 rounds to nearest, as HdrHistogram does.
  const std::uint64_t target = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted + 0.5));
  std::uint64_t cumulative = 0;
  std::optional<std::uint32_t> found;
  each_count(begin, end, [&](std::uint32_t index, std::uint32_t count) {
    cumulative += count;
    if (!found && cumulative >= target) found = index;
  });
  if (!found) return highest_equivalent(std::min(max(), kHighestTrackable));
  return quantile <= 0.0 ? value_at_index(*found) : highest_equivalent(value_at_index(*found));
}

std::uint32_t Histogram::widen(std::uint32_t index, std::uint32_t count) noexcept {
  using Width = HistogramMemory::Width;
  const std::uint32_t before = detail::load(block_of(index));
  // The width always grows: the memory is sized for that.
  const std::uint32_t block =
      memory_->take(count > HistogramMemory::highest(Width::k8) ? Width::k32 : Width::k8);
  for (std::uint32_t i = 0; before != 0 && i < HistogramMemory::kBlockCounts; ++i)
    memory_->set(block, i, memory_->get(before, i));
  // Release: a reader that sees the new block also sees its counts.
  std::atomic_ref(block_of(index)).store(block, std::memory_order_release);
  return block;
}

void Histogram::merge(const Histogram& other) noexcept {
  other.each_count(other.begin_index(), other.end_index(), [&](std::uint32_t index, std::uint32_t added) {
    const std::uint32_t room = UINT32_MAX - count_at(index);
    add(index, std::min(added, room));
    overflowed_ += added - std::min(added, room);
  });
  if (other.count() > 0) {
    if (other.max() > max_) {
      max_ = other.max();
      max_at_ = other.max_at();
    }
    min_ = std::min(min_, other.min());
  }
  sum_ += other.sum();
  count_ += other.count();
  saturated_ += other.saturated();
  negative_ += other.negative();
  overflowed_ += other.overflowed();
}

void Histogram::clear() noexcept {
  for (const std::uint32_t block : blocks_) {
    for (std::uint32_t i = 0; block != 0 && i < HistogramMemory::kBlockCounts; ++i) memory_->set(block, i, 0);
  }
  count_ = 0;
  min_ = INT64_MAX;
  max_ = -1;
  max_at_ = kUnknownTime;
  sum_ = 0;
  saturated_ = negative_ = overflowed_ = 0;
}

}  // namespace perflab::measure
