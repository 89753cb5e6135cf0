#include "programs/watchdog/watchdog.h"

#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "base/scheduling.h"
#include "realtime/scheduling.h"

namespace perflab::watchdog {
namespace {

using nlohmann::json;

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kShortestInterval = 50 * kMillisecond;
constexpr Nanoseconds kLongestInterval = 500 * kMillisecond;
// For processes that end with perflab by themselves; less than the grace period of perflab-guard, which ends
// this program.
constexpr Nanoseconds kGrace = 1'000 * kMillisecond;
constexpr Nanoseconds kBetweenKills = 20 * kMillisecond;
constexpr int kMostKills = 25;

std::string folder_of(pid_t pid) { return "/proc/" + std::to_string(pid) + "/"; }

Descriptor file_of(pid_t pid, const std::string& name) {
  return open_file(AT_FDCWD, (folder_of(pid) + name).c_str());
}

void take_priority() {
  rlimit limit{};
  getrlimit(RLIMIT_RTPRIO, &limit);
  const auto allowed = static_cast<int>(std::min<rlim_t>(limit.rlim_cur, realtime::kHighestPriority));
  for (const int priority : {realtime::kHighestPriority, allowed}) {
    sched_param parameters{};
    parameters.sched_priority = priority;
    // An RLIMIT_RTTIME would end this program as well; users who set one know that.
    if (priority > 0 && sched_setscheduler(0, SCHED_RR, &parameters) == 0) return;
  }
}

bool has_real_time_thread(pid_t pid) {
  proc::NumberFolder folder(AT_FDCWD, (folder_of(pid) + "task").c_str());
  if (!folder.open()) return false;
  proc::Numbers threads;
  folder.read(threads);
  return std::ranges::any_of(threads, [](int tid) {
    const int policy = sched_getscheduler(tid) & ~SCHED_RESET_ON_FORK;
    return policy == SCHED_FIFO || policy == SCHED_RR;
  });
}

}  // namespace

Watchdog::Watchdog(const Settings& settings)
    : settings_(settings), perflab_(proc::open_process(settings.perflab)) {
  const std::string pid = std::to_string(settings.perflab);
  if (!perflab_.open()) throw Failed("process " + pid + ": " + reason_of(errno));
  stat_ = file_of(settings.perflab, "stat");
  schedstat_ = file_of(settings.perflab, "schedstat");
  children_ = file_of(settings.perflab, "task/" + pid + "/children");
  if (!stat_.open() || !proc::parse_schedstat(proc::read_again(schedstat_).value_or("")))
    throw Unsupported("the kernel does not report threads' waiting times (/proc/PID/schedstat: "
                      "CONFIG_SCHED_INFO)");
  if (!settings.cpus.empty()) realtime::apply({.policy = {}, .priority = 0, .cpus = settings.cpus});
  // Avoids page faults when it matters; if memory must not be locked it works nevertheless.
  static_cast<void>(mlockall(MCL_CURRENT));
  take_priority();
}

json Watchdog::ready() const {
  const auto self = realtime::read_thread(getpid());
  if (!self) throw Failed("its own thread is missing in /proc");
  return {{"type", "ready"}, {"policy", self->policy}, {"priority", self->priority}, {"cpus", self->cpus}};
}

void Watchdog::run(Control& control) {
  const Descriptor signals = take_signals({SIGTERM, SIGINT, SIGHUP});
  control.send(ready());
  const Nanoseconds interval_ns = std::clamp(settings_.limit_ns / 10, kShortestInterval, kLongestInterval);
  while (true) {
    const auto message = control.receive(interval_ns, {perflab_.number(), signals.number()});
    pollfd ended{perflab_.number(), POLLIN, 0};
    if (poll(&ended, 1, 0) > 0) return outlive(signals);
    if (next_signal(signals) != 0) return;
    if (message && *message == json{{"type", "stop"}}) return;
    if (message) throw Failed("control channel: unexpected line: " + message->dump().substr(0, 80));
    if (control.closed()) return;
    look(control);
  }
}

void Watchdog::look(Control& control) {
  note_children();
  char state = '?';
  if (const auto text = proc::read_again(stat_)) {
    if (const auto stat = proc::parse_stat(*text)) state = stat->state;
  }
  const auto text = proc::read_again(schedstat_);
  const auto now = text ? proc::parse_schedstat(*text) : std::nullopt;
  if (!now) return;  // it has just ended
  const bool kept = (state == 'R' || state == 'D') && *now == last_;
  last_ = *now;
  if (!kept) {
    stuck_since_ns_ = kUnknownTime;
    return;
  }
  const Nanoseconds at_ns = clock_.now();
  if (stuck_since_ns_ == kUnknownTime) stuck_since_ns_ = at_ns;
  if (at_ns - stuck_since_ns_ < settings_.limit_ns) return;
  control.send({{"type", "fired"},
                {"at_ns", at_ns},
                {"waited_ns", at_ns - stuck_since_ns_},
                {"state", std::string(1, state)},
                {"killed", kill_real_time({settings_.perflab})}});
  stuck_since_ns_ = kUnknownTime;
}

void Watchdog::note_children() {
  proc::Numbers pids;
  if (const auto text = proc::read_again(children_)) {
    proc::parse_numbers(*text, pids);
  } else {  // the kernel lacks CONFIG_PROC_CHILDREN
    for (const proc::Process& process : proc::living_descendants({settings_.perflab}))
      pids.push_back(process.identity.pid);
  }
  for (const pid_t pid : pids) {
    if (known_.contains(pid)) continue;
    if (const auto process = proc::read_process(pid)) known_.emplace(pid, process->identity.start_ticks);
  }
}

// perflab has ended, and its former children have other parents.
void Watchdog::outlive(const Descriptor& signals) {
  for (const Nanoseconds until = clock_.now() + kGrace; clock_.now() < until;) {
    pollfd waiting{signals.number(), POLLIN, 0};
    poll(&waiting, 1, static_cast<int>(kBetweenKills / kMillisecond));
    while (next_signal(signals) != 0) {
    }
  }
  for (int number = 0; number < kMostKills; ++number) {
    std::vector<pid_t> left;
    for (const auto& [pid, start_ticks] : known_) {
      const auto process = proc::read_process(pid);
      if (process && process->identity.start_ticks == start_ticks) left.push_back(pid);
    }
    if (kill_real_time(left).empty()) return;
    poll(nullptr, 0, static_cast<int>(kBetweenKills / kMillisecond));
  }
}

json Watchdog::kill_real_time(const std::vector<pid_t>& of) const {
  json killed = json::array();
  std::vector<proc::Process> processes = proc::living_descendants(of);
  for (const pid_t pid : of) {
    auto process = proc::read_process(pid);
    if (process && !process->dead && pid != settings_.perflab) processes.push_back(std::move(*process));
  }
  for (const proc::Process& process : processes) {
    const pid_t pid = process.identity.pid;
    if (pid == getpid() || !has_real_time_thread(pid)) continue;
    if (!proc::send_signal(process.identity, SIGKILL)) continue;  // it has just ended
    killed.push_back({{"pid", pid}, {"name", process.name}});
  }
  return killed;
}

}  // namespace perflab::watchdog
