#include "measure/page_arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <new>
#include <stdexcept>
#include <utility>

namespace perflab::measure {

PageArena::PageArena(std::size_t bytes) : bytes_(std::max(rounded(bytes), kPageBytes)) {
  void* memory =
      mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  // With huge pages the first count of each histogram would cost 2 MiB. If the kernel refuses this advice,
  // only memory use grows.
  madvise(memory, bytes_, MADV_NOHUGEPAGE);
  begin_ = static_cast<std::byte*>(memory);
}

PageArena::~PageArena() { munmap(begin_, bytes_); }

void PageArena::prefault(std::size_t bytes) noexcept {
  // By hand, because MADV_POPULATE_WRITE needs Linux 5.14. Atomically adds 0, because a thread may be
  // counting already.
  for (std::size_t at = 0; at < std::min(bytes, bytes_); at += kPageBytes) {
    std::atomic_ref(reinterpret_cast<std::uint8_t&>(begin_[at])).fetch_add(0, std::memory_order_relaxed);
  }
}

std::byte* PageArena::take(std::size_t bytes) {
  if (rounded(bytes) > bytes_ - used_) {
    throw std::length_error("page arena: request exceeds the size of the arena");
  }
  return begin_ + std::exchange(used_, used_ + rounded(bytes));
}

}  // namespace perflab::measure
