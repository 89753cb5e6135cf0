#include "middleware/sim/scheduler.h"

#include <pthread.h>
#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <iterator>

#include "middleware/sim/clock.h"

namespace perflab::middleware::sim {
namespace {

// A sleeping thread on an idle machine wakes within some 10 us; more is spun only in vain.
constexpr std::int64_t kSpin_ns = 60'000;

// Order of a heap whose top is due first.
bool later(const Delivery& a, const Delivery& b) {
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

Scheduler::Scheduler(Deliver deliver) : deliver_(std::move(deliver)) {
  heap_.reserve(1024);
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "sim.deliver");
    prctl(PR_SET_TIMERSLACK, 1);
    run();
  });
}

void Scheduler::push(Delivery delivery) {
  const std::lock_guard lock(mutex_);
  const std::int64_t due_ns = delivery.due_ns;
  delivery.order = next_order_++;
  heap_.push_back(std::move(delivery));
  std::push_heap(heap_.begin(), heap_.end(), later);
  changed(due_ns);
}

void Scheduler::at(std::int64_t due_ns, const void* owner, Task task) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return;
  tasks_.emplace(Key{due_ns, next_order_++}, Owned{owner, std::move(task)});
  changed(due_ns);
}

// Wakes the thread if it waits for something later.
void Scheduler::changed(std::int64_t due_ns) {
  if (due_ns >= waiting_for_ns_) return;
  waiting_for_ns_ = due_ns;
  spin_on_.store(false, std::memory_order_relaxed);
  wake_.notify_one();
}

void Scheduler::cancel(const void* owner) {
  std::vector<Delivery> dropped;  // released without the lock
  std::vector<Owned> forgotten;
  std::unique_lock lock(mutex_);
  const auto keep =
      std::partition(heap_.begin(), heap_.end(), [&](const Delivery& d) { return d.owner != owner; });
  std::move(keep, heap_.end(), std::back_inserter(dropped));
  heap_.erase(keep, heap_.end());
  std::make_heap(heap_.begin(), heap_.end(), later);
  for (auto at = tasks_.begin(); at != tasks_.end();) {
    if (at->second.owner != owner) {
      ++at;
      continue;
    }
    forgotten.push_back(std::move(at->second));
    at = tasks_.erase(at);
  }
  if (std::this_thread::get_id() != thread_.get_id()) {
    done_.wait(lock, [&] { return running_ != owner; });
  }
}

void Scheduler::stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    spin_on_.store(false, std::memory_order_relaxed);
    wake_.notify_one();
  }
  thread_.join();
  heap_.clear();
  tasks_.clear();
}

std::int64_t Scheduler::next_due() const {
  std::int64_t due_ns = INT64_MAX;
  if (!heap_.empty()) due_ns = heap_.front().due_ns;
  if (!tasks_.empty()) due_ns = std::min(due_ns, tasks_.begin()->first.first);
  return due_ns;
}

void Scheduler::run_one(std::unique_lock<std::mutex>& lock) {
  const bool task_first =
      !tasks_.empty() &&
      (heap_.empty() || tasks_.begin()->first < Key{heap_.front().due_ns, heap_.front().order});
  if (task_first) {
    const Owned owned = std::move(tasks_.begin()->second);
    tasks_.erase(tasks_.begin());
    running_ = owned.owner;
    lock.unlock();
    owned.task();
  } else {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    Delivery delivery = std::move(heap_.back());
    heap_.pop_back();
    running_ = delivery.owner;
    lock.unlock();
    deliver_(delivery);
  }
  lock.lock();
  running_ = nullptr;
  done_.notify_all();
}

void Scheduler::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const std::int64_t due_ns = next_due();
    if (due_ns <= monotonic_ns()) {
      run_one(lock);
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
    waiting_for_ns_ = INT64_MIN;  // nobody needs to wake it: it looks again
  }
}

}  // namespace perflab::middleware::sim
