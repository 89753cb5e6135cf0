// Messages in memory. A message is copied once, when it is written; readers get references to that copy. Its
// memory goes back to the writer it came from and carries the next message.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "middleware/middleware.h"

namespace perflab::middleware::direct {

class Pool;

// One message; its bytes lie behind it in the same piece of memory.
struct Packet {
  Pool* pool;
  std::size_t capacity;
  Packet* next_made;            // of the pool: all of them
  Packet* next_free = nullptr;  // ... those that carry nothing
  std::atomic<std::uint32_t> references{0};
  std::size_t size = 0;
  perflab_identity writer{};
  std::int64_t sequence = 0;
  perflab_sample_identity related{};
  std::int64_t source_ns = 0;           // wall clock
  std::int64_t expires_ns = INT64_MAX;  // monotonic

  // Behind the 4 bytes of the encapsulation the body is aligned to 8.
  static constexpr std::size_t kLead = 4;
  [[nodiscard]] std::uint8_t* bytes() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1) + kLead; }
};

// Gives back one reference.
void release(Packet* packet) noexcept;

// The memory of one writer's messages. Any thread gives back; one takes, without a lock.
class Pool {
 public:
  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Room for a message, without references. Only for the thread that writes. Throws std::bad_alloc.
  Packet* get(std::size_t size);
  void put(Packet* packet) noexcept;
  // Makes packets until there are `count`, so that get() need not. Throws std::bad_alloc.
  void reserve(std::size_t count, std::size_t size);

 private:
  Packet* make(std::size_t size);

  Packet* free_ = nullptr;                  // of the thread that writes
  std::atomic<Packet*> returned_{nullptr};  // what others gave back meanwhile
  std::atomic<Packet*> made_{nullptr};      // all of them
  std::atomic<std::size_t> made_count_{0};
};

}  // namespace perflab::middleware::direct
