// Threads that use a share of each period on a CPU, with a policy, a priority and a nice value.
#pragma once

#include <atomic>
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "measure/clock.h"
#include "programs/burn/watchdog.h"
#include "realtime/scheduling.h"

namespace perflab::burn {

struct Settings {
  realtime::Policy policy = realtime::Policy::kOther;
  int priority = 0;
  int nice = 0;
  std::vector<int> cpus{};  // one thread on each
  double load = 1.0;        // share of each period, of CPU time, 0 < load <= 1
  Nanoseconds period_ns = 10'000'000;
  Nanoseconds amount_ns = 0;  // CPU time after which each thread ends; 0: until told to end
};

class Burn {
 public:
  // Starts the threads, which wait for begin(). Throws Error with the kernel's refusal.
  Burn(const Settings& settings, const Watchdog& watchdog);
  ~Burn();
  Burn(const Burn&) = delete;
  Burn& operator=(const Burn&) = delete;

  // The threads' state as reported by the kernel, in the order of the CPUs.
  [[nodiscard]] const std::vector<realtime::ThreadState>& threads() const noexcept { return states_; }
  void begin();
  // Readable once every thread has spent its amount.
  [[nodiscard]] int spent_descriptor() const noexcept { return spent_event_.number(); }
  // Time when that happened; empty before.
  [[nodiscard]] std::optional<Nanoseconds> spent_at() const;
  // Ends and joins the threads; returns the CPU time that they used.
  Nanoseconds end();

 private:
  struct Worker {
    int cpu = 0;
    std::promise<int> ready{};  // its tid, or the kernel's refusal
    Nanoseconds cpu_ns = 0;     // set by the thread when it ends
    std::thread thread{};
  };

  void run(Worker& worker);
  void set_up(const Worker& worker) const;
  void burn_all(Nanoseconds began_cpu_ns);
  void burn_share(Nanoseconds began_cpu_ns);
  // True if the calling thread has used its amount.
  [[nodiscard]] bool spent(Nanoseconds began_cpu_ns) const noexcept {
    return settings_.amount_ns > 0 &&
           read_clock(CLOCK_THREAD_CPUTIME_ID) - began_cpu_ns >= settings_.amount_ns;
  }
  void rest_until(Nanoseconds instant);
  [[nodiscard]] bool ended() const noexcept {
    return ended_.load(std::memory_order_relaxed) || Watchdog::limit_reached();
  }

  const Settings& settings_;
  const Watchdog& watchdog_;
  const measure::MonotonicClock clock_;
  std::vector<realtime::ThreadState> states_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool begun_ = false;
  std::size_t spent_ = 0;  // number of threads
  std::optional<Nanoseconds> spent_at_ns_;
  Event spent_event_;
  std::atomic<bool> ended_{false};
  std::vector<std::unique_ptr<Worker>> workers_;
};

}  // namespace perflab::burn
