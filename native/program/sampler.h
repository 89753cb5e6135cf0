// The thread that samples this process's resources periodically, and its costs at both ends of the measured
// part, and writes them to the record file.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "measure/allocation_counts.h"
#include "measure/counter.h"
#include "measure/resources.h"
#include "program/records.h"

namespace perflab::node {

// Hardware counters of the process; opened before any other thread exists.
struct Counters {
  measure::ProcessCounter cycles{measure::ProcessCounter::kCycles};
  measure::ProcessCounter instructions{measure::ProcessCounter::kInstructions};
  measure::ProcessCounter cache_misses{measure::ProcessCounter::kCacheMisses};
};

class Sampler {
 public:
  // `counters` must outlive the sampler.
  Sampler(const measure::Clock& clock, Nanoseconds period_ns, const Counters& counters, RecordFile& file);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Writes the process's total cost at both instants (at once if they have passed). `tracer`: the tracer's
  // threads.
  void measure_cost(Nanoseconds from_ns, Nanoseconds until_ns, std::vector<int> tracer);
  // After measure_cost(): moves the second instant forward.
  void end_at(Nanoseconds until_ns);
  // Between the two instants the library that counts allocations records call sites, which are written after
  // the second. Call before measure_cost(). Throws Failed if the library is not preloaded, or cannot do it.
  void watch_allocations();
  // Writes the cost for the second instant now if it is still ahead, because threads are about to end.
  void end_cost();
  // Takes a last sample and ends the thread. Idempotent.
  void stop();

 private:
  enum class Cost { kIdle, kBefore, kWithin };

  void run();
  // Writes the costs that are due. Requires the mutex.
  void write_due_cost(Nanoseconds now);
  void write_cost(const char* when);
  // Adds the role of each thread in the list, whose entries have a `tid`.
  void add_roles(nlohmann::json& of_threads) const;
  // Allocations of threads other than the instrument's, ended ones included; null if allocations are not
  // counted.
  [[nodiscard]] nlohmann::json workload_allocations(const nlohmann::json& threads) const;
  void begin_cost();
  void finish_cost();

  measure::ResourceSampler resources_;
  const measure::Clock& clock_;
  Nanoseconds period_ns_;
  const Counters& counters_;
  RecordFile& file_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool registered_ = false;
  bool stopping_ = false;
  Cost cost_ = Cost::kIdle;
  Nanoseconds cost_from_ = 0;
  Nanoseconds cost_until_ = 0;
  std::vector<int> tracer_;
  measure::AllocationsBeside allocations_beside_;  // null: not counted
  measure::WatchAllocations watch_ = nullptr;      // null: not requested
  measure::AllocationSites sites_ = nullptr;
  std::thread thread_;
};

}  // namespace perflab::node
