// `priority`: one thread. When free, it runs the ready callback (timer or message) with the highest priority;
// of equal ones, the one that became ready first. A running callback is not interrupted. This is the executor
// of PiCAS (Choi, Xiang, Kim: PiCAS: New Design of Priority-Driven Chain-Aware Scheduling for ROS2, RTAS
// 2021) within one thread; the kernel schedules its threads among each other (`--thread`).
//
// Fed like `events`. A source with more messages, and a timer that is late by a whole period, become ready
// again when their callback ends: they queue behind waiting callbacks of equal priority.
#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <vector>

#include "runtime/dds/executor.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/waitable.h"
#include "runtime/ready_order.h"

namespace perflab::runtime {

class DdsRuntime::PriorityExecutor final : public DdsExecutor {
 public:
  using DdsExecutor::DdsExecutor;
  ~PriorityExecutor() override { PriorityExecutor::stop(); }

  void add_subscription(DdsSubscription& subscription) override {
    const int priority = subscription.settings().priority;
    add_source(subscription.from_middleware(), priority);
    if (MessageSource* const source = subscription.from_process()) add_source(*source, priority);
  }
  void add_waitable(DdsWaitable& waitable) override { add_source(waitable, waitable.settings().priority); }
  void add_timer(const TimerSettings& settings, TimerHandler& handler) override {
    timers_.push_back({TimerSchedule(settings, handler), settings.priority});
    make_room();
  }
  void set_base(Nanoseconds base_ns) noexcept override {
    sleeping_timers_.clear();
    for (Timer& timer : timers_) {
      timer.schedule.set_base(base_ns);
      if (!timer.schedule.done()) sleeping_timers_.push_back(&timer);
    }
    std::ranges::make_heap(sleeping_timers_, later);
    unfinished_timers_ = sleeping_timers_.size();
    timers_done_.store(unfinished_timers_ == 0, std::memory_order_release);
  }

  void create_threads() override {
    workers_.create(settings_, 1, [this](std::size_t) { spin(); });
  }
  void run() override { workers_.release(); }
  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
    }
    arrived_.notify_one();
    workers_.join();
  }

  void on_ready(Source& source) noexcept override {
    if (source.queued.exchange(true, std::memory_order_acq_rel)) return;
    const Nanoseconds now = clock_.now();
    bool sleeping = false;
    {
      const std::lock_guard lock(mutex_);
      ready_.push({&source, nullptr}, source.priority, now);
      sleeping = std::exchange(sleeping_, false);
    }
    if (sleeping) arrived_.notify_one();
  }

 private:
  struct Timer {
    TimerSchedule schedule;
    int priority;
  };
  // Exactly one of the two is set.
  struct Ready {
    Source* source;
    Timer* timer;
  };

  static bool later(const Timer* a, const Timer* b) noexcept {
    return a->schedule.next_due() > b->schedule.next_due();
  }

  void add_source(Source& source, int priority) {
    source.priority = priority;
    make_room();
  }
  void make_room() {
    ++members_;
    const std::lock_guard lock(mutex_);  // readers that exist already may have data
    ready_.reserve(members_);
  }

  void spin() noexcept {
    tell_next_ready();
    std::unique_lock lock(mutex_);
    while (!stopping()) {
      release_due();
      if (ready_.empty()) {
        wait(lock);
        continue;
      }
      const Ready next = ready_.pop();
      lock.unlock();
      if (next.source != nullptr) {
        run_source(*next.source);
        lock.lock();
      } else {
        next.timer->schedule.fire(clock_.now());
        lock.lock();
        put_back(*next.timer);
      }
    }
  }

  void run_source(Source& source) noexcept {
    // Before taking anything: from here on a new message or trigger queues the source again.
    source.queued.exchange(false, std::memory_order_acq_rel);
    if (run_one(source) == Source::Turn::kMore) on_ready(source);
  }

  // Requires the mutex, as everything below. A tick counts as ready since its due time.
  void release_due() noexcept {
    if (sleeping_timers_.empty()) return;
    const Nanoseconds now = clock_.now();
    while (!sleeping_timers_.empty() && sleeping_timers_.front()->schedule.next_due() <= now) {
      std::ranges::pop_heap(sleeping_timers_, later);
      Timer* const due = sleeping_timers_.back();
      sleeping_timers_.pop_back();
      ready_.push({nullptr, due}, due->priority, due->schedule.next_due());
    }
  }
  void put_back(Timer& timer) noexcept {
    if (timer.schedule.done()) {
      if (--unfinished_timers_ == 0) timers_done_.store(true, std::memory_order_release);
      return;
    }
    const Nanoseconds now = clock_.now();
    if (timer.schedule.next_due() <= now) {
      ready_.push({nullptr, &timer}, timer.priority, now);
    } else {
      sleeping_timers_.push_back(&timer);
      std::ranges::push_heap(sleeping_timers_, later);
    }
  }

  void wait(std::unique_lock<std::mutex>& lock) noexcept {
    const Nanoseconds timeout =
        sleeping_timers_.empty()
            ? TimerQueue::kNever
            : std::max<Nanoseconds>(0, sleeping_timers_.front()->schedule.next_due() - clock_.now());
    if (timeout == 0) return;
    sleeping_ = true;
    tell_wait(timeout);
    if (timeout == TimerQueue::kNever) {
      arrived_.wait(lock);
    } else {
      arrived_.wait_for(lock, std::chrono::nanoseconds(timeout));
    }
    sleeping_ = false;
    tell_next_ready();
  }

  std::size_t members_ = 0;
  std::deque<Timer> timers_;  // stable addresses
  std::vector<Timer*> sleeping_timers_;  // a heap, the earliest first; neither ready nor running
  std::size_t unfinished_timers_ = 0;
  std::mutex mutex_;
  std::condition_variable arrived_;
  ReadyOrder<Ready> ready_;
  bool sleeping_ = false;
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_priority(
    const measure::Clock& clock, const ExecutorSettings& settings, const perflab_ros2_tracepoints* trace) {
  return std::make_unique<PriorityExecutor>(clock, settings, trace);
}

}  // namespace perflab::runtime
