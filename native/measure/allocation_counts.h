// What libperflab_allocations.so counts where it is preloaded (native/programs/allocations). A program finds
// these functions by their names with dlsym(RTLD_DEFAULT, ...); where they are not found, nothing is counted.
//
// An allocation is a successful call of malloc, calloc, realloc or one of the aligned forms, with the bytes
// asked for; operator new goes through malloc. What realloc gives is a new allocation and the end of the old
// one, so `count - frees` blocks are in use.
#pragma once

#include <cstddef>
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

// Allocations of the process since it began, without those of these threads, which are alive. False where that is not
// known, as above.
inline constexpr char kAllocationsBeside[] = "perflab_allocations_beside";
using AllocationsBeside = bool (*)(const int* tids, std::size_t tid_count, std::uint64_t* count);

// From where one thread allocated: the addresses of the callers, the innermost first.
struct AllocationSite {
  static constexpr std::size_t kMostFrames = 24;

  int tid = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::size_t depth = 0;
  void* frames[kMostFrames] = {};
};

// From now on the library remembers where each allocation comes from, or no longer. False where it cannot: the process
// has no unwinder. Takes some microseconds of every allocation.
inline constexpr char kWatchAllocations[] = "perflab_watch_allocations";
using WatchAllocations = bool (*)(bool on);

// Calls `visit` for each site so far; returns how many allocations came from further sites, for which there was no room.
inline constexpr char kAllocationSites[] = "perflab_allocation_sites";
using AllocationSites = std::uint64_t (*)(void (*visit)(void* context, const AllocationSite* site), void* context);

}  // namespace perflab::measure
