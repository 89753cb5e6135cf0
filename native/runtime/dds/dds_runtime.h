// The `dds` runtime: perflab's own executors over a middleware plug-in, in real time.
//
// Executors: `inline` runs a callback in the thread that delivers the message; `single_threaded` waits on a
// wait-set, `events` on a queue filled by the middleware's data-ready callbacks. `multi_threaded` and
// `priority` are fed in the same way; the first has several threads, the second an order. `polling` never
// waits, and `let` takes everything that its wait-set reports before it runs any callback. See dds/executor.h
// and the file of each.
//
// With `intra_process`, publishers pass messages directly to the subscriptions of this process by rclcpp's
// rules (dds/intra_process.h). The middleware then connects no two endpoints of this process and carries only
// messages for readers elsewhere.
//
// A publisher or client is used by one thread at a time. All endpoints are created before the first message.
//
// Several participants share the resources of the process: an executor serves endpoints of all of them, and
// delivery within the process spans all of them.
//
// With `trace` it emits the tracepoints of ROS 2 at the same places as rclcpp (dds/tracing.h); otherwise each
// costs one null check.
//
// Example:
//   const auto plugin = middleware::Plugin::load(file);
//   DdsRuntime runtime(plugin, {.domain = 7}, {.intra_process = true}, clock, sink);
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "middleware/host/plugin.h"
#include "runtime/capabilities.h"
#include "runtime/runtime.h"
#include "tracing/ros/tracepoints.h"

namespace perflab::runtime {

class ServiceActionClient;
class ServiceActionServer;
class ServiceClient;
class ServiceServer;

struct DdsSettings {
  bool intra_process = false;
  // Default: kRmwFastrtps if the plug-in can relate samples, otherwise kRmwCyclonedds.
  std::optional<ServiceFraming> service_framing{};
  // The tracepoints; null: no tracing. Must outlive the runtime.
  const perflab_ros2_tracepoints* trace = nullptr;
  std::size_t participants = 1;  // of this process; at least 1
};

class DdsRuntime final : public Runtime {
 public:
  static constexpr Capabilities kCapabilities{.structs = true, .keys = true, .filters = true};

  // Opens the participants. Throws Error. Clock and sink must outlive the runtime.
  DdsRuntime(middleware::Plugin plugin, const middleware::ParticipantSettings& participant,
             const DdsSettings& settings, const measure::Clock& clock, EventSink& sink);
  ~DdsRuntime() override;

  [[nodiscard]] const measure::Clock& clock() const noexcept override { return clock_; }
  void name_group(std::size_t group, const NodeName& node) override;
  std::size_t add_executor(const ExecutorSettings& settings) override;
  Publisher& create_publisher(const EndpointSettings& settings) override;
  Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                    MessageHandler& handler) override;
  Client& create_client(std::size_t executor, const ServiceSettings& settings,
                        MessageHandler& handler) override;
  Server& create_server(std::size_t executor, const ServiceSettings& settings,
                        RequestHandler& handler) override;
  ActionClient& create_action_client(std::size_t executor, const ActionSettings& settings,
                                     ActionClientHandler& handler) override;
  ActionServer& create_action_server(std::size_t executor, const ActionSettings& settings,
                                     ActionServerHandler& handler) override;
  [[nodiscard]] ServiceFraming service_framing() const noexcept override { return framing_; }
  void create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) override;
  Waitable& create_waitable(std::size_t executor, const WaitableSettings& settings,
                            WaitableHandler& handler) override;
  Span* create_span(std::size_t group, const std::string& name, Nanoseconds period_ns) override;
  [[nodiscard]] std::vector<TypeDifference> type_differences() override;
  void work(Nanoseconds amount) noexcept override;
  // Throws Error (kUnsupported) if the kernel refuses the settings of a thread; then no callback has run.
  void start(Nanoseconds base_ns) override;
  [[nodiscard]] bool timers_done() const noexcept override;
  void stop() noexcept override;
  [[nodiscard]] std::string describe() override;

  class Entity;
  class Source;
  class MessageSource;
  class DdsSubscription;
  class DdsWaitable;
  class DdsPublisher;
  class Tracer;
  class DdsExecutor;
  class OneThreadExecutor;
  class InlineExecutor;
  class SingleThreadedExecutor;
  class EventsExecutor;
  class PollingExecutor;
  class MultiThreadedExecutor;
  class PriorityExecutor;
  class WaitSetExecutor;
  class LetExecutor;
  struct Executors;

 private:
  // Publishers and subscriptions of this process with the same name and type.
  struct LocalTopic {
    std::vector<DdsPublisher*> publishers;
    std::vector<DdsSubscription*> subscriptions;
  };

  [[nodiscard]] std::unique_ptr<DdsExecutor> make_executor(const ExecutorSettings& settings);
  LocalTopic& local_topic(const EndpointSettings& settings);
  [[nodiscard]] middleware::EndpointSettings endpoint_settings(const EndpointSettings& settings);
  [[nodiscard]] middleware::Participant& participant_of(const EndpointSettings& settings);
  // Throws Error.
  void connect(DdsPublisher& publisher, DdsSubscription& subscription);

  middleware::Plugin plugin_;
  const DdsSettings settings_;
  const ServiceFraming framing_;
  const measure::Clock& clock_;
  EventSink& sink_;
  std::map<const message::Key*, perflab_key> keys_;  // as passed to the plug-in
  // Declared before the endpoints, which must be destroyed first.
  std::vector<middleware::Participant> participants_;
  std::unique_ptr<Tracer> tracer_;  // null if nothing is traced
  std::map<std::pair<std::string, std::string>, LocalTopic> local_topics_;
  std::vector<std::unique_ptr<ServiceClient>> clients_;
  std::vector<std::unique_ptr<ServiceServer>> servers_;
  std::vector<std::unique_ptr<ServiceActionClient>> action_clients_;
  std::vector<std::unique_ptr<ServiceActionServer>> action_servers_;
  std::vector<std::unique_ptr<DdsPublisher>> publishers_;
  std::vector<std::unique_ptr<DdsSubscription>> subscriptions_;
  std::vector<std::unique_ptr<DdsWaitable>> waitables_;
  std::vector<std::unique_ptr<DdsExecutor>> executors_;
};

}  // namespace perflab::runtime
