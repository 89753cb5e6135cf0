// One BPF_MAP_TYPE_RINGBUF, read in batches: libbpf's reader gives each record back by itself, so that the
// CPUs that write fetch the same line of memory again and again, and reads on for as long as there is
// something.
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

// The kernel's layout (kernel/bpf/ringbuf.c): a page with how far was read, a page with how far was written,
// then the data, twice in a row so that no record is ever torn. A record: its length with two bits of state,
// four bytes of the kernel's, its bytes; all rounded up to eight. Positions only grow.
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

  // How far was written up to now.
  [[nodiscard]] std::uint64_t written() const noexcept {
    return __atomic_load_n(reinterpret_cast<const unsigned long*>(producer_.get()), __ATOMIC_ACQUIRE);
  }
  // How far was read.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }

  // The next record before `end`, or nothing: none is there, or it is just being written. It lives until
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

  // The place of what was read is free again.
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
