// What the processor counts for this process: cycles, instructions, cache misses; by perf_event_open(2).
//
//   const ProcessCounter cycles(ProcessCounter::kCycles);   // before any other thread is started
//   if (const auto count = cycles.read()) use(count->count);
//   else say(cycles.reason());
//
// Not for the measured path: reading it calls the kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/descriptor.h"
#include "base/time.h"

namespace perflab::measure {

class ProcessCounter {
 public:
  // `type` and `config` of perf_event_attr.
  struct Event {
    std::uint32_t type;
    std::uint64_t config;
  };
  static const Event kCycles;
  static const Event kInstructions;
  static const Event kCacheMisses;  // of the last level of caches, as the processor defines it

  // Cumulative. Where the processor has fewer counters than are asked of it, it counted for `running_ns` of
  // the `enabled_ns` of CPU time that the threads had together.
  struct Count {
    std::uint64_t count = 0;
    Nanoseconds enabled_ns = 0;
    Nanoseconds running_ns = 0;
  };

  // Counts from now on, in the calling thread and in all threads that it and they start later, those too that
  // have ended. User space and kernel; user space alone where the kernel allows no more. Where it
  // cannot count, reason() says why.
  explicit ProcessCounter(Event event);

  // Null where nothing is counted.
  [[nodiscard]] std::optional<Count> read() const noexcept;
  // Why nothing is counted; empty where it is.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  // Whether what the kernel does for the process counts, too.
  [[nodiscard]] bool with_kernel() const noexcept { return with_kernel_; }

 private:
  Descriptor file_;
  bool with_kernel_ = true;
  std::string reason_;
};

}  // namespace perflab::measure
