// The ring into which the kernel writes the events of one CPU (perf_event_open(2), mmap); reads complete
// records.
#pragma once

#include <linux/perf_event.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "tracing/scheduler/mapping.h"

namespace perflab::tracing {

class PerfRing {
 public:
  PerfRing() = default;
  // Maps `data_bytes` (a power of two times the page size) of this event. valid() reports success; on failure
  // errno has the reason.
  PerfRing(int event, std::size_t data_bytes) : data_bytes_(data_bytes) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    mapping_ = map_shared(event, 0, page + data_bytes);
    header_ = reinterpret_cast<perf_event_mmap_page*>(mapping_.get());
    data_ = mapping_.get() + page;
  }

  [[nodiscard]] bool valid() const noexcept { return mapping_ != nullptr; }

  // Calls `record(header, body)` for each record that the kernel has completed, in order, then releases their
  // space. Bodies are valid until the call returns; one that wraps around the end is copied first.
  template <typename F>
  void read(F&& record) {
    const std::uint64_t head = std::atomic_ref(header_->data_head).load(std::memory_order_acquire);
    std::uint64_t tail = header_->data_tail;
    while (tail + sizeof(perf_event_header) <= head) {
      perf_event_header header;
      copy(&header, tail,
           sizeof header);  // records start at multiples of 8, so it does not wrap; checking costs nothing
      if (header.size < sizeof header || tail + header.size > head) break;
      const std::size_t size = header.size - sizeof header;
      const std::size_t at = static_cast<std::size_t>((tail + sizeof header) & (data_bytes_ - 1));
      if (at + size <= data_bytes_) {
        record(header, std::span<const std::byte>(data_ + at, size));
      } else {
        wrapped_.resize(size);
        copy(wrapped_.data(), tail + sizeof header, size);
        record(header, std::span<const std::byte>(wrapped_));
      }
      tail += header.size;
    }
    std::atomic_ref(header_->data_tail).store(tail, std::memory_order_release);
  }

 private:
  void copy(void* to, std::uint64_t from, std::size_t size) const {
    const std::size_t at = static_cast<std::size_t>(from & (data_bytes_ - 1));
    const std::size_t first = std::min(size, data_bytes_ - at);
    std::memcpy(to, data_ + at, first);
    std::memcpy(static_cast<std::byte*>(to) + first, data_, size - first);
  }

  Mapping mapping_;
  perf_event_mmap_page* header_ = nullptr;
  const std::byte* data_ = nullptr;
  std::size_t data_bytes_ = 0;
  std::vector<std::byte> wrapped_;
};

}  // namespace perflab::tracing
