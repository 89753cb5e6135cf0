// `events`: one thread and a queue filled by data-ready callbacks, like iRobot's EventsExecutor. One message
// per event, in order of arrival; a source with more messages goes to the end of the queue. Due timers run
// once, then the events queued by then: after a stall, catch-up ticks alternate with the messages that they
// send, as in rclcpp; otherwise these messages would overrun the histories.
//
// A trigger of a waitable is an event like a message. A source is in the queue at most once, so the queue has
// one place per source. A source may receive further notifications while it is queued, and one data-ready
// callback may announce several messages: so after a message a source of the middleware is checked once more.
#include <condition_variable>
#include <mutex>

#include "base/queue.h"
#include "runtime/dds/executor.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/waitable.h"

namespace perflab::runtime {

class DdsRuntime::EventsExecutor final : public OneThreadExecutor {
 public:
  using OneThreadExecutor::OneThreadExecutor;
  ~EventsExecutor() override { EventsExecutor::stop(); }

  void add_subscription(DdsSubscription& subscription) override {
    make_room(subscription.from_process() == nullptr ? 1 : 2);
  }
  void add_waitable(DdsWaitable& /*waitable*/) override { make_room(1); }

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
    bool sleeping = false;
    {
      const std::lock_guard lock(mutex_);
      queue_.push_back(&source);
      sleeping = std::exchange(sleeping_, false);
    }
    if (sleeping) arrived_.notify_one();
  }

 private:
  void make_room(std::size_t sources) {
    sources_ += sources;
    const std::lock_guard lock(mutex_);  // readers that exist already may have data
    queue_.reserve(sources_);
  }

  void spin() noexcept {
    std::size_t round = 0;  // events to handle before the next timer
    tell_next_ready();
    while (!stopping()) {
      if (round == 0) run_due_timers();
      Source* const source = next(round);
      if (source == nullptr) continue;
      --round;
      // Before taking anything: from here on a new message or trigger queues the source again.
      source->queued.exchange(false, std::memory_order_acq_rel);
      if (run_one(*source) == Source::Turn::kMore) on_ready(*source);
    }
  }

  // The oldest event; null if a timer became due first, or at the end. A new round covers everything queued
  // so far.
  Source* next(std::size_t& round) noexcept {
    std::unique_lock lock(mutex_);
    if (queue_.empty() && !stopping()) wait(lock);
    if (round == 0) round = queue_.size();
    return queue_.empty() ? nullptr : queue_.pop_front();
  }

  void wait(std::unique_lock<std::mutex>& lock) noexcept {
    const Nanoseconds wait = until_next_tick();
    if (wait == 0) return;
    sleeping_ = true;
    tell_wait(wait);
    if (wait == TimerQueue::kNever) {
      arrived_.wait(lock);
    } else {
      arrived_.wait_for(lock, std::chrono::nanoseconds(wait));
    }
    sleeping_ = false;
    tell_next_ready();
  }

  std::size_t sources_ = 0;
  std::mutex mutex_;
  std::condition_variable arrived_;
  BoundedQueue<Source*> queue_;
  bool sleeping_ = false;
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_events(
    const measure::Clock& clock, const ExecutorSettings& settings, const perflab_ros2_tracepoints* trace) {
  return std::make_unique<EventsExecutor>(clock, settings, trace);
}

}  // namespace perflab::runtime
