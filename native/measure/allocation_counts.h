// The interface of libperflab_allocations.so, which counts allocations when preloaded
// (native/programs/allocations). A program looks these functions up with dlsym(RTLD_DEFAULT, ...); if they
// are missing, nothing is counted.
//
// An allocation is a successful call of malloc, calloc, realloc or one of the aligned forms, with the bytes
// requested; operator new goes through malloc. A realloc counts as a new allocation and a free of the old
// block, so `count - frees` blocks are in use.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perflab::measure {

// Totals since the process started.
struct AllocationCounts {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::uint64_t frees = 0;
};

inline constexpr char kProcessAllocations[] = "perflab_process_allocations";
using ProcessAllocations = void (*)(AllocationCounts* counts);

// Allocations of one thread of the process since it started. False if unknown: more threads were alive at
// once than the library has counters for.
inline constexpr char kThreadAllocations[] = "perflab_thread_allocations";
using ThreadAllocations = bool (*)(int tid, std::uint64_t* count);

// Allocations of the process since it started, without those of the given live threads. False if unknown, as
// above.
inline constexpr char kAllocationsBeside[] = "perflab_allocations_beside";
using AllocationsBeside = bool (*)(const int* tids, std::size_t tid_count, std::uint64_t* count);

// The call stack of an allocation: return addresses, innermost first.
struct AllocationSite {
  static constexpr std::size_t kMostFrames = 24;

  int tid = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::size_t depth = 0;
  void* frames[kMostFrames] = {};
};

// Turns recording of allocation sites on or off. False if impossible: the process has no unwinder. Costs some
// microseconds per allocation.
inline constexpr char kWatchAllocations[] = "perflab_watch_allocations";
using WatchAllocations = bool (*)(bool on);

// Calls `visit` for each site so far; returns the number of allocations from sites that did not fit into the
// table.
inline constexpr char kAllocationSites[] = "perflab_allocation_sites";
using AllocationSites = std::uint64_t (*)(void (*visit)(void* context, const AllocationSite* site), void* context);

}  // namespace perflab::measure
