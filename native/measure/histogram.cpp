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
  // The counts themselves, not count(): a recording thread may be between the two.
  for (std::uint32_t index = begin; index < end; ++index) total += count_at(index);
  if (total == 0) return std::nullopt;
  const double wanted = std::clamp(quantile, 0.0, 1.0) * static_cast<double>(total);
  // 0.5 rounds to nearest, as HdrHistogram does.
  const std::uint64_t target = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted + 0.5));
  std::uint64_t cumulative = 0;
  for (std::uint32_t index = begin; index < end; ++index) {
    cumulative += count_at(index);
    if (cumulative < target) continue;
    return quantile <= 0.0 ? value_at_index(index) : highest_equivalent(value_at_index(index));
  }
  return highest_equivalent(std::min(max(), kHighestTrackable));
}

bool Histogram::add_narrow(std::uint32_t block, std::uint32_t index, std::uint32_t amount) noexcept {
  if (block == 0) {
    block = memory_->take(1);
    detail::store(block_of(index), block);
  }
  std::uint8_t* const counters = memory_->narrow(block);
  const std::uint32_t before = detail::load(counters[place(index)]);
  if (amount <= HistogramMemory::kHighestNarrow - before) [[likely]] {
    detail::store(counters[place(index)], static_cast<std::uint8_t>(before + amount));
    return true;
  }
  const std::uint32_t moved = memory_->take(HistogramMemory::kWideUnits) | kWide;
  for (std::uint32_t i = 0; i < HistogramMemory::kBlockCounts; ++i)
    detail::store(memory_->wide(moved & ~kWide)[i], std::uint32_t{detail::load(counters[i])});
  std::atomic_ref(block_of(index)).store(moved, std::memory_order_release);
  return add_wide(moved, index, amount);
}

void Histogram::merge(const Histogram& other) noexcept {
  const std::uint32_t begin = other.begin_index();
  const std::uint32_t end = other.end_index();
  for (std::uint32_t index = begin; index < end; ++index) {
    const std::uint32_t added = other.count_at(index);
    if (added == 0) continue;
    const std::uint32_t room = UINT32_MAX - count_at(index);
    add(index, std::min(added, room));
    overflowed_ += added - std::min(added, room);
  }
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
    if ((block & kWide) != 0) {
      std::fill_n(memory_->wide(block & ~kWide), HistogramMemory::kBlockCounts, 0u);
    } else if (block != 0) {
      std::fill_n(memory_->narrow(block), HistogramMemory::kBlockCounts, std::uint8_t{0});
    }
  }
  count_ = 0;
  min_ = INT64_MAX;
  max_ = -1;
  max_at_ = kUnknownTime;
  sum_ = 0;
  saturated_ = negative_ = overflowed_ = 0;
}

}  // namespace perflab::measure
