// How threads of this process are scheduled: asked for, applied in the thread itself, and read back from the
// kernel.
//
// A new thread inherits policy, priority and CPU set of the thread that creates it. So what a library's
// threads shall have is set for the calling thread before the library starts them, and set back afterwards.
//
// Example:
//   {
//     const Inherited inherited(settings);   // throws SchedulingError where that is not permitted
//     library.start();                       // its threads inherit the settings
//   }                                        // the calling thread is again as it was
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
  std::optional<Policy> policy{};  // none: as inherited
  int priority = 0;                // kLowestPriority..kHighestPriority with FIFO and RR, else 0
  std::vector<int> cpus{};         // ascending; empty: as inherited
  // Of DEADLINE, which is not inherited and takes all CPUs: so much CPU time until the deadline of each period.
  Nanoseconds runtime_ns = 0;
  Nanoseconds deadline_ns = 0;
  Nanoseconds period_ns = 0;

  [[nodiscard]] bool empty() const noexcept { return !policy && cpus.empty(); }
  bool operator==(const ThreadSettings&) const = default;
};

// "RR 98 on CPUs 0,1"; "as started" where nothing is asked for.
std::string describe(const ThreadSettings& settings);

// The kernel refuses; one line that names the limit and how to raise it.
class SchedulingError : public Unsupported {
 public:
  using Unsupported::Unsupported;
};

// Of the calling thread. Throws SchedulingError.
void apply(const ThreadSettings& settings);

// Applies the settings to the calling thread, and what it had before at the end of the scope.
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
// After lock_memory() every new mapping and stack counts against RLIMIT_MEMLOCK: what to say of a failure
// that comes of it; nothing where the limit does not apply.
std::optional<std::string> lock_limit_reached(const std::string& what_failed);

// What the kernel says of one thread.
struct ThreadState {
  int tid = 0;
  std::string name;
  std::string policy;  // "OTHER", "FIFO", "RR", "BATCH", "IDLE", "DEADLINE"
  int priority = 0;    // real-time priority; 0 with the others
  int nice = 0;
  std::vector<int> cpus{};  // ascending
  Nanoseconds runtime_ns = 0;  // of DEADLINE; likewise below
  Nanoseconds deadline_ns = 0;
  Nanoseconds period_ns = 0;

  bool operator==(const ThreadState&) const = default;
};

// One thread of this process, or nothing if there is none with that number (any more).
std::optional<ThreadState> read_thread(int tid);
// All threads of this process, by number.
std::vector<ThreadState> read_threads();
// The threads of this process that started while `work` ran, by number.
std::vector<int> threads_started_by(const std::function<void()>& work);
// Kilobytes of this process that are locked in memory (VmLck).
std::optional<std::int64_t> locked_memory_kb();

// Where the state is not what was asked for: "policy OTHER instead of RR 98"; else empty.
std::string difference(const ThreadSettings& asked, const ThreadState& found);

}  // namespace perflab::realtime
