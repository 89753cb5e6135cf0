// A thread that sleeps periodically and records by how much it overslept: what the machine does to any thread
// with this process's scheduling, independent of the workload.
//
// Each sleep starts when the previous one has ended, so a stall of the machine is one value, its length. If
// the kernel reports how long the thread was runnable while another had its CPU (run delay,
// /proc/thread-self/schedstat), each value is also split into that part and the rest, in which the timer had
// not yet woken the thread.
#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "measure/clock.h"
#include "measure/histogram.h"

namespace perflab::node {

class Hiccup {
 public:
  // Bounds of the period: a shorter one would load a CPU, a longer one would delay the end.
  static constexpr Nanoseconds kShortest = 10'000;
  static constexpr Nanoseconds kLongest = kNanosecondsPerSecond;

  // Creates the thread, which waits, with the caller's scheduling. The clock must outlive it.
  Hiccup(const measure::Clock& clock, Nanoseconds period_ns);
  ~Hiccup();
  Hiccup(const Hiccup&) = delete;
  Hiccup& operator=(const Hiccup&) = delete;

  // Records the sleeps that begin and are due to end between these instants. Call it once.
  void start(Nanoseconds from, Nanoseconds until);
  // After start(): sets an earlier end.
  void end_at(Nanoseconds until) noexcept { until_.store(until, std::memory_order_relaxed); }
  // Ends the thread, after at most one period. Idempotent.
  void stop();
  [[nodiscard]] const measure::Histogram& histogram() const noexcept { return histogram_; }
  // The two parts of each value; null if the kernel does not report them, or before the first value.
  [[nodiscard]] const measure::Histogram* waited() const noexcept { return split_ ? &waited_ : nullptr; }
  [[nodiscard]] const measure::Histogram* woken_late() const noexcept { return split_ ? &woken_late_ : nullptr; }

 private:
  void run();
  // Blocks until the first sleep may begin; false if the thread shall end.
  bool await_start();

  const measure::Clock& clock_;
  const Nanoseconds period_ns_;
  measure::HistogramMemory memory_{3};
  measure::Histogram histogram_{memory_};
  measure::Histogram waited_{memory_};
  measure::Histogram woken_late_{memory_};
  std::atomic<bool> split_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
  bool registered_ = false;
  bool started_ = false;
  Nanoseconds from_ = 0;
  std::atomic<Nanoseconds> until_{0};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace perflab::node
