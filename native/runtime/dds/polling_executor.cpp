// `polling`: one thread that never sleeps. Each cycle runs every due timer, then one message of each
// subscription, then each triggered waitable; it polls for them and is never notified. A cycle without work
// yields the CPU to another runnable thread. A trace shows only its callbacks: the phases of an executor that
// is never idle would flood it.
#include <sched.h>

#include <vector>

#include "runtime/dds/executor.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/waitable.h"

namespace perflab::runtime {

class DdsRuntime::PollingExecutor final : public OneThreadExecutor {
 public:
  using OneThreadExecutor::OneThreadExecutor;
  ~PollingExecutor() override { PollingExecutor::stop(); }

  [[nodiscard]] bool needs_data_callbacks() const noexcept override { return false; }
  void add_subscription(DdsSubscription& subscription) override {
    if (Source* const local = subscription.from_process(); local != nullptr) sources_.push_back(local);
  }
  void attach(DdsSubscription& subscription) override {
    subscription.poll();
    sources_.push_back(&subscription.from_middleware());
  }
  void add_waitable(DdsWaitable& waitable) override { waitables_.push_back(&waitable); }

  void create_threads() override {
    workers_.create(settings_, 1, [this](std::size_t) { spin(); });
  }
  void run() override { workers_.release(); }
  void stop() noexcept override {
    stopping_.store(true, std::memory_order_relaxed);
    workers_.join();
  }
  void on_ready(Source& /*source*/) noexcept override {}

 private:
  void spin() noexcept {
    while (!stopping()) {
      run_due_timers();
      bool idle = true;
      for (Source* const source : sources_) {
        if (source->run_one() != Source::Turn::kNothing) idle = false;
      }
      for (DdsWaitable* const waitable : waitables_) {
        if (!waitable->triggered()) continue;
        waitable->run_one();
        idle = false;
      }
      if (idle) sched_yield();
    }
  }

  std::vector<Source*> sources_;
  std::vector<DdsWaitable*> waitables_;
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_polling(const measure::Clock& clock,
                                                                             const ExecutorSettings& settings,
                                                                             const perflab_ros2_tracepoints* trace) {
  return std::make_unique<PollingExecutor>(clock, settings, trace);
}

}  // namespace perflab::runtime
