#include "programs/burn/burn.h"

#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "realtime/thread.h"

namespace perflab::burn {
namespace {

using realtime::Policy;

// Some microseconds of arithmetic; the volatile prevents optimization.
void arithmetic() noexcept {
  static thread_local volatile std::uint64_t sink = 1;
  std::uint64_t value = sink;
  for (int i = 0; i < 1024; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
  sink = value;
}

void check_priority(Policy policy, int priority) {
  const int number = static_cast<int>(policy);
  const int lowest = sched_get_priority_min(number);
  const int highest = sched_get_priority_max(number);
  if (priority >= lowest && priority <= highest) return;
  const std::string range =
      lowest == highest ? std::to_string(lowest) : std::to_string(lowest) + " to " + std::to_string(highest);
  throw Unsupported("priority " + std::to_string(priority) + " with policy " + to_text(policy) +
                    ": the kernel has " + range);
}

void set_nice(int nice) {
  if (setpriority(PRIO_PROCESS, static_cast<id_t>(gettid()), nice) != 0) {
    rlimit limit{};
    getrlimit(RLIMIT_NICE, &limit);
    throw Unsupported("nice " + std::to_string(nice) + ": " + reason_of(errno) + "; RLIMIT_NICE permits " +
                      std::to_string(std::min(19L, 20 - static_cast<long>(limit.rlim_cur))) +
                      " and above (`nice` in /etc/security/limits.conf, or CAP_SYS_NICE)");
  }
}

}  // namespace

Burn::Burn(const Settings& settings, const Watchdog& watchdog) : settings_(settings), watchdog_(watchdog) {
  check_priority(settings_.policy, settings_.priority);
  try {
    for (const int cpu : settings_.cpus) {
      Worker& worker = *workers_.emplace_back(std::make_unique<Worker>());
      worker.cpu = cpu;
      worker.thread = std::thread([this, &worker] { run(worker); });
    }
    for (const auto& worker : workers_) {
      const std::optional<realtime::ThreadState> state =
          realtime::read_thread(worker->ready.get_future().get());
      if (!state) throw Failed("a burning thread cannot be read from /proc/self/task");
      const realtime::ThreadSettings asked{settings_.policy, settings_.priority, {worker->cpu}};
      std::string other = realtime::difference(asked, *state);
      if (other.empty() && state->nice != settings_.nice)
        other = "nice " + std::to_string(state->nice) + " instead of " + std::to_string(settings_.nice);
      if (!other.empty()) throw Unsupported("the kernel applied other settings: " + other);
      states_.push_back(*state);
    }
  } catch (...) {
    end();
    throw;
  }
}

Burn::~Burn() { end(); }

void Burn::begin() {
  const std::lock_guard lock(mutex_);
  begun_ = true;
  changed_.notify_all();
}

Nanoseconds Burn::end() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  Nanoseconds total = 0;
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
    total += worker->cpu_ns;
  }
  return total;
}

void Burn::run(Worker& worker) {
  realtime::name_this_thread("burn_" + std::to_string(worker.cpu));
  try {
    set_up(worker);
  } catch (...) {
    worker.ready.set_exception(std::current_exception());
    return;
  }
  worker.ready.set_value(gettid());
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return begun_ || ended(); });
  }
  const Nanoseconds began_cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (settings_.load >= 1.0) {
    burn_all(began_cpu_ns);
  } else {
    burn_share(began_cpu_ns);
  }
  worker.cpu_ns = read_clock(CLOCK_THREAD_CPUTIME_ID);
  if (!spent(began_cpu_ns)) return;
  const std::lock_guard lock(mutex_);
  if (++spent_ < settings_.cpus.size()) return;
  spent_at_ns_ = clock_.now();
  spent_event_.notify();
}

void Burn::set_up(const Worker& worker) const {
  watchdog_.watch_this_thread();
  set_nice(settings_.nice);
  realtime::apply({settings_.policy, settings_.priority, {worker.cpu}});
}

std::optional<Nanoseconds> Burn::spent_at() const {
  const std::lock_guard lock(mutex_);
  return spent_at_ns_;
}

void Burn::burn_all(Nanoseconds began_cpu_ns) {
  while (!ended() && !spent(began_cpu_ns)) arithmetic();
}

// CPU time that others took in one period is not made up for in the next.
void Burn::burn_share(Nanoseconds began_cpu_ns) {
  const auto share = static_cast<Nanoseconds>(settings_.load * static_cast<double>(settings_.period_ns));
  for (Nanoseconds begin = clock_.now(); !ended() && !spent(began_cpu_ns);) {
    const Nanoseconds next = begin + settings_.period_ns;
    const Nanoseconds enough = read_clock(CLOCK_THREAD_CPUTIME_ID) + share;
    while (!ended() && read_clock(CLOCK_THREAD_CPUTIME_ID) < enough && clock_.now() < next) arithmetic();
    rest_until(next);
    const Nanoseconds late = clock_.now() - next;
    begin = next + late / settings_.period_ns * settings_.period_ns;
  }
}

void Burn::rest_until(Nanoseconds instant) {
  const std::chrono::steady_clock::time_point until{std::chrono::nanoseconds(instant)};
  std::unique_lock lock(mutex_);
  changed_.wait_until(lock, until, [this] { return ended(); });
}

}  // namespace perflab::burn
