// The executors of the `dds` runtime. Each owns the timers given to it and runs the callbacks of its
// subscriptions.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "middleware/plugin.h"
#include "runtime/dds/dds_runtime.h"
#include "runtime/timer.h"

namespace perflab::runtime {

// A reader and the handler of its messages.
class DdsRuntime::DdsSubscription final : public Subscription {
 public:
  DdsSubscription(const measure::Clock& clock, MessageHandler& handler, EventSink& sink)
      : clock_(clock), handler_(handler), sink_(sink) {}

  [[nodiscard]] std::size_t matched() noexcept override { return reader_ ? reader_->matched_writers() : 0; }

  // Takes one message and runs its callback. False if there was none.
  bool take_one() noexcept;
  // The listener that keeps the receive thread out (`on_data` null) or lets it run the callbacks (inline).
  perflab_listener listener(bool run_inline) noexcept;
  void set_reader(middleware::Reader reader) { reader_.emplace(std::move(reader)); }
  // No callback runs afterwards.
  void close() noexcept { reader_->close(); }
  // Inline callbacks begin; a reader may have data before that.
  void open_gate() noexcept { open_.store(true, std::memory_order_release); }
  middleware::Reader& reader() { return *reader_; }

 private:
  static void on_data(void* context);
  static void on_event(void* context, const perflab_event* event);

  const measure::Clock& clock_;
  MessageHandler& handler_;
  EventSink& sink_;
  std::optional<middleware::Reader> reader_;
  std::atomic<bool> open_{false};
};

class DdsRuntime::DdsExecutor {
 public:
  virtual ~DdsExecutor() = default;
  [[nodiscard]] virtual bool runs_inline() const noexcept = 0;
  virtual void add_subscription(DdsSubscription& subscription) = 0;
  virtual void start() = 0;
  virtual void stop() noexcept = 0;

  void add_timer(const TimerSettings& settings, TimerHandler& handler) { timers_.add(settings, handler); }
  void set_base(Nanoseconds base_ns) noexcept {
    timers_.set_base(base_ns);
    timers_done_.store(timers_.empty(), std::memory_order_release);
  }
  [[nodiscard]] bool timers_done() const noexcept { return timers_done_.load(std::memory_order_acquire); }

 protected:
  DdsExecutor(const measure::Clock& clock, std::string name) : clock_(clock), name_(std::move(name)) {}
  // One tick of each timer that is due.
  void run_due_timers() noexcept {
    if (timers_.empty()) return;
    timers_.run_due(clock_.now());
    if (timers_.empty()) timers_done_.store(true, std::memory_order_release);
  }

  const measure::Clock& clock_;
  std::string name_;
  TimerQueue timers_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> timers_done_{false};
};

std::unique_ptr<DdsRuntime::DdsExecutor> make_inline_executor(const measure::Clock& clock,
                                                              const std::string& name);
std::unique_ptr<DdsRuntime::DdsExecutor> make_single_threaded_executor(const measure::Clock& clock,
                                                                       const std::string& name,
                                                                       middleware::WaitSet waitset,
                                                                       EventSink& sink);

}  // namespace perflab::runtime
