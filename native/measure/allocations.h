// Counts calls of the allocator, to prove that a path does not allocate. Only programs that link the object
// library `perflab_allocations` count: it takes the place of malloc, calloc, realloc, free and the aligned
// forms (operator new goes through malloc).
//
// Example:
//   const std::uint64_t before = allocations_of_this_thread();
//   recorder.record_callback(...);
//   EXPECT_EQ(allocations_of_this_thread(), before);
#pragma once

#include <cstdint>

namespace perflab::measure {

[[nodiscard]] std::uint64_t allocations_of_this_thread() noexcept;

}  // namespace perflab::measure
