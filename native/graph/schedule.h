// When messages were due, for those whose type has no place for it: the sender leaves it behind, the receiver looks it up
// by the message's sequence. In memory that all processes of a graph share, as they share a clock.
//
// A publisher has room for its last kKept messages; one that is received after as many others is not found.
//
// Example:
//   Schedule schedule(publishers, descriptor);
//   schedule.put(0, sequence, due_ns);
//   schedule.find(0, sequence);   // due_ns, or kUnknownTime
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace perflab::graph {

class Schedule {
 public:
  // Messages of one publisher that are still known.
  static constexpr std::size_t kKept = 16'384;

  // For that many publishers; those of all processes, in the same order in each. `descriptor`: of a file in memory that
  // the processes share, which is made as large as is needed; it stays the caller's. -1: memory of this process. Throws
  // Failed.
  Schedule(std::size_t publishers, int descriptor);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  // By one thread at a time for each publisher.
  void put(std::size_t publisher, std::uint64_t sequence, Nanoseconds due_ns) noexcept {
    Slot& slot = slot_of(publisher, sequence);
    // Who reads the new instant sees at least that the old sequence is gone.
    slot.key.store(0, std::memory_order_relaxed);
    slot.due_ns.store(due_ns, std::memory_order_release);
    slot.key.store(sequence + 1, std::memory_order_release);
  }

  [[nodiscard]] Nanoseconds find(std::size_t publisher, std::uint64_t sequence) const noexcept {
    const Slot& slot = slot_of(publisher, sequence);
    if (slot.key.load(std::memory_order_acquire) != sequence + 1) return kUnknownTime;
    const Nanoseconds due_ns = slot.due_ns.load(std::memory_order_acquire);
    return slot.key.load(std::memory_order_relaxed) == sequence + 1 ? due_ns : kUnknownTime;
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> key;  // the sequence and 1; 0: nothing is here, or it is being written
    std::atomic<Nanoseconds> due_ns;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Nanoseconds>::is_always_lock_free,
                "processes share no lock");

  [[nodiscard]] Slot& slot_of(std::size_t publisher, std::uint64_t sequence) const noexcept {
    return slots_[publisher * kKept + sequence % kKept];
  }

  std::size_t bytes_ = 0;
  Slot* slots_ = nullptr;
};

}  // namespace perflab::graph
