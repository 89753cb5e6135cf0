// Data that messages do not carry, because their types have no field for it: the sender stores it, the
// receiver looks it up by what it knows of the message. It is in memory shared by all processes of a graph,
// which also share a clock.
//
// A key is a sequence number, or a source time stamp made by stamp_for(). If the middleware sets the source
// time stamps, the sender stores the instant right before sending, and a message is matched with the last
// entry no later than its time stamp. Each publisher has room for its last kKept messages; older ones are not
// found.
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
  // Number of messages remembered per publisher.
  static constexpr std::size_t kKept = 16'384;

  // For the publishers of all processes, in the same order in each. `descriptor`: a memory file shared by the
  // processes, which is enlarged as needed; the caller keeps it. -1: memory of this process. Throws Failed.
  Schedule(std::size_t publishers, int descriptor);
  ~Schedule();
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;

  struct Entry {
    Nanoseconds due_ns = kUnknownTime;
    Nanoseconds published_ns = kUnknownTime;
    std::uint64_t sequence = 0;
  };

  // A source time stamp that is unique among a publisher's last kKept messages: the instant, with its lowest
  // 16 µs replaced by the message number, by which its slot is found.
  static constexpr std::int64_t stamp_for(std::int64_t wall_clock_ns, std::uint64_t number) noexcept {
    constexpr auto kLow = static_cast<std::int64_t>(kKept - 1);
    return (wall_clock_ns & ~kLow) | (static_cast<std::int64_t>(number) & kLow);
  }

  // One thread at a time per publisher, like put_before().
  void put(std::size_t publisher, std::uint64_t key, const Entry& entry) noexcept {
    write(slot_of(publisher, key), key, entry);
  }
  // Stores the entry of the publisher's message with this number, counted from 0, right before sending: its
  // source time stamp will be no earlier than this wall-clock instant.
  void put_before(std::size_t publisher, std::uint64_t number, std::int64_t wall_clock_ns, const Entry& entry) noexcept {
    write(slot_of(publisher, number), kBefore | static_cast<std::uint64_t>(wall_clock_ns), entry);
  }

  // All fields unknown if the entry does not exist, or no longer.
  [[nodiscard]] Entry find(std::size_t publisher, std::uint64_t key) const noexcept {
    return read(slot_of(publisher, key), key);
  }

  // Where a receiver found a publisher's last message: the next one is close by.
  struct Cursor {
    std::uint64_t slot = 0;
  };

  // The entry stored by put_before() for the message with this source time stamp. All fields unknown if it
  // does not exist, or no longer. Confuses messages if the wall clock was set back between them.
  [[nodiscard]] Entry find_before(std::size_t publisher, std::int64_t source_timestamp_ns,
                                  Cursor& cursor) const noexcept {
    // Instant of the message in a slot; 0: empty.
    const auto instant = [&](std::uint64_t slot) noexcept {
      const std::uint64_t key = slot_of(publisher, slot).key.load(std::memory_order_acquire);
      return (key & kBefore) == 0 ? 0 : static_cast<std::int64_t>((key & ~kBefore) - 1);
    };
    const auto is_later = [&](std::int64_t instant_ns) { return instant_ns == 0 || instant_ns > source_timestamp_ns; };
    std::uint64_t at = cursor.slot;
    for (std::size_t steps = 0; is_later(instant(at)); at = (at + kKept - 1) % kKept) {
      if (++steps == kKept) return {};
    }
    for (std::int64_t here = instant(at);;) {
      const std::int64_t next = instant(at + 1);
      if (is_later(next) || next <= here) break;
      at = (at + 1) % kKept;
      here = next;
    }
    cursor.slot = at;
    const std::int64_t found = instant(at);
    return is_later(found) ? Entry{} : read(slot_of(publisher, at), kBefore | static_cast<std::uint64_t>(found));
  }

 private:
  // Distinguishes keys of put_before() from others, which are smaller.
  static constexpr std::uint64_t kBefore = std::uint64_t{1} << 63;

  struct Slot {
    std::atomic<std::uint64_t> key;  // key plus 1; 0: empty, or being written
    std::atomic<Nanoseconds> due_ns;
    std::atomic<Nanoseconds> published_ns;
    std::atomic<std::uint64_t> sequence;
  };
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<Nanoseconds>::is_always_lock_free,
                "processes share no lock");

  static_assert((kKept & (kKept - 1)) == 0, "stamp_for() takes its low bits");

  static void write(Slot& slot, std::uint64_t key, const Entry& entry) noexcept {
    // A reader that sees any part of the new entry also sees at least that the old key is gone.
    slot.key.store(0, std::memory_order_relaxed);
    slot.due_ns.store(entry.due_ns, std::memory_order_release);
    slot.published_ns.store(entry.published_ns, std::memory_order_release);
    slot.sequence.store(entry.sequence, std::memory_order_release);
    slot.key.store(key + 1, std::memory_order_release);
  }
  static Entry read(const Slot& slot, std::uint64_t key) noexcept {
    if (slot.key.load(std::memory_order_acquire) != key + 1) return {};
    const Entry entry{slot.due_ns.load(std::memory_order_acquire), slot.published_ns.load(std::memory_order_acquire),
                      slot.sequence.load(std::memory_order_acquire)};
    return slot.key.load(std::memory_order_relaxed) == key + 1 ? entry : Entry{};
  }

  [[nodiscard]] Slot& slot_of(std::size_t publisher, std::uint64_t key) const noexcept {
    return slots_[publisher * kKept + key % kKept];
  }

  std::size_t bytes_ = 0;
  Slot* slots_ = nullptr;
};

}  // namespace perflab::graph
