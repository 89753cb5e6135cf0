// A periodic loop with absolute deadlines: a late cycle does not delay later ones. Missed cycles are made up
// for at once, up to a limit; beyond it they are skipped.
//
// Example:
//   PacedLoop loop({.period_ns = 1'000'000, .most_behind_ns = 100'000'000}, measured_from_ns);
//   loop.run(start_ns, PacedLoop::Machine{}, [&] { return stopped; }, [&](Nanoseconds due_ns, Nanoseconds woken_ns) {
//   step(); });
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>

#include "base/time.h"
#include "realtime/thread.h"

namespace perflab::manipulation {

class PacedLoop {
 public:
  struct Options {
    Nanoseconds period_ns = 1'000'000;
    // The largest delay that is made up for; at least one period.
    Nanoseconds most_behind_ns = 100'000'000;
  };

  // Counts the cycles that were due from `measured_from_ns` on, and not after measure_until().
  struct Counts {
    std::uint64_t cycles = 0;
    std::uint64_t late = 0;      // began when the next one was due, or later
    std::uint64_t overruns = 0;  // ended when the next one was due, or later
    std::uint64_t skipped = 0;   // skipped, because the loop was too far behind
    Nanoseconds first_due_ns = kUnknownTime, last_due_ns = kUnknownTime;
    Nanoseconds last_woken_ns = kUnknownTime;
  };

  // The machine's clock; tests pass another one.
  struct Machine {
    [[nodiscard]] Nanoseconds now() const noexcept { return read_clock(CLOCK_MONOTONIC); }
    void sleep_until(Nanoseconds instant) const noexcept { realtime::sleep_until(instant); }
  };

  PacedLoop(const Options& options, Nanoseconds measured_from_ns) : options_(options), measured_from_ns_(measured_from_ns) {}

  // Calls `body(due_ns, woken_ns)` for each cycle until `stopped()`. Adds to counts().
  template <typename Time, typename Stopped, typename Body>
  void run(Nanoseconds start_ns, const Time& time, Stopped&& stopped, Body&& body) {
    for (Nanoseconds due_ns = start_ns; !stopped(); due_ns += options_.period_ns) {
      time.sleep_until(due_ns);
      const Nanoseconds woken_ns = time.now();
      if (woken_ns - due_ns > options_.most_behind_ns) {
        const Nanoseconds missed = (woken_ns - due_ns) / options_.period_ns;
        if (measures(due_ns)) counts_.skipped += static_cast<std::uint64_t>(missed);
        due_ns += missed * options_.period_ns;
      }
      body(due_ns, woken_ns);
      if (!measures(due_ns)) continue;
      if (counts_.cycles == 0) counts_.first_due_ns = due_ns;
      ++counts_.cycles;
      counts_.last_due_ns = due_ns;
      counts_.last_woken_ns = woken_ns;
      if (woken_ns - due_ns >= options_.period_ns) ++counts_.late;
      if (time.now() - due_ns >= options_.period_ns) ++counts_.overruns;
    }
  }

  // Thread-safe.
  void measure_until(Nanoseconds instant) noexcept { measured_until_ns_.store(instant, std::memory_order_relaxed); }
  [[nodiscard]] bool measures(Nanoseconds due_ns) const noexcept {
    return due_ns >= measured_from_ns_ && due_ns <= measured_until_ns_.load(std::memory_order_relaxed);
  }

  // Only in the loop's thread, or once the loop has ended.
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  const Options options_;
  const Nanoseconds measured_from_ns_;
  std::atomic<Nanoseconds> measured_until_ns_{std::numeric_limits<Nanoseconds>::max()};
  Counts counts_;
};

}  // namespace perflab::manipulation
