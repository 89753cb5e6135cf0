// `multi_threaded`: several threads; callbacks of one group exclude each other, groups run in parallel, like
// rclcpp's MultiThreadedExecutor. Fed like `events`.
//
// Each group queues its ready callbacks. Groups that have a ready callback and none running are queued
// themselves. A thread takes the first group, runs its first callback and appends the group again: no group
// delays another, and no source delays others of its group. A tick that becomes due goes to the front; a
// timer that is late by a whole period is queued like a source.
//
// Of the threads without work, one waits for the next tick and the others for work only.
#include <sched.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "base/queue.h"
#include "runtime/dds/executor.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/waitable.h"

namespace perflab::runtime {
class DdsRuntime::MultiThreadedExecutor final : public DdsExecutor {
 public:
  using DdsExecutor::DdsExecutor;
  ~MultiThreadedExecutor() override { MultiThreadedExecutor::stop(); }

  void add_subscription(DdsSubscription& subscription) override {
    const std::lock_guard lock(mutex_);  // readers that exist already may have data
    const std::size_t group = group_index(subscription.settings().group);
    add_source(subscription.from_middleware(), group);
    if (MessageSource* const source = subscription.from_process()) add_source(*source, group);
  }
  void add_waitable(DdsWaitable& waitable) override {
    const std::lock_guard lock(mutex_);
    add_source(waitable, group_index(waitable.settings().group));
  }
  void add_timer(const TimerSettings& settings, TimerHandler& handler) override {
    const std::lock_guard lock(mutex_);
    Group& group = groups_[group_index(settings.group)];
    make_room(group);
    timers_.push_back({TimerSchedule(settings, handler), &group});
  }
  void set_base(Nanoseconds base_ns) noexcept override {
    const std::lock_guard lock(mutex_);
    sleeping_timers_.clear();
    for (Timer& timer : timers_) {
      timer.schedule.set_base(base_ns);
      if (!timer.schedule.done()) sleeping_timers_.push_back(&timer);
    }
    std::ranges::make_heap(sleeping_timers_, later);
    unfinished_timers_ = sleeping_timers_.size();
    due_.reserve(timers_.size());
    timers_done_.store(unfinished_timers_ == 0, std::memory_order_release);
  }

  void create_threads() override {
    const std::size_t count =
        settings_.threads > 0 ? static_cast<std::size_t>(settings_.threads) : usable_cpus();
    workers_.create(settings_, count, [this](std::size_t) { spin(); });
  }
  void run() override { workers_.release(); }
  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
    }
    work_.notify_all();
    tick_.notify_all();
    workers_.join();
  }

  void on_ready(Source& source) noexcept override {
    if (source.queued.exchange(true, std::memory_order_acq_rel)) return;
    std::condition_variable* sleeper = nullptr;
    {
      const std::lock_guard lock(mutex_);
      Group& group = groups_[source.index];
      group.ready.push_back({&source, nullptr});
      if (group.running || group.listed) return;
      list(group);
      sleeper = somebody();
    }
    if (sleeper != nullptr) sleeper->notify_one();
  }

 private:
  struct Group;
  struct Timer {
    TimerSchedule schedule;
    Group* group;
  };
  // One of the two.
  struct Ready {
    Source* source = nullptr;
    Timer* timer = nullptr;
  };
  struct Group {
    BoundedQueue<Ready> ready;
    std::size_t members = 0;
    bool running = false;  // a callback of the group is running
    bool listed = false;   // the group is in ready_groups_
  };

  static bool later(const Timer* a, const Timer* b) noexcept {
    return a->schedule.next_due() > b->schedule.next_due();
  }

  std::size_t group_index(std::size_t name) {
    const auto [at, is_new] = group_names_.try_emplace(name, groups_.size());
    if (is_new) {
      groups_.emplace_back();
      ready_groups_.reserve(groups_.size());
    }
    return at->second;
  }
  static void make_room(Group& group) { group.ready.reserve(++group.members); }
  void add_source(Source& source, std::size_t group) {
    make_room(groups_[group]);
    source.index = group;
  }

  // ---- everything below requires the mutex, except callbacks ----

  void spin() noexcept {
    tell_next_ready();
    std::unique_lock lock(mutex_);
    while (!stopping()) {
      const Nanoseconds now = sleeping_timers_.empty() ? 0 : clock_.now();
      release_due(now);
      if (ready_groups_.empty()) {
        wait(lock, now);
        continue;
      }
      Group& group = *ready_groups_.pop_front();
      group.listed = false;
      group.running = true;
      const Ready ready = group.ready.pop_front();
      std::condition_variable* const sleeper = successor();
      lock.unlock();
      if (sleeper != nullptr) sleeper->notify_one();
      const bool again = ready.source != nullptr ? run_source(*ready.source) : run_timer(*ready.timer);
      lock.lock();
      group.running = false;
      if (ready.timer != nullptr) {
        put_back(*ready.timer, again);
      } else if (again) {
        group.ready.push_back(ready);
      }
      if (!group.ready.empty() && !group.listed) list(group);
    }
  }

  // Both run without the mutex. True: queue it again.
  bool run_source(Source& source) const noexcept {
    // Before taking anything: from here on a new message or trigger queues the source again.
    source.queued.exchange(false, std::memory_order_acq_rel);
    return run_one(source) == Source::Turn::kMore &&
           !source.queued.exchange(true, std::memory_order_acq_rel);
  }
  bool run_timer(Timer& timer) noexcept {
    timer.schedule.fire(clock_.now());
    return !timer.schedule.done() && timer.schedule.next_due() <= clock_.now();
  }

  void list(Group& group) noexcept {
    group.listed = true;
    ready_groups_.push_back(&group);
  }

  void release_due(Nanoseconds now) noexcept {
    while (!sleeping_timers_.empty() && sleeping_timers_.front()->schedule.next_due() <= now) {
      std::ranges::pop_heap(sleeping_timers_, later);
      due_.push_back(sleeping_timers_.back());
      sleeping_timers_.pop_back();
    }
    // Pushed in reverse, so that the earliest comes first.
    for (; !due_.empty(); due_.pop_back()) {
      Group& group = *due_.back()->group;
      group.ready.push_front({nullptr, due_.back()});
      if (group.running || group.listed) continue;
      group.listed = true;
      ready_groups_.push_front(&group);
    }
  }

  void put_back(Timer& timer, bool due_again) noexcept {
    if (timer.schedule.done()) {
      if (--unfinished_timers_ == 0) timers_done_.store(true, std::memory_order_release);
    } else if (due_again) {
      timer.group->ready.push_back({nullptr, &timer});
    } else {
      sleeping_timers_.push_back(&timer);
      std::ranges::push_heap(sleeping_timers_, later);
      if (watched_until_ && timer.schedule.next_due() < *watched_until_) tick_.notify_one();
    }
  }

  void wait(std::unique_lock<std::mutex>& lock, Nanoseconds now) noexcept {
    if (sleeping_timers_.empty() || watched_until_) {
      ++idle_;
      tell_wait(TimerQueue::kNever);
      work_.wait(lock);
      tell_next_ready();
      --idle_;
      return;
    }
    watched_until_ = sleeping_timers_.front()->schedule.next_due();
    const Nanoseconds timeout = *watched_until_ - now;
    tell_wait(timeout);
    tick_.wait_for(lock, std::chrono::nanoseconds(timeout));
    tell_next_ready();
    watched_until_.reset();
  }

  // The condition variable of an idle thread, or null. A thread that was woken but has not run yet still
  // counts; it passes on any further work it finds (successor()).
  std::condition_variable* somebody() noexcept {
    if (idle_ > 0) return &work_;
    return watched_until_ ? &tick_ : nullptr;
  }
  // A thread that leaves for a callback wakes another for the remaining work, or for the next tick.
  std::condition_variable* successor() noexcept {
    if (!ready_groups_.empty()) return somebody();
    return !watched_until_ && !sleeping_timers_.empty() && idle_ > 0 ? &work_ : nullptr;
  }

  std::mutex mutex_;
  std::condition_variable work_;  // idle threads wait here
  std::condition_variable tick_;  // the thread that waits for the next tick
  std::size_t idle_ = 0;
  std::optional<Nanoseconds> watched_until_;

  std::deque<Group> groups_;  // stable addresses
  std::map<std::size_t, std::size_t> group_names_;
  BoundedQueue<Group*> ready_groups_;
  std::deque<Timer> timers_;
  std::vector<Timer*> sleeping_timers_;  // a heap, the earliest first; neither queued nor running
  std::vector<Timer*> due_;
  std::size_t unfinished_timers_ = 0;
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_multi_threaded(
    const measure::Clock& clock, const ExecutorSettings& settings, const perflab_ros2_tracepoints* trace) {
  return std::make_unique<MultiThreadedExecutor>(clock, settings, trace);
}

}  // namespace perflab::runtime
