#include "runtime/dds/dds_runtime.h"

#include <nlohmann/json.hpp>

#include "message/types.h"
#include "realtime/thread.h"
#include "runtime/dds/executor.h"

namespace perflab::runtime {
namespace {

std::int64_t host_now(void* context) { return static_cast<DdsRuntime*>(context)->clock().now(); }

Error translated(const middleware::Error& error) {
  switch (error.kind()) {
    case middleware::Error::Kind::unsupported:
      return {Error::Kind::kUnsupported, error.what()};
    case middleware::Error::Kind::bad_option:
      return {Error::Kind::kBadInput, error.what()};
    case middleware::Error::Kind::failed:
      break;
  }
  return {Error::Kind::kFailed, error.what()};
}

}  // namespace

class DdsRuntime::DdsPublisher final : public Publisher {
 public:
  explicit DdsPublisher(const measure::Clock& clock, EventSink& sink) : clock_(clock), sink_(sink) {}

  bool publish(std::span<const perflab_bytes> parts) noexcept override {
    perflab_error error;
    if (writer_->write(parts, error) == PERFLAB_OK) [[likely]]
      return true;
    sink_.on_write_failed(clock_.now(), error.text);
    return false;
  }
  [[nodiscard]] perflab_identity identity() const noexcept override { return writer_->identity(); }
  [[nodiscard]] std::size_t matched() noexcept override { return writer_->matched_readers(); }

  perflab_listener listener() noexcept { return {nullptr, &DdsPublisher::on_event, this}; }
  void set_writer(middleware::Writer writer) { writer_.emplace(std::move(writer)); }

 private:
  static void on_event(void* context, const perflab_event* event) {
    static_cast<DdsPublisher*>(context)->sink_.on_event(*event);
  }

  const measure::Clock& clock_;
  EventSink& sink_;
  std::optional<middleware::Writer> writer_;
};

DdsRuntime::DdsRuntime(middleware::Plugin plugin, const middleware::ParticipantSettings& settings,
                       const measure::Clock& clock, EventSink& sink)
    : plugin_(std::move(plugin)), clock_(clock), sink_(sink) {
  perflab_host host{};
  host.now_ns = &host_now;
  host.on_event = [](void* context, const perflab_event* event) {
    static_cast<DdsRuntime*>(context)->sink_.on_event(*event);
  };
  host.context = this;
  try {
    participant_ = std::make_unique<middleware::Participant>(plugin_.open(host, settings));
  } catch (const middleware::Error& error) {
    throw translated(error);
  }
}

DdsRuntime::~DdsRuntime() { DdsRuntime::stop(); }

std::size_t DdsRuntime::add_executor(int /*process*/, ExecutorKind kind, const std::string& name) {
  try {
    executors_.push_back(
        kind == ExecutorKind::kInline
            ? make_inline_executor(clock_, name)
            : make_single_threaded_executor(clock_, name, participant_->create_waitset(), sink_));
  } catch (const middleware::Error& error) {
    throw translated(error);
  }
  return executors_.size() - 1;
}

Publisher& DdsRuntime::create_publisher(const EndpointSettings& settings) {
  auto publisher = std::make_unique<DdsPublisher>(clock_, sink_);
  try {
    publisher->set_writer(participant_->create_writer(
        message::dds_topic_name(settings.topic), message::dds_type_name(settings.ros_type),
        settings.fixed_size, settings.qos, publisher->listener()));
  } catch (const middleware::Error& error) {
    throw translated(error);
  }
  publishers_.push_back(std::move(publisher));
  return *publishers_.back();
}

Subscription& DdsRuntime::create_subscription(std::size_t executor, const EndpointSettings& settings,
                                              MessageHandler& handler) {
  DdsExecutor& runner = *executors_.at(executor);
  auto subscription = std::make_unique<DdsSubscription>(clock_, handler, sink_);
  try {
    subscription->set_reader(participant_->create_reader(
        message::dds_topic_name(settings.topic), message::dds_type_name(settings.ros_type),
        settings.fixed_size, settings.qos, subscription->listener(runner.runs_inline())));
    runner.add_subscription(*subscription);
  } catch (const middleware::Error& error) {
    throw translated(error);
  }
  subscriptions_.push_back(std::move(subscription));
  return *subscriptions_.back();
}

void DdsRuntime::create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) {
  executors_.at(executor)->add_timer(settings, handler);
}

void DdsRuntime::work(Nanoseconds amount) noexcept { realtime::spend_cpu_time(amount); }

void DdsRuntime::start(Nanoseconds base_ns) {
  for (const auto& executor : executors_) executor->set_base(base_ns);
  for (const auto& executor : executors_) executor->start();
}

bool DdsRuntime::timers_done() const noexcept {
  return std::ranges::all_of(executors_, [](const auto& executor) { return executor->timers_done(); });
}

void DdsRuntime::stop() noexcept {
  for (const auto& executor : executors_) executor->stop();
  // A closed reader runs no callback any more. The wait-sets of the executors let go of theirs first.
  executors_.clear();
  for (const auto& subscription : subscriptions_) subscription->close();
}

std::string DdsRuntime::describe() {
  const nlohmann::json description = {{"name", plugin_.name()},
                                      {"version", plugin_.version()},
                                      {"effective", nlohmann::json::parse(participant_->describe())}};
  return description.dump();
}

}  // namespace perflab::runtime
