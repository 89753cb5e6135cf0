// Zeroed memory for counters, sized before the start: a page takes no memory until it is written.
//
// Not for objects with destructors; allocations are plain zeros. With memory locking the kernel prefaults the
// whole arena.
#pragma once

#include <cstddef>
#include <span>

namespace perflab::measure {

class PageArena {
 public:
  static constexpr std::size_t kPageBytes = 4096;
  // The space that an allocation of this size takes in the arena.
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }

  // Throws std::bad_alloc if the address space is exhausted.
  explicit PageArena(std::size_t bytes);
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  // Touches the first `bytes` now, so that no page fault occurs during the measurement.
  void prefault(std::size_t bytes) noexcept;

  // Page-aligned zeros that live as long as the arena. Throws std::length_error if the arena is full.
  template <typename T>
  std::span<T> allocate(std::size_t count) {
    return {reinterpret_cast<T*>(take(count * sizeof(T))), count};
  }

 private:
  std::byte* take(std::size_t bytes);

  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t used_ = 0;
};

}  // namespace perflab::measure
