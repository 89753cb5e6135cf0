#include "middleware/direct/packet.h"

#include <algorithm>
#include <new>

namespace perflab::middleware::direct {

void release(Packet* packet) noexcept {
  // The last holder need not write: no other thread can take a reference any more.
  if (packet->references.load(std::memory_order_acquire) == 1 ||
      packet->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    packet->pool->put(packet);
  }
}

Pool::~Pool() {
  for (Packet* packet = made_.load(std::memory_order_acquire); packet != nullptr;) {
    Packet* const next = packet->next_made;
    packet->~Packet();
    ::operator delete(static_cast<void*>(packet));
    packet = next;
  }
}

Packet* Pool::make(std::size_t size) {
  static_assert(sizeof(Packet) % 8 == 0);
  void* const memory = ::operator new(sizeof(Packet) + Packet::kLead + size);
  auto* const packet = new (memory) Packet{.pool = this, .capacity = size, .next_made = nullptr};
  packet->next_made = made_.load(std::memory_order_relaxed);
  while (!made_.compare_exchange_weak(packet->next_made, packet, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
  made_count_.fetch_add(1, std::memory_order_relaxed);
  return packet;
}

Packet* Pool::get(std::size_t size) {
  if (free_ == nullptr) free_ = returned_.exchange(nullptr, std::memory_order_acquire);
  if (free_ == nullptr) return make(size);
  Packet* const packet = free_;
  free_ = packet->next_free;
  if (packet->capacity >= size) [[likely]]
    return packet;
  // Too small for the current message: it stays unused, and doubling the size keeps this rare.
  return make(std::max(size, 2 * packet->capacity));
}

// The list is only ever taken as a whole, so that a packet that returns twice meanwhile does no harm (ABA).
void Pool::put(Packet* packet) noexcept {
  packet->next_free = returned_.load(std::memory_order_relaxed);
  while (!returned_.compare_exchange_weak(packet->next_free, packet, std::memory_order_release,
                                          std::memory_order_relaxed)) {
  }
}

void Pool::reserve(std::size_t count, std::size_t size) {
  while (made_count_.load(std::memory_order_relaxed) < count) put(make(size));
}

}  // namespace perflab::middleware::direct
