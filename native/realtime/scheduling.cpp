#include "realtime/scheduling.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <string>
#include <utility>

#include "base/proc.h"
#include "base/scheduling.h"

namespace perflab::realtime {
namespace {

std::string cpu_list(const std::vector<int>& cpus) {
  std::string text;
  for (const int cpu : cpus) text += (text.empty() ? "" : ",") + std::to_string(cpu);
  return text;
}

cpu_set_t cpu_set(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(static_cast<std::size_t>(cpu), &set);
  }
  return set;
}

std::string limit_text(int resource) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

std::vector<int> cpus_of_this_thread() {
  Scheduling scheduling;
  read_scheduling(0, scheduling);
  return cpus_of(scheduling.cpus);
}

// "2ms/10ms/10ms": runtime, deadline and period as requested.
std::string deadline_text(Nanoseconds runtime_ns, Nanoseconds deadline_ns, Nanoseconds period_ns) {
  return duration_text(runtime_ns) + "/" + duration_text(deadline_ns) + "/" + duration_text(period_ns);
}

void apply_deadline(const ThreadSettings& settings) {
  const auto number = [](Nanoseconds value) { return static_cast<std::uint64_t>(value); };
  const int reason =
      set_deadline(number(settings.runtime_ns), number(settings.deadline_ns), number(settings.period_ns));
  if (reason == 0) return;
  const std::string wanted = "scheduling policy " + describe(settings);
  if (reason == EBUSY) {
    throw SchedulingError(wanted + ": the kernel refuses it, because all threads of this policy together "
                          "would use more CPU time than sched_rt_runtime_us allows; request less runtime per "
                          "period");
  }
  if (reason != EPERM) throw SchedulingError(wanted + ": " + reason_of(reason));
  throw SchedulingError(wanted + " is not permitted: it needs CAP_SYS_NICE, regardless of RLIMIT_RTPRIO, and "
                        "a thread that may run on all CPUs; this one may use " + cpu_list(cpus_of_this_thread()) +
                        "; run as root, and remove the pinning (condition cpu_pinning, taskset, cpuset)");
}

void apply_policy(const ThreadSettings& settings) {
  if (*settings.policy == Policy::kDeadline) {
    apply_deadline(settings);
    return;
  }
  sched_param parameters{};
  parameters.sched_priority = settings.priority;
  if (sched_setscheduler(0, static_cast<int>(*settings.policy), &parameters) == 0) return;
  const int reason = errno;
  const std::string wanted = to_text(*settings.policy) + " " + std::to_string(settings.priority);
  if (reason != EPERM) throw SchedulingError("scheduling policy " + wanted + ": " + reason_of(reason));
  throw SchedulingError("scheduling policy " + wanted + " is not permitted: RLIMIT_RTPRIO is " +
                        limit_text(RLIMIT_RTPRIO) + "; raise it with `ulimit -r " +
                        std::to_string(settings.priority) +
                        "` (permanently: `rtprio` in /etc/security/limits.conf), or grant CAP_SYS_NICE");
}

void apply_cpus(const std::vector<int>& cpus) {
  const cpu_set_t set = cpu_set(cpus);
  const std::vector<int> before = cpus_of_this_thread();
  // The kernel silently ignores CPUs that are not allowed, and fails only if none is left.
  const bool set_ok = sched_setaffinity(0, sizeof set, &set) == 0;
  if (set_ok && cpus_of_this_thread() == cpus) return;
  throw SchedulingError("CPUs " + cpu_list(cpus) + " are not all available: this process may use " +
                        cpu_list(before) +
                        " (`lscpu -e` shows what is online; a cpuset or `taskset` may limit it)");
}

}  // namespace

std::string to_text(Policy policy) { return policy_text(static_cast<std::uint32_t>(policy)); }

std::optional<Policy> policy_from_text(std::string_view text) {
  for (const Policy policy : {Policy::kOther, Policy::kFifo, Policy::kRoundRobin, Policy::kDeadline}) {
    if (text == to_text(policy)) return policy;
  }
  return std::nullopt;
}

std::string describe(const ThreadSettings& settings) {
  std::string text;
  if (settings.policy) {
    text = to_text(*settings.policy);
    if (*settings.policy == Policy::kDeadline) {
      text += " " + deadline_text(settings.runtime_ns, settings.deadline_ns, settings.period_ns);
    } else if (*settings.policy != Policy::kOther) text += " " + std::to_string(settings.priority);
  }
  if (!settings.cpus.empty()) text += (text.empty() ? "on CPUs " : " on CPUs ") + cpu_list(settings.cpus);
  return text.empty() ? "as started" : text;
}

void apply(const ThreadSettings& settings) {
  if (!settings.cpus.empty()) apply_cpus(settings.cpus);
  if (settings.policy) apply_policy(settings);
}

Inherited::Inherited(const ThreadSettings& settings) : changed_(!settings.empty()) {
  if (!changed_) return;
  sched_param parameters{};
  sched_getparam(0, &parameters);
  policy_ = sched_getscheduler(0);
  priority_ = parameters.sched_priority;
  CPU_ZERO(&cpus_);
  sched_getaffinity(0, sizeof cpus_, &cpus_);
  apply(settings);
}

Inherited::~Inherited() {
  if (!changed_) return;
  // A thread may always return to its previous settings.
  sched_param parameters{};
  parameters.sched_priority = priority_;
  sched_setscheduler(0, policy_, &parameters);
  sched_setaffinity(0, sizeof cpus_, &cpus_);
}

namespace {

std::atomic<bool> memory_is_locked{false};

std::string memory_problem(const std::string& reason) {
  return "memory cannot be locked: " + reason + "; RLIMIT_MEMLOCK is " + limit_text(RLIMIT_MEMLOCK) +
         " bytes; raise it with `ulimit -l unlimited` (permanently: `memlock` in "
         "/etc/security/limits.conf), or grant CAP_IPC_LOCK";
}

// True if this process is exempt from the limit (CapEff, bit CAP_IPC_LOCK).
bool may_lock_all() {
  constexpr unsigned kCapIpcLock = 14;
  const std::string status = read_file("/proc/self/status").value_or("");
  const std::size_t line = status.find("\nCapEff:");
  if (line == std::string::npos) return false;
  return (std::stoull(status.substr(line + 8), nullptr, 16) >> kCapIpcLock & 1) != 0;
}

}  // namespace

void lock_memory() {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) throw SchedulingError(memory_problem(reason_of(errno)));
  memory_is_locked = true;
}

std::optional<std::string> lock_limit_reached(const std::string& what_failed) {
  rlimit limit{};
  getrlimit(RLIMIT_MEMLOCK, &limit);
  if (!memory_is_locked || limit.rlim_cur == RLIM_INFINITY || may_lock_all()) return std::nullopt;
  return "lock_memory: " + memory_problem(what_failed);
}

std::optional<ThreadState> read_thread(int tid) {
  ThreadState state;
  state.tid = tid;
  const auto name = read_file("/proc/self/task/" + std::to_string(tid) + "/comm");
  Scheduling scheduling;
  if (!name || name->empty() || !read_scheduling(tid, scheduling)) return std::nullopt;  // the thread has
                                                                                         // ended
  state.name = name->substr(0, name->find('\n'));
  state.policy = policy_text(scheduling.policy);
  state.priority = static_cast<int>(scheduling.priority);
  // For real-time policies sched_getattr(2) returns 0; the kernel keeps the nice value for later.
  state.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(tid));
  state.cpus = cpus_of(scheduling.cpus);
  state.runtime_ns = static_cast<Nanoseconds>(scheduling.runtime_ns);
  state.deadline_ns = static_cast<Nanoseconds>(scheduling.deadline_ns);
  state.period_ns = static_cast<Nanoseconds>(scheduling.period_ns);
  return state;
}

std::vector<ThreadState> read_threads() {
  proc::Numbers tids;
  proc::NumberFolder(AT_FDCWD, "/proc/self/task").read(tids);
  std::ranges::sort(tids);
  std::vector<ThreadState> states;
  for (const int tid : tids) {
    if (auto state = read_thread(tid)) states.push_back(std::move(*state));
  }
  return states;
}

std::vector<int> threads_started_by(const std::function<void()>& work) {
  const auto numbers = [] {
    std::vector<int> tids;
    for (const ThreadState& thread : read_threads()) tids.push_back(thread.tid);
    return tids;
  };
  const std::vector<int> before = numbers();
  work();
  std::vector<int> started;
  std::ranges::set_difference(numbers(), before, std::back_inserter(started));
  return started;
}

std::optional<std::int64_t> locked_memory_kb() {
  return proc::value_after(read_file("/proc/self/status").value_or(""), "\nVmLck:");
}

std::string difference(const ThreadSettings& asked, const ThreadState& found) {
  std::string text;
  if (asked.policy && (found.policy != to_text(*asked.policy) || found.priority != asked.priority)) {
    text = "policy " + found.policy + " " + std::to_string(found.priority) + " instead of " +
           to_text(*asked.policy) + " " + std::to_string(asked.priority);
  }
  const bool other_times = found.runtime_ns != asked.runtime_ns || found.deadline_ns != asked.deadline_ns ||
                           found.period_ns != asked.period_ns;
  if (text.empty() && asked.policy == Policy::kDeadline && other_times) {
    text = "policy DEADLINE " + deadline_text(found.runtime_ns, found.deadline_ns, found.period_ns) + " instead of " +
           deadline_text(asked.runtime_ns, asked.deadline_ns, asked.period_ns);
  }
  if (!asked.cpus.empty() && found.cpus != asked.cpus) {
    text +=
        (text.empty() ? "CPUs " : ", CPUs ") + cpu_list(found.cpus) + " instead of " + cpu_list(asked.cpus);
  }
  return text;
}

}  // namespace perflab::realtime
