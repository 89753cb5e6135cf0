// What libperflab_allocations.so counts where it is preloaded (native/programs/allocations). A program finds
// these functions by their names with dlsym(RTLD_DEFAULT, ...); where they are not found, nothing is counted.
//
// An allocation is a successful call of malloc, calloc, realloc or one of the aligned forms, with the bytes
// asked for; operator new goes through malloc. What realloc gives is a new allocation and the end of the old
// one, so `count - frees` blocks are in use.
#pragma once

#include <cstdint>

namespace perflab::measure {

// Since the process began.
struct AllocationCounts {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t frees = 0;
};

inline constexpr char kProcessAllocations[] = "perflab_process_allocations";
using ProcessAllocations = void (*)(AllocationCounts* counts);

// Allocations of one thread of the process since it began. False where that is not known: more threads were
// alive at a time than the library has counters for.
inline constexpr char kThreadAllocations[] = "perflab_thread_allocations";
using ThreadAllocations = bool (*)(int tid, std::uint64_t* count);

}  // namespace perflab::measure
