// CPU, memory and scheduling figures of this process and of each of its threads, from the kernel and the
// allocator.
//
// Not for the measured path: reading /proc allocates and calls the kernel; a thread of its own does it.
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
  Nanoseconds cpu_ns = 0;           // since the thread began
  Nanoseconds cpu_interval_ns = 0;  // since the previous sample, or since it began
  std::optional<Nanoseconds>
      run_delay_ns;  // runnable but not running, since it began; null without schedstats
  std::optional<std::uint64_t> voluntary_switches;
  std::optional<std::uint64_t> involuntary_switches;
  std::optional<int> cpu;                    // where it ran last
  std::optional<std::uint64_t> allocations;  // since the thread began; null where nobody counts them
};

struct ResourceSample {
  Nanoseconds at_ns = 0;
  std::optional<Nanoseconds> interval_ns;  // null in the first sample
  Nanoseconds cpu_ns = 0;                  // since the process began, all threads, ended ones too
  std::optional<Nanoseconds> cpu_interval_ns;
  std::optional<std::int64_t> rss_kb;
  std::optional<std::int64_t>
      rss_peak_kb;  // of this program: ru_maxrss would carry over what ran before exec
  std::optional<std::int64_t> vsz_kb;
  std::int64_t arena_kb = 0;  // mallinfo2: arena, uordblks, hblkhd
  std::int64_t in_use_kb = 0;
  std::int64_t mmap_kb = 0;
  Usage usage;
  std::optional<Nanoseconds> run_delay_ns;      // sum over the threads alive; null if unknown for one
  std::optional<AllocationCounts> allocations;  // null where nobody counts them
  std::vector<ThreadSample> threads;
};

// CPU time alone, of the process and of the threads that live, for the two ends of the measured part.
struct CpuTimes {
  struct Thread {
    pid_t tid = 0;
    std::string name;
    Nanoseconds cpu_ns = 0;  // since the thread began
  };
  Nanoseconds at_ns = 0;
  Nanoseconds cpu_ns = 0;  // since the process began, all threads, ended ones too
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
  // Of libperflab_allocations.so; null where it is not preloaded.
  ProcessAllocations process_allocations_;
  ThreadAllocations thread_allocations_;
  std::optional<Nanoseconds> previous_at_;
  Nanoseconds previous_cpu_ = 0;
  struct KnownThread;
  std::vector<KnownThread> threads_;  // as the previous call found them
};

}  // namespace perflab::measure
