// A BPF_MAP_TYPE_RINGBUF read in batches. libbpf's reader releases each record separately, so that writing
// CPUs keep fetching the same cache line, and it continues as long as there is data.
//
//   const std::uint64_t end = ring.written();
//   for (auto record = ring.next(end); !record.empty(); record = ring.next(end)) ...
//   ring.release();
#pragma once

#include <linux/bpf.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <span>
#include <system_error>

#include "tracing/scheduler/mapping.h"

namespace perflab::tracing {

// The kernel's layout (kernel/bpf/ringbuf.c): a page with the consumer position, a page with the producer
// position, then the data, mapped twice in a row so that records never wrap. A record has its length with two
// state bits, four bytes for the kernel, and its data, rounded up to eight. Positions only increase.
class EbpfRing {
 public:
  // Throws std::system_error.
  EbpfRing(int map, std::size_t bytes) : mask_(bytes - 1) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    consumer_ = map_shared(map, 0, page);
    producer_ = map_shared(map, page, page + 2 * bytes, false);
    if (!consumer_ || !producer_)
      throw std::system_error(errno, std::generic_category(), "eBPF: mapping a ring buffer");
    data_ = producer_.get() + page;
  }

  // The producer position.
  [[nodiscard]] std::uint64_t written() const noexcept {
    return __atomic_load_n(reinterpret_cast<const unsigned long*>(producer_.get()), __ATOMIC_ACQUIRE);
  }
  // The consumer position.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  // The next record before `end`; empty if there is none, or it is still being written. Valid until
  // release().
  [[nodiscard]] std::span<const std::byte> next(std::uint64_t end) noexcept {
    while (position_ < end) {
      const std::byte* const at = data_ + (position_ & mask_);
      const auto header = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
      if ((header & BPF_RINGBUF_BUSY_BIT) != 0) break;
      const std::uint32_t length = header & ~BPF_RINGBUF_DISCARD_BIT;
      position_ += (length + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
      if ((header & BPF_RINGBUF_DISCARD_BIT) == 0) return {at + BPF_RINGBUF_HDR_SZ, length};
    }
    return {};
  }

  // Frees the space of what was read.
  void release() noexcept {
    __atomic_store_n(reinterpret_cast<unsigned long*>(consumer_.get()), position_, __ATOMIC_RELEASE);
  }

 private:
  std::size_t mask_;
  Mapping consumer_, producer_;
  const std::byte* data_;
  std::uint64_t position_ = 0;
};

}  // namespace perflab::tracing
