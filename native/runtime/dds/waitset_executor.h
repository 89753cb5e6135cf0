// Base of executors with a wait-set, which reports the readers with messages; messages from this process and
// triggers wake it. Waitables are found by checking all of them after each wait, as in rclcpp: that is the
// cost of an idle one.
#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/dds/executor.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/waitable.h"

namespace perflab::runtime {

class DdsRuntime::WaitSetExecutor : public OneThreadExecutor {
 public:
  WaitSetExecutor(const measure::Clock& clock, const ExecutorSettings& settings, middleware::WaitSet waitset,
                  EventSink& sink, const perflab_ros2_tracepoints* trace)
      : OneThreadExecutor(clock, settings, trace), waitset_(std::move(waitset)), sink_(sink) {}

  [[nodiscard]] bool needs_data_callbacks() const noexcept final { return false; }
  void add_subscription(DdsSubscription& subscription) override {
    if (subscription.from_process() == nullptr) return;
    local_.push_back(&subscription);
    local_ready_.reserve(local_.size() + waitables_.size());
  }
  void add_waitable(DdsWaitable& waitable) override {
    waitables_.push_back(&waitable);
    local_ready_.reserve(local_.size() + waitables_.size());
  }
  void attach(DdsSubscription& subscription) final {
    waitset_.attach(subscription.reader(), sources_.size());
    sources_.push_back(&subscription.from_middleware());
  }

  void create_threads() override {
    // Room for all, so that a cycle sees everything that is ready.
    ready_.resize(std::max<std::size_t>(sources_.size(), 1));
    workers_.create(settings_, 1, [this](std::size_t) { spin(); });
  }
  void run() override { workers_.release(); }
  void stop() noexcept override {
    stopping_.store(true, std::memory_order_relaxed);
    waitset_.wake();
    workers_.join();
  }

  // A message from this process, or a trigger; the wait-set reports the others.
  void on_ready(Source& /*source*/) noexcept final {
    local_arrived_.exchange(true, std::memory_order_seq_cst);
    // Only the first notification after the executor began to wait, and before it woke up.
    if (waiting_.load(std::memory_order_seq_cst) && waiting_.exchange(false, std::memory_order_seq_cst)) {
      waitset_.wake();
    }
  }

 protected:
  virtual void spin() noexcept = 0;

  // False if the wait-set failed, which has been reported. Otherwise ready() and local_ready() have what is
  // available now; what callbacks publish or trigger from now on is left to the next wait.
  bool wait(Nanoseconds timeout) noexcept {
    perflab_error error{};
    if (wait(timeout, error) < 0) {
      sink_.on_failure(clock_.now(), error.text);
      return false;
    }
    collect_local();
    return true;
  }
  // Calls `use` with each middleware source that the last wait found ready.
  template <typename Use>
  void each_ready(Use&& use) const {
    for (std::size_t i = 0; i < count_; ++i) use(*sources_[ready_[i]]);
  }
  [[nodiscard]] const std::vector<Source*>& local_ready() const noexcept { return local_ready_; }
  // A source of local_ready() has more messages.
  void more_local() noexcept { local_arrived_.store(true, std::memory_order_relaxed); }

 private:
  perflab_status wait(Nanoseconds timeout, perflab_error& error) noexcept {
    static_assert(TimerQueue::kNever == PERFLAB_DURATION_INFINITE);
    if (local_.empty() && waitables_.empty()) return wait_for(timeout, error);
    // Either the publisher sees that this thread waits, or this thread sees the publisher's message. The same
    // for triggers.
    waiting_.store(true, std::memory_order_seq_cst);
    if (local_arrived_.load(std::memory_order_seq_cst)) timeout = 0;
    const perflab_status status = wait_for(timeout, error);
    waiting_.store(false, std::memory_order_relaxed);
    return status;
  }

  perflab_status wait_for(Nanoseconds timeout, perflab_error& error) noexcept {
    count_ = 0;
    tell_wait(timeout);
    const perflab_status status = waitset_.wait(timeout, ready_, count_, error);
    tell_next_ready();
    return status;
  }

  void collect_local() noexcept {
    local_ready_.clear();
    if (local_arrived_.load(std::memory_order_relaxed)) {
      local_arrived_.exchange(false, std::memory_order_seq_cst);
      for (DdsSubscription* const subscription : local_) {
        if (subscription->process_waits()) local_ready_.push_back(subscription->from_process());
      }
    }
    for (DdsWaitable* const waitable : waitables_) {
      if (waitable->triggered()) local_ready_.push_back(waitable);
    }
  }

  middleware::WaitSet waitset_;
  EventSink& sink_;
  std::vector<MessageSource*> sources_;  // indexed by wait-set cookie
  std::vector<std::uint64_t> ready_;
  std::size_t count_ = 0;  // valid entries of ready_
  std::vector<DdsSubscription*> local_;
  std::vector<DdsWaitable*> waitables_;
  std::vector<Source*> local_ready_;
  std::atomic<bool> local_arrived_{false};
  std::atomic<bool> waiting_{false};
};

}  // namespace perflab::runtime
