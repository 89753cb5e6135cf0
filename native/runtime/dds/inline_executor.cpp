// `inline`: callbacks run in the thread that brings the message, the middleware's or a publisher's; timers in
// a thread of their own.
//
// Two threads may bring messages of one subscription at the same time. The one who finds the subscription
// busy leaves a mark and goes on; the one who is in it looks at the marks before he leaves. So callbacks
// never overlap, nobody waits for another, and a callback that publishes to its own subscription does not
// call itself.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "runtime/dds/executor.h"
#include "runtime/dds/subscription.h"

namespace perflab::runtime {

class DdsRuntime::InlineExecutor final : public OneThreadExecutor {
 public:
  using OneThreadExecutor::OneThreadExecutor;
  ~InlineExecutor() override { InlineExecutor::stop(); }

  void add_subscription(DdsSubscription& subscription) override {
    subscription.from_middleware().index = kMiddleware;
    if (MessageSource* const source = subscription.from_process()) source->index = kProcess;
    subscriptions_.push_back(&subscription);
  }

  void create_threads() override {
    if (!timers_.empty()) workers_.create(settings_, 1, [this](std::size_t) { run_timers(); });
  }
  void run() override {
    open_.store(true, std::memory_order_release);
    // What came before the start.
    for (DdsSubscription* const subscription : subscriptions_) {
      enter(*subscription, subscription->from_process() == nullptr ? kMiddleware : kMiddleware | kProcess);
    }
    workers_.release();
  }
  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
    }
    open_.store(false, std::memory_order_release);
    wake_.notify_all();
    workers_.join();
    // Whoever is in a subscription leaves it; then it stays busy for ever.
    for (DdsSubscription* const subscription : subscriptions_) close(*subscription);
    subscriptions_.clear();
  }

  void on_ready(MessageSource& source) noexcept override {
    if (!open_.load(std::memory_order_acquire)) return;
    enter(source.subscription, static_cast<std::uint32_t>(source.index));
  }

 private:
  static constexpr std::uint32_t kMiddleware = 1;
  static constexpr std::uint32_t kProcess = 2;
  static constexpr std::uint32_t kBusy = 4;
  static constexpr std::uint32_t kClosed = 8;

  void enter(DdsSubscription& subscription, std::uint32_t marks) noexcept {
    std::atomic<std::uint32_t>& state = subscription.inline_state;
    if ((state.fetch_or(kBusy | marks, std::memory_order_acq_rel) & kBusy) != 0) return;
    for (;;) {
      marks = state.exchange(kBusy, std::memory_order_acq_rel);
      if ((marks & kMiddleware) != 0) run_all(subscription.from_middleware());
      if ((marks & kProcess) != 0) run_all(*subscription.from_process());
      std::uint32_t unmarked = kBusy;
      if (state.compare_exchange_strong(unmarked, 0, std::memory_order_acq_rel)) return;
    }
  }
  void run_all(MessageSource& source) noexcept {
    while (open_.load(std::memory_order_relaxed)) {
      if (source.run_one() != MessageSource::Turn::kMore) return;
    }
  }
  static void close(DdsSubscription& subscription) noexcept {
    for (;;) {
      std::uint32_t idle = 0;
      if (subscription.inline_state.compare_exchange_weak(idle, kBusy | kClosed, std::memory_order_acq_rel))
        return;
      if ((idle & kClosed) != 0) return;
      std::this_thread::yield();
    }
  }

  void run_timers() noexcept {
    std::unique_lock lock(mutex_);
    while (!stopping()) {
      const Nanoseconds wait = until_next_tick();
      if (wait == TimerQueue::kNever) return;
      if (wait > 0) {
        wake_.wait_for(lock, std::chrono::nanoseconds(wait));
        continue;
      }
      lock.unlock();
      run_due_timers();
      lock.lock();
    }
  }

  std::vector<DdsSubscription*> subscriptions_;
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_inline(
    const measure::Clock& clock, const ExecutorSettings& settings) {
  return std::make_unique<InlineExecutor>(clock, settings);
}

}  // namespace perflab::runtime
