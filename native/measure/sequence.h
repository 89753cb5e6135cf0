// Which messages of a writer a reader has seen: gaps, reordering and duplicates, told apart exactly.
//
// A message that overtook others leaves a gap; when a missing one arrives after all, it moves from
// gap() to reordered(). A second arrival of the same number is a duplicate and nothing else.
// Numbers are remembered for the last kWindow of them; an older arrival can no longer be told apart and is
// counted in beyond_window() alone.
//
// Invariant after every update: received() + gap() == highest() - lowest() + 1.
#pragma once

#include <algorithm>
#include <cstdint>

#include "measure/histogram.h"

namespace perflab::measure {

enum class SequenceVerdict { kInOrder, kAfterGap, kReordered, kDuplicate, kBeyondWindow };

class SequenceTracker {
 public:
  static constexpr std::uint64_t kWindow = (1u << 16) - 1;
  static constexpr std::uint64_t kBits = kWindow + 1;  // one more: the bit of the next number is always clear

  static constexpr std::size_t kArenaBytes = PageArena::rounded(kBits / 8);

  // The arena outlives the tracker.
  explicit SequenceTracker(PageArena& arena) : seen_(arena.allocate<std::uint64_t>(kBits / 64).data()) {}

  SequenceVerdict update(std::uint64_t sequence) noexcept {
    if (detail::load(received_) == 0) [[unlikely]] {
      detail::store(lowest_, sequence);
      detail::store(highest_, sequence);
      return accept(sequence, SequenceVerdict::kInOrder);
    }
    if (sequence == highest_ + 1) [[likely]] {
      detail::store(highest_, sequence);
      return accept(sequence, SequenceVerdict::kInOrder);
    }
    if (sequence > highest_) {
      const std::uint64_t missing = sequence - highest_ - 1;
      forget(highest_ + 1, missing);
      detail::add(gap_, missing);
      detail::store(highest_, sequence);
      return accept(sequence, SequenceVerdict::kAfterGap);
    }
    if (highest_ - sequence >= kWindow) {
      detail::add<std::uint64_t>(beyond_window_, 1);
      return SequenceVerdict::kBeyondWindow;
    }
    if (sequence >= lowest_) {
      if (is_seen(sequence)) {
        detail::add<std::uint64_t>(duplicate_, 1);
        return SequenceVerdict::kDuplicate;
      }
      detail::store(gap_, gap_ - 1);
    } else {
      detail::add(gap_, lowest_ - sequence - 1);
      detail::store(lowest_, sequence);
    }
    detail::add<std::uint64_t>(reordered_, 1);
    return accept(sequence, SequenceVerdict::kReordered);
  }

  // Unique messages.
  [[nodiscard]] std::uint64_t received() const noexcept { return detail::load(received_); }
  // Numbers between lowest() and highest() that have not arrived.
  [[nodiscard]] std::uint64_t gap() const noexcept { return detail::load(gap_); }
  // Unique messages that arrived after one with a higher number.
  [[nodiscard]] std::uint64_t reordered() const noexcept { return detail::load(reordered_); }
  [[nodiscard]] std::uint64_t duplicate() const noexcept { return detail::load(duplicate_); }
  [[nodiscard]] std::uint64_t beyond_window() const noexcept { return detail::load(beyond_window_); }
  // Without meaning while received() is 0.
  [[nodiscard]] std::uint64_t lowest() const noexcept { return detail::load(lowest_); }
  [[nodiscard]] std::uint64_t highest() const noexcept { return detail::load(highest_); }

 private:
  SequenceVerdict accept(std::uint64_t sequence, SequenceVerdict verdict) noexcept {
    seen_[sequence / 64 % (kBits / 64)] |= std::uint64_t{1} << (sequence % 64);
    detail::add<std::uint64_t>(received_, 1);
    // The next number reuses the bit of the one that leaves the window; clearing it here lets the common case
    // pay for one bit only.
    forget(highest_ + 1, 1);
    return verdict;
  }
  [[nodiscard]] bool is_seen(std::uint64_t sequence) const noexcept {
    return (seen_[sequence / 64 % (kBits / 64)] >> (sequence % 64) & 1) != 0;
  }
  void forget(std::uint64_t first, std::uint64_t count) noexcept {
    if (count >= kBits) {
      std::fill_n(seen_, kBits / 64, std::uint64_t{0});
      return;
    }
    for (std::uint64_t sequence = first; sequence != first + count; ++sequence) {
      seen_[sequence / 64 % (kBits / 64)] &= ~(std::uint64_t{1} << (sequence % 64));
    }
  }

  std::uint64_t* seen_;
  std::uint64_t lowest_ = 0;
  std::uint64_t highest_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t gap_ = 0;
  std::uint64_t reordered_ = 0;
  std::uint64_t duplicate_ = 0;
  std::uint64_t beyond_window_ = 0;
};

}  // namespace perflab::measure
