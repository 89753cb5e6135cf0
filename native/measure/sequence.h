// Tracks which messages of a writer a reader has seen, and distinguishes gaps, reordering and duplicates
// exactly.
//
// A message that overtakes others leaves a gap; when a missing one arrives later, it moves from gap() to
// reordered(). A second arrival of the same number counts only as a duplicate. The last kWindow numbers are
// remembered; older arrivals cannot be classified and count only in beyond_window().
//
// Invariant after every update: received() + gap() == highest() - lowest() + 1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "measure/histogram.h"
#include "measure/page_arena.h"

namespace perflab::measure {

// The windows of many trackers, with their cache lines interleaved: in a short run, which uses only the first
// lines of each window, the trackers share pages, but never a cache line.
class SequenceMemory {
 public:
  static constexpr std::uint64_t kLineWords = 8;  // 64 bytes
  static constexpr std::uint64_t kLineBits = 64 * kLineWords;
  static constexpr std::uint64_t kWindowBits = 1u << 16;

  // Throws std::bad_alloc if the address space is exhausted.
  explicit SequenceMemory(std::size_t trackers)
      : arena_(bytes(trackers)),
        words_(arena_.allocate<std::uint64_t>(bytes(trackers) / sizeof(std::uint64_t)).data()),
        trackers_(trackers) {}

  // The first line of a window; the others follow at intervals of stride(). Throws std::length_error if all
  // the trackers that the memory was sized for exist already.
  std::uint64_t* add_tracker() {
    if (added_ == trackers_) throw std::length_error("sequence memory: sized for fewer trackers");
    return words_ + kLineWords * added_++;
  }
  // In words.
  [[nodiscard]] std::size_t stride() const noexcept { return kLineWords * trackers_; }
  void prefault() noexcept { arena_.prefault(bytes(trackers_)); }

 private:
  static constexpr std::size_t bytes(std::size_t trackers) { return trackers * (kWindowBits / 8); }

  PageArena arena_;
  std::uint64_t* words_;
  std::size_t trackers_;
  std::size_t added_ = 0;
};

enum class SequenceVerdict { kInOrder, kAfterGap, kReordered, kDuplicate, kBeyondWindow };

class SequenceTracker {
 public:
  static constexpr std::uint64_t kBits = SequenceMemory::kWindowBits;
  static constexpr std::uint64_t kWindow = kBits - 1;  // one less: the bit of the next number is always clear

  // The memory outlives the tracker.
  explicit SequenceTracker(SequenceMemory& memory) : seen_(memory.add_tracker()), stride_(memory.stride()) {}

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
  // Numbers between lowest() and highest() that have not arrived (yet).
  [[nodiscard]] std::uint64_t gap() const noexcept { return detail::load(gap_); }
  // Unique messages that arrived after one with a higher number.
  [[nodiscard]] std::uint64_t reordered() const noexcept { return detail::load(reordered_); }
  [[nodiscard]] std::uint64_t duplicate() const noexcept { return detail::load(duplicate_); }
  [[nodiscard]] std::uint64_t beyond_window() const noexcept { return detail::load(beyond_window_); }
  // Meaningless while received() is 0.
  [[nodiscard]] std::uint64_t lowest() const noexcept { return detail::load(lowest_); }
  [[nodiscard]] std::uint64_t highest() const noexcept { return detail::load(highest_); }

 private:
  SequenceVerdict accept(std::uint64_t sequence, SequenceVerdict verdict) noexcept {
    word(sequence) |= bit(sequence);
    detail::add<std::uint64_t>(received_, 1);
    // The next number reuses the bit of the number that leaves the window; clearing it here means that the
    // common case touches only one bit.
    forget(highest_ + 1, 1);
    return verdict;
  }
  [[nodiscard]] bool is_seen(std::uint64_t sequence) const noexcept {
    return (word(sequence) & bit(sequence)) != 0;
  }
  void forget(std::uint64_t first, std::uint64_t count) noexcept {
    if (count >= kBits) {
      for (std::uint64_t s = 0; s < kBits; s += 64) word(s) = 0;
      return;
    }
    for (std::uint64_t sequence = first; sequence != first + count; ++sequence) {
      word(sequence) &= ~bit(sequence);
    }
  }
  [[nodiscard]] std::uint64_t& word(std::uint64_t sequence) const noexcept {
    const std::uint64_t place = sequence % kBits;
    return seen_[place / SequenceMemory::kLineBits * stride_ + place / 64 % SequenceMemory::kLineWords];
  }
  [[nodiscard]] static constexpr std::uint64_t bit(std::uint64_t sequence) noexcept {
    return std::uint64_t{1} << (sequence % 64);
  }

  std::uint64_t* seen_;
  std::size_t stride_;
  std::uint64_t lowest_ = 0;
  std::uint64_t highest_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t gap_ = 0;
  std::uint64_t reordered_ = 0;
  std::uint64_t duplicate_ = 0;
  std::uint64_t beyond_window_ = 0;
};

}  // namespace perflab::measure
