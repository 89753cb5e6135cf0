// CPU, memory and scheduling figures of this process and each of its threads, from the kernel and the
// allocator.
//
// Not for the measured path: reading /proc allocates and calls the kernel. A separate thread does it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/allocation_counts.h"
#include "measure/clock.h"
#include "measure/usage.h"

namespace perflab::measure {

struct ThreadSample {
  pid_t tid = 0;
  std::string name;
  Nanoseconds cpu_ns = 0;           // since the thread started
  Nanoseconds cpu_interval_ns = 0;  // since the previous sample, or since the thread started
  std::optional<Nanoseconds>
      run_delay_ns;  // runnable but not running, since the thread started; null without schedstats
  std::optional<std::uint64_t> voluntary_switches;
  std::optional<std::uint64_t> involuntary_switches;
  std::optional<int> cpu;                    // CPU on which it last ran
  std::optional<std::uint64_t> allocations;  // since the thread started; null if allocations are not counted
};

struct ResourceSample {
  Nanoseconds at_ns = 0;
  std::optional<Nanoseconds> interval_ns;  // null in the first sample
  Nanoseconds cpu_ns = 0;                  // since the process started, all threads including ended ones
  std::optional<Nanoseconds> cpu_interval_ns;
  std::optional<std::int64_t> rss_kb;
  std::optional<std::int64_t>
      rss_peak_kb;  // of this program only: ru_maxrss would include what ran before exec
  std::optional<std::int64_t> vsz_kb;
  std::int64_t arena_kb = 0;  // mallinfo2: arena, uordblks, hblkhd
  std::int64_t in_use_kb = 0;
  std::int64_t mmap_kb = 0;
  Usage usage;
  std::optional<Nanoseconds> run_delay_ns;      // sum over live threads; null if unknown for any of them
  std::optional<AllocationCounts> allocations;  // null if allocations are not counted
  std::vector<ThreadSample> threads;
};

// Only CPU time, of the process and its live threads, taken at both ends of the measured part.
struct CpuTimes {
  struct Thread {
    pid_t tid = 0;
    std::string name;
    Nanoseconds cpu_ns = 0;  // since the thread started
  };
  Nanoseconds at_ns = 0;
  Nanoseconds cpu_ns = 0;  // since the process started, all threads including ended ones
  std::vector<Thread> threads;
};

CpuTimes cpu_times(const Clock& clock);

class ResourceSampler {
 public:
  explicit ResourceSampler(const Clock& clock);
  ~ResourceSampler();
  ResourceSampler(const ResourceSampler&) = delete;
  ResourceSampler& operator=(const ResourceSampler&) = delete;
  // Takes a sample; intervals are those since the previous call.
  ResourceSample sample();

 private:
  std::vector<ThreadSample> sample_threads();

  const Clock& clock_;
  // From libperflab_allocations.so; null if it is not preloaded.
  ProcessAllocations process_allocations_;
  ThreadAllocations thread_allocations_;
  std::optional<Nanoseconds> previous_at_;
  Nanoseconds previous_cpu_ = 0;
  struct KnownThread;
  std::vector<KnownThread> threads_;  // state as of the previous call
};

}  // namespace perflab::measure
