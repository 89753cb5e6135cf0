#include "middleware/sim/packet.h"

#include <bit>
#include <cstdlib>
#include <new>

namespace perflab::middleware::sim {

void PacketRef::reset() noexcept {
  Packet* const packet = release();
  if (packet != nullptr && packet->references.fetch_sub(1, std::memory_order_acq_rel) == 1)
    packet->pool->put(packet);
}

PacketPool::~PacketPool() {
  for (const auto& list : free_) {
    for (Packet* const packet : list) std::free(packet);
  }
}

PacketRef PacketPool::get(std::size_t size) {
  const std::size_t units = (size + kSmallest - 1) / kSmallest;
  const auto size_class = static_cast<std::uint32_t>(std::bit_width(units > 0 ? units - 1 : 0));
  if (size_class >= kClasses) throw std::bad_alloc();
  Packet* packet = nullptr;
  {
    const std::lock_guard lock(mutex_);
    auto& list = free_[size_class];
    if (!list.empty()) {
      packet = list.back();
      list.pop_back();
      kept_ -= kSmallest << size_class;
    }
  }
  if (packet == nullptr) {
    void* const memory = std::malloc(sizeof(Packet) + (kSmallest << size_class));
    if (memory == nullptr) throw std::bad_alloc();
    packet = new (memory) Packet{};
    packet->pool = this;
    packet->size_class = size_class;
  }
  packet->references.store(1, std::memory_order_relaxed);
  packet->size = size;
  return PacketRef(packet);
}

void PacketPool::put(Packet* packet) noexcept {
  const std::size_t bytes = kSmallest << packet->size_class;
  {
    const std::lock_guard lock(mutex_);
    if (kept_ + bytes <= kMostKept) {
      try {
        free_[packet->size_class].push_back(packet);
        kept_ += bytes;
        return;
      } catch (const std::bad_alloc&) {
        // Freed below: the list could not grow.
      }
    }
  }
  std::free(packet);
}

}  // namespace perflab::middleware::sim
