// What messages do not say of themselves, for types that have no place for it: the sender leaves it behind, the receiver
// looks it up by what it knows of the message. In memory that all processes of a graph share, as they share a clock.
//
// A key is a sequence, or a source time stamp made by stamp_for(). A publisher has room for its last kKept messages; one
// that is received after as many others is not found.
//
// Example:
//   Schedule schedule(publishers, descriptor);
//   schedule.put(0, sequence, {.due_ns = due_ns});
//   schedule.find(0, sequence).due_ns;   // or kUnknownTime
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

  struct Entry {
    Nanoseconds due_ns = kUnknownTime;
    Nanoseconds published_ns = kUnknownTime;
    std::uint64_t sequence = 0;
  };

  // A source time stamp that is unique among the last kKept of a publisher: the instant, but for 16 µs, and in their place
  // the number of the message, by which its slot is found.
  static constexpr std::int64_t stamp_for(std::int64_t wall_clock_ns, std::uint64_t number) noexcept {
    constexpr auto kLow = static_cast<std::int64_t>(kKept - 1);
    return (wall_clock_ns & ~kLow) | (static_cast<std::int64_t>(number) & kLow);
  }

  // By one thread at a time for each publisher.
  void put(std::size_t publisher, std::uint64_t key, const Entry& entry) noexcept {
    Slot& slot = slot_of(publisher, key);
    // Who reads anything of the new entry sees at least that the old key is gone.
    slot.key.store(0, std::memory_order_relaxed);
    slot.due_ns.store(entry.due_ns, std::memory_order_release);
    slot.published_ns.store(entry.published_ns, std::memory_order_release);
    slot.sequence.store(entry.sequence, std::memory_order_release);
    slot.key.store(key + 1, std::memory_order_release);
  }

  // All unknown where it is not there, or not any more.
  [[nodiscard]] Entry find(std::size_t publisher, std::uint64_t key) const noexcept {
    const Slot& slot = slot_of(publisher, key);
    if (slot.key.load(std::memory_order_acquire) != key + 1) return {};
    const Entry entry{slot.due_ns.load(std::memory_order_acquire), slot.published_ns.load(std::memory_order_acquire),
                      slot.sequence.load(std::memory_order_acquire)};
    return slot.key.load(std::memory_order_relaxed) == key + 1 ? entry : Entry{};
  }

 private:
  struct Slot {
    std::atomic<std::uint64_t> key;  // and 1; 0: nothing is here, or it is being written
    std::atomic<Nanoseconds> due_ns;
    std::atomic<Nanoseconds> published_ns;
    std::atomic<std::uint64_t> sequence;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Nanoseconds>::is_always_lock_free,
                "processes share no lock");

  static_assert((kKept & (kKept - 1)) == 0, "stamp_for() takes its low bits");

  [[nodiscard]] Slot& slot_of(std::size_t publisher, std::uint64_t key) const noexcept {
    return slots_[publisher * kKept + key % kKept];
  }

  std::size_t bytes_ = 0;
  Slot* slots_ = nullptr;
};

}  // namespace perflab::graph
