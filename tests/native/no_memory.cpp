#include "no_memory.h"

#include <cstdlib>
#include <new>

namespace {
thread_local bool t_none_left = false;
}  // namespace

namespace perflab::test {
NoMemory::NoMemory() { t_none_left = true; }
NoMemory::~NoMemory() { t_none_left = false; }
}  // namespace perflab::test

// Takes precedence over the library's, also for libraries loaded later. The array forms call these.
void* operator new(std::size_t size) {
  void* const memory = t_none_left ? nullptr : std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
