// The executors of the `dds` runtime: they decide which thread runs which callback when.
//
// Any thread may report that a source has a message or that a waitable was triggered (on_ready()); the
// executor runs the callbacks of its sources and timers. A new kind needs one class, one line in
// make_executor() and one in tests/conformance/runtime/dds.h.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>

#include "middleware/host/plugin.h"
#include "runtime/dds/dds_runtime.h"
#include "runtime/dds/source.h"
#include "runtime/workers.h"
#include "runtime/timer.h"

namespace perflab::runtime {

class DdsRuntime::DdsExecutor {
 public:
  // `trace` may be null.
  explicit DdsExecutor(const measure::Clock& clock, ExecutorSettings settings,
                       const perflab_ros2_tracepoints* trace = nullptr)
      : clock_(clock), settings_(std::move(settings)), trace_(trace) {}
  DdsExecutor(const DdsExecutor&) = delete;
  DdsExecutor& operator=(const DdsExecutor&) = delete;
  virtual ~DdsExecutor() = default;

  // True if readers shall call on_ready(); otherwise attach() passes each reader to the executor.
  [[nodiscard]] virtual bool needs_data_callbacks() const noexcept { return true; }
  // Called before the reader exists.
  virtual void add_subscription(DdsSubscription& subscription) = 0;
  // Called once the reader exists. Throws Error.
  virtual void attach(DdsSubscription& /*subscription*/) {}
  virtual void add_waitable(DdsWaitable& waitable) = 0;
  virtual void add_timer(const TimerSettings& settings, TimerHandler& handler) = 0;
  // Ticks count from this instant.
  virtual void set_base(Nanoseconds base_ns) noexcept = 0;

  // Creates the threads and applies their settings; nothing runs yet. Throws Error.
  virtual void create_threads() = 0;
  virtual void run() = 0;
  // No callback runs afterwards; running ones are waited for. Idempotent.
  virtual void stop() noexcept = 0;

  // The source has, or may have, something to run: called at least once after each message and trigger. From
  // any thread; does not wait for callbacks of other threads.
  virtual void on_ready(Source& source) noexcept = 0;

  [[nodiscard]] bool timers_done() const noexcept { return timers_done_.load(std::memory_order_acquire); }
  [[nodiscard]] const ExecutorSettings& settings() const noexcept { return settings_; }

 protected:
  [[nodiscard]] bool stopping() const noexcept { return stopping_.load(std::memory_order_relaxed); }

  // Traces the phases of the calling thread like rclcpp's executors: it looks for something to run, it waits
  // (at most this long, or TimerQueue::kNever), it runs something. Timers trace theirs themselves
  // (dds/tracing.h).
  void tell_next_ready() const noexcept {
    if (trace_ != nullptr) [[unlikely]]
      trace_->rclcpp_executor_get_next_ready();
  }
  void tell_wait(Nanoseconds timeout) const noexcept {
    if (trace_ != nullptr) [[unlikely]]
      trace_->rclcpp_executor_wait_for_work(timeout == TimerQueue::kNever ? -1 : timeout);
  }
  void tell_execute(const Source& source) const noexcept {
    if (trace_ == nullptr) [[likely]]
      return;
    if (const void* const handle = source.executed()) trace_->rclcpp_executor_execute(handle);
  }
  Source::Turn run_one(Source& source) const noexcept {
    if (trace_ == nullptr) [[likely]]
      return source.run_one();
    tell_execute(source);
    const Source::Turn turn = source.run_one();
    trace_->rclcpp_executor_get_next_ready();
    return turn;
  }

  const measure::Clock& clock_;
  const ExecutorSettings settings_;
  const perflab_ros2_tracepoints* const trace_;
  Workers workers_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> timers_done_{false};
};

// Base of executors with one thread, which also runs all timers.
class DdsRuntime::OneThreadExecutor : public DdsExecutor {
 public:
  using DdsExecutor::DdsExecutor;

  void add_timer(const TimerSettings& settings, TimerHandler& handler) override {
    timers_.add(settings, handler);
  }
  void set_base(Nanoseconds base_ns) noexcept override {
    timers_.set_base(base_ns);
    timers_done_.store(timers_.empty(), std::memory_order_release);
  }

 protected:
  // Runs one tick of each due timer.
  void run_due_timers() noexcept {
    if (timers_.empty()) return;
    timers_.run_due(clock_.now());
    if (timers_.empty()) timers_done_.store(true, std::memory_order_release);
  }
  // Time until the next tick, at least 0; kNever if there is none.
  [[nodiscard]] Nanoseconds until_next_tick() const noexcept {
    const Nanoseconds due = timers_.earliest();
    return due == TimerQueue::kNever ? due : std::max<Nanoseconds>(0, due - clock_.now());
  }

  TimerQueue timers_;
};

struct DdsRuntime::Executors {
  static std::unique_ptr<DdsExecutor> make_inline(const measure::Clock& clock,
                                                  const ExecutorSettings& settings);
  static std::unique_ptr<DdsExecutor> make_single_threaded(const measure::Clock& clock,
                                                           const ExecutorSettings& settings,
                                                           middleware::WaitSet waitset, EventSink& sink,
                                                           const perflab_ros2_tracepoints* trace);
  static std::unique_ptr<DdsExecutor> make_events(const measure::Clock& clock,
                                                  const ExecutorSettings& settings,
                                                  const perflab_ros2_tracepoints* trace);
  static std::unique_ptr<DdsExecutor> make_polling(const measure::Clock& clock, const ExecutorSettings& settings,
                                                   const perflab_ros2_tracepoints* trace);
  static std::unique_ptr<DdsExecutor> make_multi_threaded(const measure::Clock& clock,
                                                          const ExecutorSettings& settings,
                                                          const perflab_ros2_tracepoints* trace);
  static std::unique_ptr<DdsExecutor> make_priority(const measure::Clock& clock, const ExecutorSettings& settings,
                                                    const perflab_ros2_tracepoints* trace);
  static std::unique_ptr<DdsExecutor> make_let(const measure::Clock& clock, const ExecutorSettings& settings,
                                               middleware::WaitSet waitset, EventSink& sink,
                                               const perflab_ros2_tracepoints* trace);
};

}  // namespace perflab::runtime
