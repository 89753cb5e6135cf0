// Passes messages from the threads that send and receive them to the thread that writes them to files: rows
// of times, and encoded contents.
//
// Any number of producers, one consumer. Producers copy into memory reserved before the start: they neither
// allocate nor lock nor call the kernel. If there is no room, the record is dropped and counted for its edge
// or publisher.
//
// A producer reserves space by advancing `head_` and writes the record; it becomes visible to the reader when
// its size is stored in front of it. The reader zeroes what it has consumed. A record never wraps around the
// end of the memory: the rest there is skipped.
//
// Example:
//   MessageRing ring(1 << 20, {.edges = 2, .publishers = 1});
//   ring.put({.edge = 1, .sequence = 7, .published_ns = sent, .callback_ns = now});
//   ring.take(handler);   // by the one thread that writes: handler(row), handler(row, bytes)
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

#include "base/time.h"
#include "measure/page_arena.h"

namespace perflab::measure {

// Files contain these rows as they are in memory (docs/formats.md, section 17). Instants are those of the
// runtime's clock; kUnknownTime: unknown.
inline constexpr std::uint32_t kWarmUpRow = 1;   // the message belongs to the warm-up, which has its own
                                                 // sequence numbers
inline constexpr std::uint32_t kCountedRow = 2;  // deliveries only: measured, and not a duplicate

struct DeliveryRow {
  std::uint32_t edge = 0;  // index into the edges of the records, followed by the services
  std::uint32_t flags = 0;
  std::uint64_t sequence = 0;  // the publisher's sequence number
  Nanoseconds intended_ns = kUnknownTime;
  Nanoseconds published_ns = kUnknownTime;
  Nanoseconds arrived_ns = kUnknownTime;
  Nanoseconds callback_ns = kUnknownTime;
  Nanoseconds ended_ns = kUnknownTime;  // when the callback ended
  Nanoseconds deserialize_ns = kUnknownTime;
};
static_assert(sizeof(DeliveryRow) == 64);

struct PublicationRow {
  std::uint32_t publisher = 0;  // index into the publishers of the records
  std::uint32_t flags = 0;
  std::uint64_t sequence = 0;
  Nanoseconds intended_ns = kUnknownTime;
  Nanoseconds published_ns = kUnknownTime;
  Nanoseconds returned_ns = kUnknownTime;  // when the call that sent it returned
  Nanoseconds serialize_ns = kUnknownTime;
  std::uint64_t offset = 0;  // position of the contents in their file
  std::uint64_t size = 0;    // 0: contents were not recorded
};
static_assert(sizeof(PublicationRow) == 64);

class MessageRing {
 public:
  struct Ends {
    std::size_t edges = 0;  // edges, followed by services
    std::size_t publishers = 0;
  };
  // `bytes` is a power of two, at least kLeastBytes. With `waits` a producer without room waits, which only
  // virtual time may do. Throws std::bad_alloc.
  MessageRing(std::size_t bytes, Ends ends, bool waits = false)
      : memory_(bytes), bytes_(memory_.allocate<std::byte>(bytes)), waits_(waits), lost_deliveries_(ends.edges),
        lost_publications_(ends.publishers) {
    memory_.prefault(bytes);
  }
  static constexpr std::size_t kLeastBytes = 4096;

  void put(const DeliveryRow& row) noexcept {
    const Place place = reserve(sizeof row);
    if (place.at == nullptr) return lose(row);
    std::memcpy(place.at, &row, sizeof row);
    commit(place, kDelivery);
  }

  // `encode(span)` fills exactly `size` bytes with the contents.
  template <typename Encode>
  void put(PublicationRow row, std::size_t size, const Encode& encode) noexcept {
    const Place place = reserve(sizeof row + size);
    if (place.at == nullptr) return lose(row);
    row.size = size;
    std::memcpy(place.at, &row, sizeof row);
    if (size > 0) encode(std::span(reinterpret_cast<std::uint8_t*>(place.at + sizeof row), size));
    commit(place, kPublication);
  }

  // Passes all available records to handler(DeliveryRow) and handler(PublicationRow, bytes). One thread at a
  // time.
  template <typename Handler>
  void take(Handler&& handler) {
    std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    while (true) {
      std::byte* const at = bytes_.data() + (tail & (bytes_.size() - 1));
      const std::uint32_t whole = size_at(at).load(std::memory_order_acquire);
      if (whole == 0) return;
      std::uint32_t kind = 0;
      std::memcpy(&kind, at + sizeof whole, sizeof kind);
      const std::byte* const body = at + kHeadBytes;
      if (kind == kDelivery) {
        DeliveryRow row;
        std::memcpy(&row, body, sizeof row);
        handler(row);
      } else if (kind == kPublication) {
        PublicationRow row;
        std::memcpy(&row, body, sizeof row);
        handler(row, std::span(reinterpret_cast<const std::uint8_t*>(body + sizeof row), row.size));
      }
      std::memset(at, 0, whole);
      tail += whole;
      tail_.store(tail, std::memory_order_release);
    }
  }

  // Records put from now on are dropped.
  void close() noexcept { closed_.store(true, std::memory_order_relaxed); }
  [[nodiscard]] bool closed() const noexcept { return closed_.load(std::memory_order_relaxed); }

  // Counts a dropped record.
  void lose(const DeliveryRow& row) noexcept { lost_deliveries_[row.edge].fetch_add(1, std::memory_order_relaxed); }
  void lose(const PublicationRow& row) noexcept { lost_publications_[row.publisher].fetch_add(1, std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t lost_deliveries(std::size_t edge) const noexcept {
    return lost_deliveries_.at(edge).load(std::memory_order_relaxed);
  }
  [[nodiscard]] std::uint64_t lost_publications(std::size_t publisher) const noexcept {
    return lost_publications_.at(publisher).load(std::memory_order_relaxed);
  }
  [[nodiscard]] Ends ends() const noexcept { return {lost_deliveries_.size(), lost_publications_.size()}; }

 private:
  static constexpr std::size_t kHeadBytes = 8;  // size of the whole record, kind
  enum Kind : std::uint32_t { kPassedOver, kDelivery, kPublication };
  struct Place {
    std::byte* at = nullptr;  // start of the body; null: none
    std::uint32_t whole = 0;
  };

  static std::atomic_ref<std::uint32_t> size_at(std::byte* head) noexcept {
    return std::atomic_ref(*reinterpret_cast<std::uint32_t*>(head));
  }

  Place reserve(std::size_t body) noexcept {
    const std::size_t whole = (kHeadBytes + body + 7) / 8 * 8;
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    while (!closed()) {
      const std::size_t at = head & (bytes_.size() - 1);
      const std::size_t to_end = bytes_.size() - at;
      const std::size_t passed = to_end < whole ? to_end : 0;
      const std::uint64_t next = head + passed + whole;
      if (whole > bytes_.size()) return {};
      if (next - tail_.load(std::memory_order_acquire) > bytes_.size()) {
        if (!waits_) return {};
        std::this_thread::yield();
        head = head_.load(std::memory_order_relaxed);
        continue;
      }
      if (!head_.compare_exchange_weak(head, next, std::memory_order_relaxed)) continue;
      if (passed > 0) finish(bytes_.data() + at, static_cast<std::uint32_t>(passed), kPassedOver);
      return {bytes_.data() + (passed > 0 ? 0 : at) + kHeadBytes, static_cast<std::uint32_t>(whole)};
    }
    return {};
  }
  static void finish(std::byte* head, std::uint32_t whole, Kind kind) noexcept {
    const std::uint32_t number = kind;
    std::memcpy(head + sizeof whole, &number, sizeof number);
    size_at(head).store(whole, std::memory_order_release);
  }
  static void commit(const Place& place, Kind kind) noexcept { finish(place.at - kHeadBytes, place.whole, kind); }

  PageArena memory_;
  std::span<std::byte> bytes_;
  const bool waits_;
  alignas(64) std::atomic<std::uint64_t> head_{0};
  alignas(64) std::atomic<std::uint64_t> tail_{0};
  alignas(64) std::atomic<bool> closed_{false};
  std::vector<std::atomic<std::uint64_t>> lost_deliveries_;
  std::vector<std::atomic<std::uint64_t>> lost_publications_;
};

// The size of a ring for this many bytes, and for at least a few of the longest messages.
[[nodiscard]] constexpr std::size_t ring_bytes(std::size_t asked, std::size_t longest) noexcept {
  return std::bit_ceil(std::max({asked, 4 * (longest + sizeof(PublicationRow) + 16), MessageRing::kLeastBytes}));
}

}  // namespace perflab::measure
