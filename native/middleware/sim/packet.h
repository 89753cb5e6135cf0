// Messages in memory: counted references to buffers that are used again.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "middleware/middleware.h"

namespace perflab::middleware::sim {

class PacketPool;

struct Packet {
  PacketPool* pool;
  std::atomic<std::uint32_t> references;
  std::uint32_t size_class;
  std::size_t size;
  std::uint64_t sequence;
  std::int64_t sent_ns;    // monotonic, the simulator's clock
  std::int64_t source_ns;  // wall clock
  perflab_identity writer;

  std::uint8_t* bytes() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1); }
};

// One counted reference.
class PacketRef {
 public:
  PacketRef() = default;
  // Takes over a reference that the caller holds.
  explicit PacketRef(Packet* packet) noexcept : packet_(packet) {}
  PacketRef(const PacketRef& other) noexcept : packet_(other.packet_) { count_up(); }
  PacketRef(PacketRef&& other) noexcept : packet_(other.release()) {}
  PacketRef& operator=(PacketRef other) noexcept {
    std::swap(packet_, other.packet_);
    return *this;
  }
  ~PacketRef() { reset(); }

  // Another reference to a packet that someone holds.
  static PacketRef share(Packet* packet) noexcept {
    PacketRef reference(packet);
    reference.count_up();
    return reference;
  }

  void reset() noexcept;
  Packet* release() noexcept {
    Packet* const packet = packet_;
    packet_ = nullptr;
    return packet;
  }
  Packet* get() const noexcept { return packet_; }
  Packet* operator->() const noexcept { return packet_; }
  explicit operator bool() const noexcept { return packet_ != nullptr; }

 private:
  void count_up() noexcept {
    if (packet_ != nullptr) packet_->references.fetch_add(1, std::memory_order_relaxed);
  }

  Packet* packet_ = nullptr;
};

// Buffers by powers of two. Safe from every thread.
class PacketPool {
 public:
  PacketPool() = default;
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // Throws std::bad_alloc.
  PacketRef get(std::size_t size);

 private:
  friend class PacketRef;
  static constexpr std::size_t kClasses = 32;
  static constexpr std::size_t kSmallest = 512;
  static constexpr std::size_t kMostKept = std::size_t{64} << 20;  // bytes in all lists together

  void put(Packet* packet) noexcept;

  std::mutex mutex_;
  std::array<std::vector<Packet*>, kClasses> free_;
  std::size_t kept_ = 0;
};

}  // namespace perflab::middleware::sim
