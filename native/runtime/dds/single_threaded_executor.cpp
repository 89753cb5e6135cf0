// `single_threaded`: one thread and a wait-set. Each cycle, as rclcpp's SingleThreadedExecutor: every timer
// that is due, then one message of each subscription that was ready, then one of each that had messages from
// this process, then each waitable that was triggered. These it finds by looking at all waitables after each
// wait, as rclcpp does: that is what an idle one costs.
#include <algorithm>
#include <vector>

#include "runtime/dds/executor.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/waitable.h"

namespace perflab::runtime {

class DdsRuntime::SingleThreadedExecutor final : public OneThreadExecutor {
 public:
  SingleThreadedExecutor(const measure::Clock& clock, const ExecutorSettings& settings,
                         middleware::WaitSet waitset, EventSink& sink, const perflab_ros2_tracepoints* trace)
      : OneThreadExecutor(clock, settings, trace), waitset_(std::move(waitset)), sink_(sink) {}
  ~SingleThreadedExecutor() override { SingleThreadedExecutor::stop(); }

  [[nodiscard]] bool needs_data_callbacks() const noexcept override { return false; }
  void add_subscription(DdsSubscription& subscription) override {
    if (subscription.from_process() == nullptr) return;
    local_.push_back(&subscription);
    local_ready_.reserve(local_.size() + waitables_.size());
  }
  void add_waitable(DdsWaitable& waitable) override {
    waitables_.push_back(&waitable);
    local_ready_.reserve(local_.size() + waitables_.size());
  }
  void attach(DdsSubscription& subscription) override {
    waitset_.attach(subscription.reader(), sources_.size());
    sources_.push_back(&subscription.from_middleware());
  }

  void create_threads() override {
    // Room for all: a cycle sees everything that is ready.
    ready_.resize(std::max<std::size_t>(sources_.size(), 1));
    workers_.create(settings_, 1, [this](std::size_t) { spin(); });
  }
  void run() override { workers_.release(); }
  void stop() noexcept override {
    stopping_.store(true, std::memory_order_relaxed);
    waitset_.wake();
    workers_.join();
  }

  // A message from this process, or a trigger; the wait-set tells of the others.
  void on_ready(Source& /*source*/) noexcept override {
    local_arrived_.exchange(true, std::memory_order_seq_cst);
    // The first one after the executor went to wait, and before it has woken.
    if (waiting_.load(std::memory_order_seq_cst) && waiting_.exchange(false, std::memory_order_seq_cst)) {
      waitset_.wake();
    }
  }

 private:
  void spin() noexcept {
    perflab_error error{};
    tell_next_ready();
    while (!stopping()) {
      std::size_t count = 0;
      if (wait(count, error) < 0) {
        sink_.on_failure(clock_.now(), error.text);
        return;
      }
      collect_local();
      run_due_timers();
      for (std::size_t i = 0; i < count; ++i) run_one(*sources_[ready_[i]]);
      for (Source* const source : local_ready_) {
        if (run_one(*source) == Source::Turn::kMore)
          local_arrived_.store(true, std::memory_order_relaxed);
      }
    }
  }

  perflab_status wait(std::size_t& count, perflab_error& error) noexcept {
    Nanoseconds timeout = until_next_tick();
    static_assert(TimerQueue::kNever == PERFLAB_DURATION_INFINITE);
    if (local_.empty() && waitables_.empty()) return wait_for(timeout, count, error);
    // Either the publisher sees that this thread waits, or this thread sees his message. Triggers likewise.
    waiting_.store(true, std::memory_order_seq_cst);
    if (local_arrived_.load(std::memory_order_seq_cst)) timeout = 0;
    const perflab_status status = wait_for(timeout, count, error);
    waiting_.store(false, std::memory_order_relaxed);
    return status;
  }

  perflab_status wait_for(Nanoseconds timeout, std::size_t& count, perflab_error& error) noexcept {
    tell_wait(timeout);
    const perflab_status status = waitset_.wait(timeout, ready_, count, error);
    tell_next_ready();
    return status;
  }

  // What is there now takes its turn in this cycle; what callbacks of this cycle publish or trigger, in the
  // next.
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
  std::vector<MessageSource*> sources_;  // by the cookies of the wait-set
  std::vector<std::uint64_t> ready_;
  std::vector<DdsSubscription*> local_;
  std::vector<DdsWaitable*> waitables_;
  std::vector<Source*> local_ready_;
  std::atomic<bool> local_arrived_{false};
  std::atomic<bool> waiting_{false};
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_single_threaded(
    const measure::Clock& clock, const ExecutorSettings& settings, middleware::WaitSet waitset,
    EventSink& sink, const perflab_ros2_tracepoints* trace) {
  return std::make_unique<SingleThreadedExecutor>(clock, settings, std::move(waitset), sink, trace);
}

}  // namespace perflab::runtime
