#include "runtime/rclcpp/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <thread>

#include "realtime/thread.h"
#include "runtime/rclcpp/distribution.h"
#include "runtime/rclcpp/ordered.h"

namespace perflab::runtime::ros {
namespace {

// Executors that spin in one thread.
template <typename Executor>
class Spinning final : public Executor {
 public:
  using Executor::Executor;
  static constexpr bool kSeveral = false;
  static std::size_t threads(const ExecutorSettings&) noexcept { return 1; }
  void enter(std::size_t) { Executor::spin(); }
};

// rclcpp would start the threads itself, without names and settings; otherwise each thread does the same.
class SpinningInSeveral final : public rclcpp::executors::MultiThreadedExecutor {
 public:
  SpinningInSeveral(const rclcpp::ExecutorOptions& options, std::size_t count)
      : MultiThreadedExecutor(options, count) {}
  static constexpr bool kSeveral = true;
  static std::size_t threads(const ExecutorSettings& settings) noexcept {
    return settings.threads > 0 ? static_cast<std::size_t>(settings.threads) : usable_cpus();
  }
  void enter(std::size_t index) {
    spinning.store(true);
    run(index);
  }
};

template <typename Spin>
class ByRclcpp final : public RosExecutor {
  // Those of ordered.h.
  static constexpr bool kOrdered = requires(Spin& spin) { spin.place(nullptr, 0); };
  static constexpr bool kPeriodic = requires(Spin& spin) { spin.set_base(Nanoseconds{}); };

 public:
  ByRclcpp(const measure::Clock& clock, EventSink& sink, const ExecutorSettings& settings,
           const rclcpp::Context::SharedPtr& context)
      : RosExecutor(clock, sink, settings) {
    rclcpp::ExecutorOptions options;
    options.context = context;
    if constexpr (Spin::kSeveral) {
      spin_ = std::make_unique<Spin>(options, Spin::threads(settings));
    } else if constexpr (std::is_constructible_v<Spin, const rclcpp::ExecutorOptions&>) {
      spin_ = std::make_unique<Spin>(options);
    } else {
      spin_ = make_events(options);
    }
    if constexpr (kPeriodic) spin_->set_period(clock, settings.period_ns);
  }
  ~ByRclcpp() override { ByRclcpp::stop(); }

  void add_node(const NodeHandle& node) override { spin_->add_node(node.base()); }
  void add_receiver(RosReceiver& receiver, int priority) override {
    if constexpr (kOrdered) {
      for (const void* const executable : receiver.executables()) spin_->place(executable, priority);
    }
  }
  void add_timer(const NodeHandle& node, const TimerSettings& settings, TimerHandler& handler) override {
    const bool queued = settings_.kind == ExecutorKind::kEvents;
    timers_.push_back(std::make_unique<RosTimer>(clock_, node, settings, handler, queued));
    if constexpr (kOrdered) spin_->place(timers_.back()->executable(), settings.priority);
  }
  void set_base(Nanoseconds base_ns) noexcept override {
    for (const auto& timer : timers_) timer->set_base(base_ns);
    if constexpr (kPeriodic) spin_->set_base(base_ns);
  }
  [[nodiscard]] std::vector<RosTimer*> timers() override {
    std::vector<RosTimer*> list;
    for (const auto& timer : timers_) list.push_back(timer.get());
    return list;
  }
  void create_threads() override {
    const std::size_t count = Spin::threads(settings_);
    threads_out_.store(0);
    workers_.create(settings_, count, [this](std::size_t index) { spin(index); });
    count_ = count;
  }
  void run() override {
    running_ = true;
    workers_.release();
  }
  // A cancel before a thread spins is lost, so it is repeated until all threads have left.
  void stop() noexcept override {
    if (std::exchange(running_, false)) {
      std::unique_lock lock(mutex_);
      stopping_ = true;
      while (threads_out_.load() < count_) {
        lock.unlock();
        try {
          spin_->cancel();
        } catch (const std::exception&) {  // its context is shut down, which ends it
        }
        lock.lock();
        out_.wait_for(lock, std::chrono::milliseconds(2));
      }
    }
    workers_.join();
  }
  [[nodiscard]] bool timers_done() const noexcept override {
    return std::ranges::all_of(timers_, [](const auto& timer) { return timer->done(); });
  }

 private:
  static std::unique_ptr<Spin> make_events(const rclcpp::ExecutorOptions& options) {
#ifdef PERFLAB_HAS_EVENTS_EXECUTOR
    return std::make_unique<Spin>(std::make_unique<rclcpp::experimental::executors::SimpleEventsQueue>(), false,
                                  options);
#else
    static_cast<void>(options);
    return nullptr;
#endif
  }

  void spin(std::size_t index) noexcept {
    bool enter = false;
    {
      const std::lock_guard lock(mutex_);
      enter = !stopping_;
    }
    try {
      if (enter) spin_->enter(index);
    } catch (const std::exception& error) {
      sink_.on_failure(clock_.now(), (settings_.name + ": " + error.what()).c_str());
    }
    {
      const std::lock_guard lock(mutex_);
      ++threads_out_;
      out_.notify_all();
    }
  }

  std::unique_ptr<Spin> spin_;
  std::vector<std::unique_ptr<RosTimer>> timers_;
  std::mutex mutex_;
  std::condition_variable out_;
  std::atomic<std::size_t> threads_out_{0};  // of spin()
  std::size_t count_ = 0;
  bool stopping_ = false;
  bool running_ = false;
};

class InlineExecutor final : public RosExecutor {
 public:
  using RosExecutor::RosExecutor;
  ~InlineExecutor() override { InlineExecutor::stop(); }

  void add_node(const NodeHandle&) override {}
  void add_receiver(RosReceiver& receiver, int /*priority*/) override { receivers_.push_back(&receiver); }
  void add_timer(const NodeHandle&, const TimerSettings& settings, TimerHandler& handler) override {
    timers_.add(settings, handler);
  }
  void set_base(Nanoseconds base_ns) noexcept override {
    timers_.set_base(base_ns);
    done_.store(timers_.empty(), std::memory_order_release);
  }
  [[nodiscard]] std::vector<RosTimer*> timers() override { return {}; }
  void create_threads() override {
    if (!timers_.empty()) workers_.create(settings_, 1, [this](std::size_t) { run_timers(); });
  }
  void run() override {
    for (RosReceiver* const receiver : receivers_) receiver->open_inline();
    opened_ = true;
    workers_.release();
  }
  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    workers_.join();
    if (!std::exchange(opened_, false)) return;
    for (RosReceiver* const receiver : receivers_) receiver->close_inline();
  }
  [[nodiscard]] bool timers_done() const noexcept override { return done_.load(std::memory_order_acquire); }

 private:
  void run_timers() noexcept {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (timers_.empty()) {
        done_.store(true, std::memory_order_release);
        return;
      }
      const Nanoseconds wait = timers_.earliest() - clock_.now();
      if (wait > 0) {
        wake_.wait_for(lock, std::chrono::nanoseconds(wait));
        continue;
      }
      lock.unlock();
      timers_.run_due(clock_.now());
      lock.lock();
    }
  }

  std::vector<RosReceiver*> receivers_;
  TimerQueue timers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<bool> done_{true};
  bool stopping_ = false;
  bool opened_ = false;
};

[[noreturn, maybe_unused]] void refuse(const ExecutorSettings& settings, const char* kind, const char* what) {
  throw Error(Error::Kind::kUnsupported, settings.name + " shall be " + kind + ", and rclcpp " +
                                             std::to_string(RCLCPP_VERSION_MAJOR) + "." +
                                             std::to_string(RCLCPP_VERSION_MINOR) + " has no " + what +
                                             "; right would be single_threaded");
}

}  // namespace

std::unique_ptr<RosExecutor> make_executor(const measure::Clock& clock, EventSink& sink,
                                           const ExecutorSettings& settings,
                                           const rclcpp::Context::SharedPtr& context) {
  switch (settings.kind) {
    case ExecutorKind::kInline:
      return std::make_unique<InlineExecutor>(clock, sink, settings);
    case ExecutorKind::kMultiThreaded:
      return std::make_unique<ByRclcpp<SpinningInSeveral>>(clock, sink, settings, context);
    case ExecutorKind::kEvents:
#ifdef PERFLAB_HAS_EVENTS_EXECUTOR
      return std::make_unique<ByRclcpp<Spinning<EventsExecutor>>>(clock, sink, settings, context);
#else
      refuse(settings, "events", "EventsExecutor");
#endif
    case ExecutorKind::kStaticSingleThreaded:
#ifdef PERFLAB_HAS_STATIC_EXECUTOR
      return std::make_unique<ByRclcpp<Spinning<StaticSingleThreadedExecutor>>>(clock, sink, settings, context);
#else
      refuse(settings, "static_single_threaded", "StaticSingleThreadedExecutor");
#endif
    case ExecutorKind::kPolling:
      refuse(settings, "polling", "executor that never sleeps");
    case ExecutorKind::kPriority:
#ifdef PERFLAB_HAS_WAIT_RESULT
      return std::make_unique<ByRclcpp<Spinning<PriorityExecutor>>>(clock, sink, settings, context);
#else
      refuse(settings, "priority", "executor whose waits can be read");
#endif
    case ExecutorKind::kLet:
#ifdef PERFLAB_HAS_WAIT_RESULT
      return std::make_unique<ByRclcpp<Spinning<LetExecutor>>>(clock, sink, settings, context);
#else
      refuse(settings, "let", "executor whose waits can be read");
#endif
    case ExecutorKind::kSingleThreaded:
      break;
  }
  return std::make_unique<ByRclcpp<Spinning<rclcpp::executors::SingleThreadedExecutor>>>(clock, sink, settings,
                                                                                        context);
}

}  // namespace perflab::runtime::ros
