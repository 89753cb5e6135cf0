// `single_threaded`: one thread and a wait-set. Each cycle, as in rclcpp's SingleThreadedExecutor: every due
// timer, then one message of each ready subscription, then one of each subscription with messages from this
// process, then each triggered waitable.
#include "runtime/dds/waitset_executor.h"

namespace perflab::runtime {

class DdsRuntime::SingleThreadedExecutor final : public WaitSetExecutor {
 public:
  using WaitSetExecutor::WaitSetExecutor;
  ~SingleThreadedExecutor() override { SingleThreadedExecutor::stop(); }

 private:
  void spin() noexcept override {
    tell_next_ready();
    while (!stopping()) {
      if (!wait(until_next_tick())) return;
      run_due_timers();
      each_ready([this](Source& source) { run_one(source); });
      for (Source* const source : local_ready()) {
        if (run_one(*source) == Source::Turn::kMore) more_local();
      }
    }
  }
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_single_threaded(
    const measure::Clock& clock, const ExecutorSettings& settings, middleware::WaitSet waitset,
    EventSink& sink, const perflab_ros2_tracepoints* trace) {
  return std::make_unique<SingleThreadedExecutor>(clock, settings, std::move(waitset), sink, trace);
}

}  // namespace perflab::runtime
