// Hardware counters of this process (cycles, instructions, cache misses) by perf_event_open(2).
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
  static const Event kCacheMisses;  // misses of the last-level cache, as the processor defines them

  // Cumulative. If more counters are requested than the processor has, the kernel multiplexes them: this one
  // counted for `running_ns` of the `enabled_ns` of CPU time of all threads.
  struct Count {
    std::uint64_t count = 0;
    Nanoseconds enabled_ns = 0;
    Nanoseconds running_ns = 0;
  };

  // Counts from now on, in the calling thread and in all threads started by it or its descendants later,
  // including ended ones. Counts user space and kernel, or user space only if the kernel permits no more. If
  // counting is impossible, reason() says why.
  explicit ProcessCounter(Event event);

  // Null if nothing is counted.
  [[nodiscard]] std::optional<Count> read() const noexcept;
  // Why nothing is counted; empty if it is.
  [[nodiscard]] const std::string& reason() const noexcept { return reason_; }
  // True if the kernel's work for the process is included.
  [[nodiscard]] bool with_kernel() const noexcept { return with_kernel_; }

 private:
  Descriptor file_;
  bool with_kernel_ = true;
  std::string reason_;
};

}  // namespace perflab::measure
