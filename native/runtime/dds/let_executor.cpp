// `let`: one thread and a wait-set, after rclc's executor with semantics LET (rclc/README.md, "LET-Semantics";
// Staschulat, Luetkebohle, Lange: The rclc Executor: Domain-specific Deterministic Scheduling Mechanisms for ROS
// Applications on Microcontrollers, EMSOFT 2020). An activation
//   1. waits until something is ready or, with a period, until the period begins;
//   2. takes one message of each subscription that has some, each trigger, and which timers are due;
//   3. runs the callbacks of what it took, in the order in which they were created.
// So what callbacks see does not depend on how long those before them ran. What arrives, is triggered or becomes due
// after step 2, also what callbacks of this activation publish, is for the next one. Messages are published when a
// callback publishes them, as with rclc: the output side of logical execution time, which holds them back to
// the end of the interval, is not there.
//
// Periods begin at the base plus multiples of the period. One whose begin passes while callbacks of the one before
// still run is left out. A timer that is due has one tick of each activation, so that ticks which are made up for take
// turns with the messages that they send; with a period it has all that were due when the activation began, so that a
// shorter period of its own does not fall behind.
#include <condition_variable>
#include <deque>
#include <mutex>

#include "runtime/dds/waitset_executor.h"

namespace perflab::runtime {

class DdsRuntime::LetExecutor final : public WaitSetExecutor {
 public:
  using WaitSetExecutor::WaitSetExecutor;
  ~LetExecutor() override { LetExecutor::stop(); }

  void add_subscription(DdsSubscription& subscription) override {
    WaitSetExecutor::add_subscription(subscription);
    add(subscription.from_middleware());
    if (MessageSource* const source = subscription.from_process()) add(*source);
  }
  void add_waitable(DdsWaitable& waitable) override {
    WaitSetExecutor::add_waitable(waitable);
    add(waitable);
  }
  // Each timer has its place among the sources, so the timer queue of the base class stays empty.
  void add_timer(const TimerSettings& settings, TimerHandler& handler) override {
    steps_.push_back({nullptr, &timers_.emplace_back(settings, handler), false});
  }
  void set_base(Nanoseconds base_ns) noexcept override {
    base_ = base_ns;
    for (TimerSchedule& timer : timers_) timer.set_base(base_ns);
    tell_whether_timers_are_done();
  }
  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
    }
    ended_.notify_one();
    WaitSetExecutor::stop();
  }

 private:
  // One step of an activation: a source or a timer, in the order of creation.
  struct Step {
    Source* source;
    TimerSchedule* timer;
    bool chosen;
  };

  void add(Source& source) {
    source.index = steps_.size();
    steps_.push_back({&source, nullptr, false});
  }

  void spin() noexcept override {
    tell_next_ready();
    while (!stopping()) {
      if (settings_.period_ns > 0 && !sleep_until_next_period()) return;
      if (!wait(settings_.period_ns > 0 ? 0 : until_first_tick())) return;
      const Nanoseconds begin = clock_.now();
      take_all(begin);
      run_all(begin);
      tell_next_ready();
    }
  }

  void take_all(Nanoseconds begin) noexcept {
    const auto choose = [this](Source& source) { steps_[source.index].chosen = true; };
    each_ready(choose);
    for (Source* const source : local_ready()) choose(*source);
    for (Step& step : steps_) {
      if (step.timer != nullptr) {
        step.chosen = is_due(*step.timer, begin);
      } else if (step.chosen) {
        const Source::Turn taken = step.source->take_one();
        step.chosen = taken != Source::Turn::kNothing;
        if (taken == Source::Turn::kMore) more_local();
      }
    }
  }

  // Runs everything that was taken, even if the executor is stopped meanwhile, because it has left the
  // middleware.
  void run_all(Nanoseconds begin) noexcept {
    bool ticked = false;
    for (Step& step : steps_) {
      if (!std::exchange(step.chosen, false)) continue;
      if (step.timer == nullptr) {
        tell_execute(*step.source);
        step.source->run_taken();
        continue;
      }
      do {
        step.timer->fire(clock_.now());
      } while (settings_.period_ns > 0 && is_due(*step.timer, begin));
      ticked = true;
    }
    if (ticked) tell_whether_timers_are_done();
  }

  static bool is_due(const TimerSchedule& timer, Nanoseconds begin) noexcept {
    return !timer.done() && timer.next_due() <= begin;
  }
  void tell_whether_timers_are_done() noexcept {
    const bool done = std::ranges::all_of(timers_, [](const TimerSchedule& timer) { return timer.done(); });
    timers_done_.store(done, std::memory_order_release);
  }
  [[nodiscard]] Nanoseconds until_first_tick() const noexcept {
    Nanoseconds first = TimerQueue::kNever;
    for (const TimerSchedule& timer : timers_) {
      if (!timer.done()) first = std::min(first, timer.next_due());
    }
    return first == TimerQueue::kNever ? first : std::max<Nanoseconds>(0, first - clock_.now());
  }

  // False if the executor is stopped.
  bool sleep_until_next_period() noexcept {
    const Nanoseconds since = clock_.now() - base_;
    const Nanoseconds period = settings_.period_ns;
    // Also correct before the base: warm-up ticks come before it.
    const Nanoseconds into = ((since % period) + period) % period;
    const Nanoseconds begin = base_ + since - into + period;
    std::unique_lock lock(mutex_);
    for (Nanoseconds left = begin - clock_.now(); left > 0 && !stopping(); left = begin - clock_.now()) {
      tell_wait(left);
      ended_.wait_for(lock, std::chrono::nanoseconds(left));
    }
    return !stopping();
  }

  Nanoseconds base_ = 0;
  std::deque<TimerSchedule> timers_;  // stable addresses
  std::vector<Step> steps_;
  std::mutex mutex_;
  std::condition_variable ended_;
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_let(
    const measure::Clock& clock, const ExecutorSettings& settings, middleware::WaitSet waitset,
    EventSink& sink, const perflab_ros2_tracepoints* trace) {
  return std::make_unique<LetExecutor>(clock, settings, std::move(waitset), sink, trace);
}

}  // namespace perflab::runtime
