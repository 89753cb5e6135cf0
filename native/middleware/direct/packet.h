// Messages in memory. A message is copied once, when it is written; readers get references to that copy. The
// memory returns to its writer for reuse.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "middleware/middleware.h"

namespace perflab::middleware::direct {

class Pool;

// One message; its bytes follow in the same block of memory.
struct Packet {
  Pool* pool;
  std::size_t capacity;
  Packet* next_made;            // list of all packets of the pool
  Packet* next_free = nullptr;  // ... of unused ones
  std::atomic<std::uint32_t> references{0};
  std::size_t size = 0;
  perflab_identity writer{};
  std::int64_t sequence = 0;
  perflab_sample_identity related{};
  std::int64_t source_ns = 0;           // wall clock
  std::int64_t expires_ns = INT64_MAX;  // monotonic

  // After the 4 bytes of the encapsulation the body is aligned to 8.
  static constexpr std::size_t kLead = 4;
  [[nodiscard]] std::uint8_t* bytes() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1) + kLead; }
};

// Releases one reference.
void release(Packet* packet) noexcept;

// The memory of one writer's messages. Any thread may return packets; one thread takes them, without a lock.
class Pool {
 public:
  Pool() = default;
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // Memory for a message, with no references. Only for the writing thread. Throws std::bad_alloc.
  Packet* get(std::size_t size);
  void put(Packet* packet) noexcept;
  // Allocates packets up to `count`, so that get() need not. Throws std::bad_alloc.
  void reserve(std::size_t count, std::size_t size);

 private:
  Packet* make(std::size_t size);

  Packet* free_ = nullptr;                  // used by the writing thread
  std::atomic<Packet*> returned_{nullptr};  // returned by other threads
  std::atomic<Packet*> made_{nullptr};      // all packets
  std::atomic<std::size_t> made_count_{0};
};

}  // namespace perflab::middleware::direct
