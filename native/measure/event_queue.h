// Passes events of single messages (late, too late, lost) from the measuring threads to the thread that
// writes files: bounded, lock-free, allocated once. A full queue drops the event and counts the drop; counts
// and histograms are never affected.
//
// Algorithm: bounded multi-producer queue with a turn number per slot (D. Vyukov), here with one consumer.
#pragma once

#include <atomic>
#include <cstdint>

#include "measure/clock.h"
#include "measure/page_arena.h"

namespace perflab::measure {

enum class MessageEventKind : std::uint8_t { kLate, kTooLate, kLost };

struct MessageEvent {
  Nanoseconds at_ns = 0;
  std::uint64_t sequence = 0;    // of the message; the first missing one for kLost
  std::int64_t value = 0;        // latency in ns; the number of messages for kLost
  Nanoseconds threshold_ns = 0;  // the exceeded threshold
  std::uint32_t edge = 0;
  MessageEventKind kind = MessageEventKind::kLate;
};

class MessageEventQueue {
 public:
  static constexpr std::uint64_t kCapacity = 1u << 14;

  MessageEventQueue() : memory_(kCapacity * sizeof(Slot)), slots_(memory_.allocate<Slot>(kCapacity).data()) {}

  // Touches all memory of the queue in advance. For runs with so many late messages that the whole queue is
  // used: the process's resident memory then does not grow by it.
  void prefault() noexcept { memory_.prefault(kCapacity * sizeof(Slot)); }

  void push(const MessageEvent& event) noexcept {
    std::uint64_t position = head_.load(std::memory_order_relaxed);
    while (true) {
      Slot& slot = slots_[position % kCapacity];
      const std::uint64_t turn = slot.turn.load(std::memory_order_acquire);
      const std::uint64_t free = 2 * (position / kCapacity);
      if (turn == free) {
        if (head_.compare_exchange_weak(position, position + 1, std::memory_order_relaxed)) {
          slot.event = event;
          slot.turn.store(free + 1, std::memory_order_release);
          return;
        }
      } else if (turn < free) {
        dropped_.fetch_add(1, std::memory_order_relaxed);
        return;
      } else {
        position = head_.load(std::memory_order_relaxed);
      }
    }
  }

  // One consumer at a time. False if the queue is empty.
  bool pop(MessageEvent& event) noexcept {
    Slot& slot = slots_[tail_ % kCapacity];
    const std::uint64_t full = 2 * (tail_ / kCapacity) + 1;
    if (slot.turn.load(std::memory_order_acquire) != full) return false;
    event = slot.event;
    slot.turn.store(full + 1, std::memory_order_release);
    ++tail_;
    return true;
  }

  [[nodiscard]] std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

 private:
  // All zeros is an empty queue. Slot i is free for round r at turn 2r and full at 2r + 1.
  struct Slot {
    std::atomic<std::uint64_t> turn;
    MessageEvent event;
  };
  PageArena memory_;
  Slot* slots_;
  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::uint64_t tail_ = 0;
  std::atomic<std::uint64_t> dropped_{0};
};

}  // namespace perflab::measure
