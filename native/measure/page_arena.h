// Zeroed memory for counters, sized before the start: a page costs nothing until something is counted in it.
//
// Not for objects with destructors; what is allocated is plain zeros. With memory locking the kernel
// prefaults all of it.
#pragma once

#include <cstddef>
#include <span>

namespace perflab::measure {

class PageArena {
 public:
  static constexpr std::size_t kPageBytes = 4096;
  // What an allocation of that size takes from the arena.
  [[nodiscard]] static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  }

  // Throws std::bad_alloc if the address space cannot be had.
  explicit PageArena(std::size_t bytes);
  ~PageArena();
  PageArena(const PageArena&) = delete;
  PageArena& operator=(const PageArena&) = delete;

  // Has the kernel give that many of the first bytes memory now, and not in the middle of a measurement.
  void prefault(std::size_t bytes) noexcept;

  // Page-aligned zeros that live as long as the arena. Throws std::length_error when the arena is used up.
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
