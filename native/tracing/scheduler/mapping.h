// Memory shared with the kernel through a descriptor's mmap.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>

namespace perflab::tracing {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* at) const noexcept { munmap(at, bytes); }
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

// Null on failure; errno has the reason.
inline Mapping map_shared(int descriptor, std::size_t offset, std::size_t bytes,
                          bool writable = true) noexcept {
  void* const at = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED, descriptor,
                        static_cast<off_t>(offset));
  return Mapping(at == MAP_FAILED ? nullptr : static_cast<std::byte*>(at), Unmap{bytes});
}

}  // namespace perflab::tracing
