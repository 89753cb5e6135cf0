#include "runtime/dds/executor.h"

#include <algorithm>
#include <array>
#include <condition_variable>
#include <mutex>

#include "realtime/thread.h"

namespace perflab::runtime {
namespace {

// Callbacks run in the middleware's receive thread, as soon as the data is there; timers in a thread of their
// own.
class InlineExecutor final : public DdsRuntime::DdsExecutor {
 public:
  InlineExecutor(const measure::Clock& clock, const std::string& name) : DdsExecutor(clock, name) {}
  ~InlineExecutor() override { InlineExecutor::stop(); }

  [[nodiscard]] bool runs_inline() const noexcept override { return true; }
  void add_subscription(DdsRuntime::DdsSubscription& subscription) override {
    subscriptions_.push_back(&subscription);
  }

  void start() override {
    for (DdsRuntime::DdsSubscription* subscription : subscriptions_) subscription->open_gate();
    if (!timers_.empty()) thread_ = std::thread([this] { run_timers(); });
  }
  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run_timers() noexcept {
    realtime::name_this_thread("timers" + name_.substr(name_.find('_')));
    std::unique_lock lock(mutex_);
    while (!stopping_.load(std::memory_order_relaxed)) {
      const Nanoseconds due = timers_.earliest();
      if (due == TimerQueue::kNever) break;
      const Nanoseconds wait = due - clock_.now();
      if (wait > 0) {
        wake_.wait_for(lock, std::chrono::nanoseconds(wait));
        continue;
      }
      lock.unlock();
      run_due_timers();
      lock.lock();
    }
  }

  std::vector<DdsRuntime::DdsSubscription*> subscriptions_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::thread thread_;
};

class SingleThreadedExecutor final : public DdsRuntime::DdsExecutor {
 public:
  SingleThreadedExecutor(const measure::Clock& clock, const std::string& name, middleware::WaitSet waitset,
                         EventSink& sink)
      : DdsExecutor(clock, name), waitset_(std::move(waitset)), sink_(sink) {}
  ~SingleThreadedExecutor() override { SingleThreadedExecutor::stop(); }

  [[nodiscard]] bool runs_inline() const noexcept override { return false; }
  void add_subscription(DdsRuntime::DdsSubscription& subscription) override {
    waitset_.attach(subscription.reader(), subscriptions_.size());
    subscriptions_.push_back(&subscription);
  }

  void start() override {
    // Room for all: a cycle sees everything that is ready.
    ready_.resize(std::max<std::size_t>(subscriptions_.size(), 1));
    thread_ = std::thread([this] { run(); });
  }
  void stop() noexcept override {
    stopping_.store(true, std::memory_order_relaxed);
    waitset_.wake();
    if (thread_.joinable()) thread_.join();
  }

 private:
  void run() noexcept {
    realtime::name_this_thread(name_);
    perflab_error error{};
    while (!stopping_.load(std::memory_order_relaxed)) {
      const Nanoseconds due = timers_.earliest();
      const Nanoseconds timeout = due == TimerQueue::kNever ? PERFLAB_DURATION_INFINITE
                                                            : std::max<Nanoseconds>(0, due - clock_.now());
      std::size_t count = 0;
      if (waitset_.wait(timeout, ready_, count, error) < 0) {
        sink_.on_failure(clock_.now(), error.text);
        return;
      }
      run_due_timers();
      for (std::size_t i = 0; i < count; ++i) subscriptions_[ready_[i]]->take_one();
    }
  }

  middleware::WaitSet waitset_;
  EventSink& sink_;
  std::vector<DdsRuntime::DdsSubscription*> subscriptions_;
  std::vector<std::uint64_t> ready_;
  std::thread thread_;
};

}  // namespace

bool DdsRuntime::DdsSubscription::take_one() noexcept {
  perflab_sample sample;
  perflab_error error;
  const perflab_status status = reader_->take(sample, error);
  if (status == PERFLAB_NO_DATA) return false;
  if (status < 0) {
    sink_.on_failure(clock_.now(), error.text);
    return false;
  }
  handler_.on_message(
      {{sample.data, sample.size}, sample.writer, sample.reception_ns, sample.source_timestamp_ns});
  reader_->return_sample(sample);
  return true;
}

perflab_listener DdsRuntime::DdsSubscription::listener(bool run_inline) noexcept {
  return {run_inline ? &DdsSubscription::on_data : nullptr, &DdsSubscription::on_event, this};
}

void DdsRuntime::DdsSubscription::on_data(void* context) {
  auto& self = *static_cast<DdsSubscription*>(context);
  if (!self.open_.load(std::memory_order_acquire)) return;
  while (self.take_one()) {
  }
}

void DdsRuntime::DdsSubscription::on_event(void* context, const perflab_event* event) {
  static_cast<DdsSubscription*>(context)->sink_.on_event(*event);
}

std::unique_ptr<DdsRuntime::DdsExecutor> make_inline_executor(const measure::Clock& clock,
                                                              const std::string& name) {
  return std::make_unique<InlineExecutor>(clock, name);
}

std::unique_ptr<DdsRuntime::DdsExecutor> make_single_threaded_executor(const measure::Clock& clock,
                                                                       const std::string& name,
                                                                       middleware::WaitSet waitset,
                                                                       EventSink& sink) {
  return std::make_unique<SingleThreadedExecutor>(clock, name, std::move(waitset), sink);
}

}  // namespace perflab::runtime
