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
  // Huge pages would make the first count of each histogram cost 2 MiB. The advice may be refused; memory is
  // then only larger.
  madvise(memory, bytes_, MADV_NOHUGEPAGE);
  begin_ = static_cast<std::byte*>(memory);
}

PageArena::~PageArena() { munmap(begin_, bytes_); }

void PageArena::prefault(std::size_t bytes) noexcept {
  // By hand: MADV_POPULATE_WRITE is of Linux 5.14. An atomic addition of nothing, for a thread may count already.
  for (std::size_t at = 0; at < std::min(bytes, bytes_); at += kPageBytes) {
    std::atomic_ref(reinterpret_cast<std::uint8_t&>(begin_[at])).fetch_add(0, std::memory_order_relaxed);
  }
}

std::byte* PageArena::take(std::size_t bytes) {
  if (rounded(bytes) > bytes_ - used_) {
    throw std::length_error("page arena: more memory asked for than it was made for");
  }
  return begin_ + std::exchange(used_, used_ + rounded(bytes));
}

}  // namespace perflab::measure
