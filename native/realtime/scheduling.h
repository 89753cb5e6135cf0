// Scheduling of the threads of this process: the requested settings, applied by the thread itself, and read
// back from the kernel.
//
// A new thread inherits policy, priority and CPU set from its creator. So settings for a library's threads
// are applied to the calling thread before the library starts them, and undone afterwards.
//
// Example:
//   {
//     const Inherited inherited(settings);   // throws SchedulingError if not permitted
//     library.start();                       // its threads inherit the settings
//   }                                        // the calling thread has its old settings again
//   for (const ThreadState& thread : read_threads()) ...;
#pragma once

#include <sched.h>

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"

namespace perflab::realtime {

enum class Policy { kOther = SCHED_OTHER, kFifo = SCHED_FIFO, kRoundRobin = SCHED_RR, kDeadline = 6 };

std::string to_text(Policy policy);  // "OTHER", "FIFO", "RR", "DEADLINE"
std::optional<Policy> policy_from_text(std::string_view text);

inline constexpr int kLowestPriority = 1;
inline constexpr int kHighestPriority = 99;

struct ThreadSettings {
  std::optional<Policy> policy{};  // none: inherited
  int priority = 0;                // kLowestPriority..kHighestPriority for FIFO and RR, otherwise 0
  std::vector<int> cpus{};         // ascending; empty: inherited
  // For DEADLINE, which is not inherited and needs all CPUs: CPU time per period, due by the deadline of each
  // period.
  Nanoseconds runtime_ns = 0;
  Nanoseconds deadline_ns = 0;
  Nanoseconds period_ns = 0;

  [[nodiscard]] bool empty() const noexcept { return !policy && cpus.empty(); }
  bool operator==(const ThreadSettings&) const = default;
};

// "RR 98 on CPUs 0,1"; "as started" if nothing is set.
std::string describe(const ThreadSettings& settings);

// The kernel refused; one line that names the limit and how to raise it.
class SchedulingError : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

// Applies the settings to the calling thread. Throws SchedulingError.
void apply(const ThreadSettings& settings);

// Applies the settings to the calling thread, and restores the previous ones at the end of the scope.
class Inherited {
 public:
  explicit Inherited(const ThreadSettings& settings);
  ~Inherited();
  Inherited(const Inherited&) = delete;
  Inherited& operator=(const Inherited&) = delete;

 private:
  bool changed_;
  int policy_ = 0;
  int priority_ = 0;
  cpu_set_t cpus_{};
};

// Locks all present and future pages of the process (mlockall). Throws SchedulingError.
void lock_memory();
// After lock_memory() every new mapping and stack counts against RLIMIT_MEMLOCK. Returns the message for a
// failure caused by that limit; empty if the limit does not apply.
std::optional<std::string> lock_limit_reached(const std::string& what_failed);

// The state of one thread as the kernel reports it.
struct ThreadState {
  int tid = 0;
  std::string name;
  std::string policy;  // "OTHER", "FIFO", "RR", "BATCH", "IDLE", "DEADLINE"
  int priority = 0;    // real-time priority; 0 for other policies
  int nice = 0;
  std::vector<int> cpus{};  // ascending
  Nanoseconds runtime_ns = 0;  // for DEADLINE; likewise below
  Nanoseconds deadline_ns = 0;
  Nanoseconds period_ns = 0;

  bool operator==(const ThreadState&) const = default;
};

// The thread with this number; empty if it does not exist (any more).
std::optional<ThreadState> read_thread(int tid);
// All threads of this process, ordered by tid.
std::vector<ThreadState> read_threads();
// Threads of this process that started while `work` ran, ordered by tid.
std::vector<int> threads_started_by(const std::function<void()>& work);
// Kilobytes of this process that are locked in memory (VmLck).
std::optional<std::int64_t> locked_memory_kb();

// The difference between requested and actual state: "policy OTHER instead of RR 98"; empty if there is none.
std::string difference(const ThreadSettings& asked, const ThreadState& found);

}  // namespace perflab::realtime
