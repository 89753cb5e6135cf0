// A thread that runs jobs at their due times.
//
// It sleeps until shortly before the next due time and spins for the rest, so that a message is late by
// microseconds, not by the kernel's timer slack. Does not allocate once warm.
//
// Its clock is CLOCK_MONOTONIC, never the host's, so that a fault in the host's clock becomes visible.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "base/time.h"

namespace perflab::middleware::disturb {

class Reader;
struct Edge;
struct Message;

inline std::int64_t monotonic_ns() noexcept { return read_clock(CLOCK_MONOTONIC); }

// A job for a reader.
struct Job {
  enum class Kind { deliver, flush, watch_deadline };

  std::int64_t due_ns;
  Kind kind;
  Reader* reader;
  Edge* edge = nullptr;                // for deliver and flush
  std::unique_ptr<Message> message{};  // for deliver
  std::uint64_t number = 0;            // for flush: number of the held message
  std::uint64_t order = 0;             // order among jobs with the same due time; assigned by push()
};

class Scheduler {
 public:
  using Do = std::function<void(Job&)>;

  explicit Scheduler(Do function);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // May be called while holding any lock; never blocks for long.
  void push(Job job);
  // Waits until the running job for `reader` has returned, and drops all others for it. Afterwards only jobs
  // may push for it; the caller must hold no lock that a job might take.
  void cancel(const Reader* reader);

 private:
  void run();
  void run_first(std::unique_lock<std::mutex>& lock);

  Do function_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<Job> heap_;
  std::uint64_t next_order_ = 0;
  const Reader* running_ = nullptr;
  bool stopping_ = false;
  std::int64_t waiting_for_ns_ = INT64_MIN;  // what the thread sleeps or spins for; INT64_MIN while it works
  std::atomic<bool> spin_on_{true};
  std::thread thread_;
};

}  // namespace perflab::middleware::disturb
