// Counts allocator calls, to prove that a path does not allocate. Only for programs linked with
// libperflab_allocations.so (allocation_counts.h), which replaces the allocator.
//
// Example:
//   const std::uint64_t before = allocations_of_this_thread();
//   recorder.record_callback(...);
//   EXPECT_EQ(allocations_of_this_thread(), before);
#pragma once

#include <unistd.h>

#include <cstdint>

extern "C" bool perflab_thread_allocations(int tid, std::uint64_t* count) noexcept;

namespace perflab::measure {

[[nodiscard]] inline std::uint64_t allocations_of_this_thread() noexcept {
  std::uint64_t count = 0;
  perflab_thread_allocations(gettid(), &count);
  return count;
}

}  // namespace perflab::measure
