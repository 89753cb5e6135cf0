#include "measure/allocations.h"

#include <cerrno>
#include <cstddef>

// glibc's own names of the functions that are replaced below.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* memory);
}

namespace {
// Initial-exec: a thread-local that needs no allocation itself.
[[gnu::tls_model("initial-exec")]] thread_local std::uint64_t g_allocations = 0;
}  // namespace

namespace perflab::measure {
std::uint64_t allocations_of_this_thread() noexcept { return g_allocations; }
}  // namespace perflab::measure

extern "C" {

void* malloc(std::size_t size) {
  ++g_allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++g_allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  ++g_allocations;
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  ++g_allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++g_allocations;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t size) {
  ++g_allocations;
  void* memory = __libc_memalign(alignment, size);
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}
void free(void* memory) { __libc_free(memory); }

}  // extern "C"
