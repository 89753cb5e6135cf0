#include "realtime/scheduling.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

namespace perflab::realtime {
namespace {

struct PolicyName {
  int number;
  std::string_view text;
};
// As chrt(1) names them.
constexpr std::array<PolicyName, 6> kPolicies{{{SCHED_OTHER, "OTHER"},
                                               {SCHED_FIFO, "FIFO"},
                                               {SCHED_RR, "RR"},
                                               {SCHED_BATCH, "BATCH"},
                                               {SCHED_IDLE, "IDLE"},
                                               {6, "DEADLINE"}}};

std::string policy_text(int number) {
  for (const PolicyName& policy : kPolicies) {
    if (policy.number == number) return std::string(policy.text);
  }
  return std::to_string(number);
}

int policy_number(Policy policy) noexcept {
  switch (policy) {
    case Policy::kFifo:
      return SCHED_FIFO;
    case Policy::kRoundRobin:
      return SCHED_RR;
    case Policy::kOther:
      break;
  }
  return SCHED_OTHER;
}

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

std::vector<int> cpus_of(const cpu_set_t& set) {
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string limit_text(int resource) {
  rlimit limit{};
  getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

void apply_policy(const ThreadSettings& settings) {
  sched_param parameters{};
  parameters.sched_priority = settings.priority;
  if (sched_setscheduler(0, policy_number(*settings.policy), &parameters) == 0) return;
  const int reason = errno;
  const std::string wanted = std::string(to_text(*settings.policy)) + " " + std::to_string(settings.priority);
  if (reason != EPERM) throw SchedulingError("scheduling policy " + wanted + ": " + std::strerror(reason));
  throw SchedulingError("scheduling policy " + wanted + " is not permitted: RLIMIT_RTPRIO is " +
                        limit_text(RLIMIT_RTPRIO) + "; raise it with `ulimit -r " +
                        std::to_string(settings.priority) +
                        "` (permanently: `rtprio` in /etc/security/limits.conf), or give CAP_SYS_NICE");
}

void apply_cpus(const std::vector<int>& cpus) {
  const cpu_set_t set = cpu_set(cpus);
  cpu_set_t before;
  CPU_ZERO(&before);
  sched_getaffinity(0, sizeof before, &before);
  // The kernel silently leaves out CPUs that it does not grant, and fails only if none is left.
  const bool set_ok = sched_setaffinity(0, sizeof set, &set) == 0;
  cpu_set_t now;
  CPU_ZERO(&now);
  sched_getaffinity(0, sizeof now, &now);
  if (set_ok && cpus_of(now) == cpus) return;
  throw SchedulingError("CPUs " + cpu_list(cpus) + " are not all there: this process may use " +
                        cpu_list(cpus_of(before)) +
                        " (`lscpu -e` shows what is online; a cpuset or `taskset` may limit it)");
}

std::vector<int> threads_of_this_process() {
  std::vector<int> tids;
  DIR* const folder = opendir("/proc/self/task");
  if (folder == nullptr) return tids;
  while (const dirent* entry = readdir(folder)) {
    int tid = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, tid).ptr == end && tid > 0) tids.push_back(tid);
  }
  closedir(folder);
  std::ranges::sort(tids);
  return tids;
}

}  // namespace

std::string_view to_text(Policy policy) noexcept {
  switch (policy) {
    case Policy::kFifo:
      return "FIFO";
    case Policy::kRoundRobin:
      return "RR";
    case Policy::kOther:
      break;
  }
  return "OTHER";
}

std::optional<Policy> policy_from_text(std::string_view text) noexcept {
  for (const Policy policy : {Policy::kOther, Policy::kFifo, Policy::kRoundRobin}) {
    if (text == to_text(policy)) return policy;
  }
  return std::nullopt;
}

std::string describe(const ThreadSettings& settings) {
  std::string text;
  if (settings.policy) {
    text = to_text(*settings.policy);
    if (*settings.policy != Policy::kOther) text += " " + std::to_string(settings.priority);
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
  // What the thread had before it may always have again.
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
         "/etc/security/limits.conf), or give CAP_IPC_LOCK";
}

// Whether the limit does not apply to this process (CapEff, bit CAP_IPC_LOCK).
bool may_lock_all() {
  constexpr unsigned kCapIpcLock = 14;
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("CapEff:"))
      return (std::stoull(line.substr(7), nullptr, 16) >> kCapIpcLock & 1) != 0;
  }
  return false;
}

}  // namespace

void lock_memory() {
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) throw SchedulingError(memory_problem(std::strerror(errno)));
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
  const std::string folder = "/proc/self/task/" + std::to_string(tid);
  std::ifstream name(folder + "/comm");
  if (!std::getline(name, state.name)) return std::nullopt;
  const int policy = sched_getscheduler(tid);
  sched_param parameters{};
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (policy < 0 || sched_getparam(tid, &parameters) != 0 ||
      sched_getaffinity(tid, sizeof cpus, &cpus) != 0) {
    return std::nullopt;  // it has ended
  }
  state.policy = policy_text(policy & ~SCHED_RESET_ON_FORK);
  state.priority = parameters.sched_priority;
  state.nice = getpriority(PRIO_PROCESS, static_cast<id_t>(tid));
  state.cpus = cpus_of(cpus);
  return state;
}

std::vector<ThreadState> read_threads() {
  std::vector<ThreadState> states;
  for (const int tid : threads_of_this_process()) {
    if (auto state = read_thread(tid)) states.push_back(std::move(*state));
  }
  return states;
}

std::optional<long> locked_memory_kb() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmLck:")) return std::stol(line.substr(6));
  }
  return std::nullopt;
}

std::string difference(const ThreadSettings& asked, const ThreadState& found) {
  std::string text;
  if (asked.policy && (found.policy != to_text(*asked.policy) || found.priority != asked.priority)) {
    text = "policy " + found.policy + " " + std::to_string(found.priority) + " instead of " +
           std::string(to_text(*asked.policy)) + " " + std::to_string(asked.priority);
  }
  if (!asked.cpus.empty() && found.cpus != asked.cpus) {
    text +=
        (text.empty() ? "CPUs " : ", CPUs ") + cpu_list(found.cpus) + " instead of " + cpu_list(asked.cpus);
  }
  return text;
}

}  // namespace perflab::realtime
