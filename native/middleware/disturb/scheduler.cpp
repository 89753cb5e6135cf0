#include "middleware/disturb/scheduler.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "middleware/disturb/layer.h"

namespace perflab::middleware::disturb {
namespace {

// A sleeping thread on an idle machine wakes up within about 10 us; spinning longer would be wasted.
constexpr std::int64_t kSpin_ns = 60'000;

// Heap order: the earliest due time is at the top.
bool later(const Job& a, const Job& b) {
  return std::pair(a.due_ns, a.order) > std::pair(b.due_ns, b.order);
}

std::chrono::steady_clock::time_point time_point(std::int64_t monotonic_ns) {
  return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(monotonic_ns));
}

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Scheduler::Scheduler(Do function) : function_(std::move(function)) {
  heap_.reserve(1024);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "disturb");
    prctl(PR_SET_TIMERSLACK, 1);
    run();
  });
}

Scheduler::~Scheduler() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    spin_on_.store(false, std::memory_order_relaxed);
    wake_.notify_one();
  }
  thread_.join();
}

void Scheduler::push(Job job) {
  const std::lock_guard lock(mutex_);
  const std::int64_t due_ns = job.due_ns;
  job.order = next_order_++;
  heap_.push_back(std::move(job));
  std::push_heap(heap_.begin(), heap_.end(), later);
  if (due_ns >= waiting_for_ns_) return;
  waiting_for_ns_ = due_ns;
  spin_on_.store(false, std::memory_order_relaxed);
  wake_.notify_one();
}

void Scheduler::cancel(const Reader* reader) {
  std::vector<Job> dropped;  // freed outside of the lock
  std::unique_lock lock(mutex_);
  // A running job may push another until it has returned.
  done_.wait(lock, [&] { return running_ != reader; });
  const auto others =
      std::partition(heap_.begin(), heap_.end(), [&](const Job& job) { return job.reader != reader; });
  std::move(others, heap_.end(), std::back_inserter(dropped));
  heap_.erase(others, heap_.end());
  std::make_heap(heap_.begin(), heap_.end(), later);
}

void Scheduler::run_first(std::unique_lock<std::mutex>& lock) {
  std::pop_heap(heap_.begin(), heap_.end(), later);
  Job job = std::move(heap_.back());
  heap_.pop_back();
  running_ = job.reader;
  lock.unlock();
  function_(job);
  lock.lock();
  running_ = nullptr;
  done_.notify_all();
}

void Scheduler::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::int64_t due_ns = heap_.empty() ? INT64_MAX : heap_.front().due_ns;
    if (due_ns <= monotonic_ns()) {
      run_first(lock);
      continue;
    }
    waiting_for_ns_ = due_ns;
    if (due_ns == INT64_MAX) {
      wake_.wait(lock);
    } else if (due_ns - monotonic_ns() > kSpin_ns) {
      wake_.wait_until(lock, time_point(due_ns - kSpin_ns));
    } else {
      spin_on_.store(true, std::memory_order_relaxed);
      lock.unlock();
      while (monotonic_ns() < due_ns && spin_on_.load(std::memory_order_relaxed)) pause_cpu();
      lock.lock();
    }
    waiting_for_ns_ = INT64_MIN;  // no wake-up needed: it checks again
  }
}

}  // namespace perflab::middleware::disturb
