// The `rclcpp` runtime: a graph on ROS 2 itself.
//
// Every group is a node (rclcpp::Node or LifecycleNode); its endpoints are publishers, subscriptions, clients
// and services of rclcpp and actions of rclcpp_action; its timers are wall timers; its callbacks run in
// rclcpp's executors. So the measurement covers what an application gets: type support, rmw, rcl, rclcpp.
//
// Differences from `dds`, caused by ROS:
// * a late timer always skips the ticks that it missed (they are reported as skipped);
// * services are framed as the RMW does it;
// * the arrival time in the receive thread is unknown, and for action feedback the sending time;
// * if the RMW does not report a message's writer (rmw_cyclonedds_cpp; within a process) its identity is
//   zero.
#include <rclcpp/version.h>
#include <rmw/rmw.h>
#include <tracetools/tracetools.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>

#include "middleware/types.h"
#include "middleware/policies.h"
#include "realtime/scheduling.h"
#include "realtime/thread.h"
#include "runtime/plugin.h"
#include "runtime/rclcpp/entities.h"
#include "runtime/rclcpp/executor.h"
#include "runtime/rclcpp/settings.h"
#include "runtime/rclcpp/waitable.h"

namespace perflab::runtime::ros {
namespace {

ServiceFraming framing_of(const std::string& rmw) {
  return rmw == "rmw_cyclonedds_cpp" ? ServiceFraming::kRmwCyclonedds : ServiceFraming::kRmwFastrtps;
}

std::string one_line(std::string text) {
  std::ranges::replace(text, '\n', ' ');
  return text;
}

// The exception as one line; kUnsupported if ROS refuses a combination.
Error error_of(const std::string& what, const std::exception& error) {
  if (const auto* known = dynamic_cast<const Error*>(&error)) return *known;
  // rclcpp reports refused combinations of QoS and intra-process delivery in this way.
  const bool refused = dynamic_cast<const std::invalid_argument*>(&error) != nullptr;
  return {refused ? Error::Kind::kUnsupported : Error::Kind::kFailed,
          "rclcpp: " + what + ": " + one_line(error.what())};
}

// Returns the result of `make`; prefixes exceptions with what was being created.
template <typename Make>
auto made(const std::string& what, Make&& make) {
  try {
    return make();
  } catch (const std::exception& error) {
    throw error_of(what, error);
  }
}

const char* policy_name(rmw_qos_policy_kind_t kind) noexcept {
  switch (kind) {
    case RMW_QOS_POLICY_DURABILITY:
      return "durability";
    case RMW_QOS_POLICY_DEADLINE:
      return "deadline";
    case RMW_QOS_POLICY_LIVELINESS:
    case RMW_QOS_POLICY_LIVELINESS_LEASE_DURATION:
      return "liveliness";
    case RMW_QOS_POLICY_RELIABILITY:
      return "reliability";
    case RMW_QOS_POLICY_HISTORY:
    case RMW_QOS_POLICY_DEPTH:
      return "history";
    case RMW_QOS_POLICY_LIFESPAN:
      return "lifespan";
    default:
      return nullptr;
  }
}

}  // namespace

void Matches::report_incompatible(const rmw_qos_incompatible_event_status_t& status) const {
  if (status.total_count_change > 0)
    report(PERFLAB_INCOMPATIBLE_QOS, policy_name(status.last_policy_kind), status.total_count_change);
}

void Matches::report(perflab_event_kind kind, const char* policy, int count) const {
  shared_.sink.on_event(
      {kind, shared_.clock.now(), {}, settings_.topic.c_str(), settings_.ros_type.c_str(), policy, count});
}

rclcpp::QoS to_ros(const perflab_qos& qos) {
  rclcpp::QoS made = qos.history == PERFLAB_KEEP_ALL
                         ? rclcpp::QoS(rclcpp::KeepAll())
                         : rclcpp::QoS(rclcpp::KeepLast(static_cast<std::size_t>(qos.depth)));
  made.reliability(qos.reliability == PERFLAB_RELIABLE ? rclcpp::ReliabilityPolicy::Reliable
                                                       : rclcpp::ReliabilityPolicy::BestEffort);
  made.durability(qos.durability == PERFLAB_TRANSIENT_LOCAL ? rclcpp::DurabilityPolicy::TransientLocal
                                                            : rclcpp::DurabilityPolicy::Volatile);
  made.liveliness(qos.liveliness == PERFLAB_MANUAL_BY_TOPIC ? rclcpp::LivelinessPolicy::ManualByTopic
                                                            : rclcpp::LivelinessPolicy::Automatic);
  const auto duration = [](std::int64_t ns) { return rclcpp::Duration(std::chrono::nanoseconds(ns)); };
  if (qos.deadline_ns != PERFLAB_DURATION_INFINITE) made.deadline(duration(qos.deadline_ns));
  if (qos.lifespan_ns != PERFLAB_DURATION_INFINITE) made.lifespan(duration(qos.lifespan_ns));
  if (qos.lease_duration_ns != PERFLAB_DURATION_INFINITE)
    made.liveliness_lease_duration(duration(qos.lease_duration_ns));
  return made;
}

rclcpp::QoS to_ros(const EndpointSettings& settings) {
  middleware::require_ros2_policies("rclcpp", settings.topic, settings.qos);
  return to_ros(settings.qos);
}

// rmw_cyclonedds_cpp reports a handle of the receiving process instead of the writer's GUID; they differ in
// the half of a GUID that is never zero.
perflab_identity identity_of(const rmw_gid_t& gid) noexcept {
  perflab_identity identity{};
  std::copy_n(gid.data, sizeof identity.bytes, identity.bytes);
  const bool handle =
      std::all_of(identity.bytes + 8, identity.bytes + 16, [](std::uint8_t b) { return b == 0; });
  return handle ? perflab_identity{} : identity;
}

perflab_identity identity_in_graph(rclcpp::node_interfaces::NodeGraphInterface& graph,
                                   const std::string& node, const std::string& node_namespace,
                                   const std::string& topic, std::vector<perflab_identity>& known) {
  constexpr int kTries = 3000;
  for (int i = 0; i < kTries; ++i) {
    for (const rclcpp::TopicEndpointInfo& info : graph.get_publishers_info_by_topic(topic)) {
      if (info.node_name() != node || info.node_namespace() != node_namespace) continue;
      perflab_identity identity{};
      std::copy_n(info.endpoint_gid().begin(), sizeof identity.bytes, identity.bytes);
      if (std::ranges::any_of(known, [&](const auto& one) { return middleware::same(one, identity); }))
        continue;
      known.push_back(identity);
      return identity;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return {};
}

namespace {

class RclcppRuntime final : public Runtime {
 public:
  // Throws Error.
  RclcppRuntime(const PluginSettings& given, const measure::Clock& clock, EventSink& sink)
      : given_(given), settings_(read_settings(given)), shared_{.clock = clock, .sink = sink} {
    if (given_.intra_process && !given_.structs)
      throw Error(Error::Kind::kUnsupported,
                  "rclcpp: delivers no encoded messages within the process; right would be --serialization every, or "
                  "--ipc off");
    if (given_.traced && !ros_trace_compile_status())
      throw Error(Error::Kind::kUnsupported,
                  "rclcpp: this ROS 2 was built without its tracepoints (TRACETOOLS_DISABLED), so it cannot "
                  "be traced");
    configured_ = set_environment(settings_, given_, profile_).dump();
    shared_.intra_process = given.intra_process;
    shared_.structs = given.structs;
    try {
      for (std::uint32_t i = 0; i < std::max(1u, given_.participants); ++i) {
        rclcpp::InitOptions options;
        options.auto_initialize_logging(false);  // logging would write files to the user's home
        options.set_domain_id(given_.domain);
        options.shutdown_on_signal = false;
        auto context = std::make_shared<rclcpp::Context>();
        context->init(0, nullptr, options);
        contexts_.push_back(std::move(context));
      }
      rmw_ = rmw_get_implementation_identifier();
    } catch (const std::exception& error) {
      throw error_of(settings_.rmw.empty() ? "no context" : settings_.rmw, error);
    }
    if (!settings_.rmw.empty() && rmw_ != settings_.rmw)
      throw Error(Error::Kind::kUnsupported, "rclcpp: " + settings_.rmw + " was asked for, " + rmw_ +
                                                 " is what this ROS 2 has been built with; right would be "
                                                 "--middleware rclcpp/" +
                                                 rmw_);
    shared_.rmw = rmw_;
    framing_ = framing_of(rmw_);
    if (given_.service_framing && *given_.service_framing != framing_)
      throw Error(Error::Kind::kUnsupported,
                  "rclcpp: " + rmw_ + " frames services in its own way; right would be --service-framing " +
                      (framing_ == ServiceFraming::kRmwCyclonedds ? "rmw_cyclonedds" : "rmw_fastrtps"));
  }

  ~RclcppRuntime() override {
    RclcppRuntime::stop();
    executors_.clear();
    waitables_.clear();
    action_clients_.clear();
    action_servers_.clear();
    clients_.clear();
    servers_.clear();
    subscriptions_.clear();
    publishers_.clear();
    nodes_.clear();
    for (const auto& context : contexts_) context->shutdown("the graph has ended");
  }

  [[nodiscard]] const measure::Clock& clock() const noexcept override { return shared_.clock; }
  void name_group(std::size_t group, const NodeName& name) override {
    if (nodes_.contains(group)) return;
    rclcpp::NodeOptions options;
    options.context(contexts_.at(name.participant % contexts_.size()))
        .use_global_arguments(false)
        .use_intra_process_comms(given_.intra_process)
        .start_parameter_services(settings_.parameter_services)
        .start_parameter_event_publisher(settings_.parameter_services)
        .enable_rosout(settings_.rosout);
    nodes_.emplace(group, made("node " + name.name, [&] {
                     NodeHandle handle;
                     if (settings_.lifecycle) {
                       handle.lifecycle = std::make_shared<rclcpp_lifecycle::LifecycleNode>(
                           name.name, name.node_namespace, options);
                     } else {
                       handle.node = std::make_shared<rclcpp::Node>(name.name, name.node_namespace, options);
                     }
                     executors_.at(name.executor)->add_node(handle);
                     return handle;
                   }));
    profile_.reset();  // Fast DDS has read it; a process killed from here on leaves no file behind
  }

  std::size_t add_executor(const ExecutorSettings& settings) override {
    executors_.push_back(make_executor(shared_.clock, shared_.sink, settings, contexts_.front()));
    return executors_.size() - 1;
  }

  Publisher& create_publisher(const EndpointSettings& settings) override {
    const LocalTopic& topic = topics_[{settings.participant, settings.topic, settings.ros_type}];
    publishers_.push_back(made("publisher " + settings.topic, [&] {
      return make_publisher(shared_, node(settings.group, settings.participant), settings, topic);
    }));
    return *publishers_.back();
  }

  Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                    MessageHandler& handler) override {
    LocalTopic& topic = topics_[{settings.participant, settings.topic, settings.ros_type}];
    Subscription& subscription =
        keep(subscriptions_, executor, settings.priority, made("subscription " + settings.topic, [&] {
               return make_subscription(shared_, node(settings.group, settings.participant), settings, handler);
             }));
    ++(settings.pass_by == PassBy::kUnique ? topic.owning : topic.sharing);
    return subscription;
  }

  Client& create_client(std::size_t executor, const ServiceSettings& settings,
                        MessageHandler& handler) override {
    return keep(clients_, executor, settings.priority, made("client " + settings.service, [&] {
                  return make_client(shared_, node(settings.group, settings.participant), settings, handler);
                }));
  }

  Server& create_server(std::size_t executor, const ServiceSettings& settings,
                        RequestHandler& handler) override {
    return keep(servers_, executor, settings.priority, made("server " + settings.service, [&] {
                  return make_server(shared_, node(settings.group, settings.participant), settings, handler);
                }));
  }

  ActionClient& create_action_client(std::size_t executor, const ActionSettings& settings,
                                     ActionClientHandler& handler) override {
    return keep(action_clients_, executor, settings.priority, made("action client " + settings.action, [&] {
                  return make_action_client(shared_, node(settings.group, settings.participant), settings, handler);
                }));
  }

  ActionServer& create_action_server(std::size_t executor, const ActionSettings& settings,
                                     ActionServerHandler& handler) override {
    return keep(action_servers_, executor, settings.priority, made("action server " + settings.action, [&] {
                  return make_action_server(shared_, node(settings.group, settings.participant), settings, handler);
                }));
  }

  [[nodiscard]] ServiceFraming service_framing() const noexcept override { return framing_; }
  void create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) override {
    executors_.at(executor)->add_timer(node(settings.group, 0), settings, handler);
  }

  Waitable& create_waitable(std::size_t executor, const WaitableSettings& settings,
                            WaitableHandler& handler) override {
    return keep(waitables_, executor, settings.priority, made("waitable " + settings.name, [&] {
                  return std::make_unique<RosWaitable>(shared_, node(settings.group, 0), settings, handler);
                }));
  }

  void work(Nanoseconds amount) noexcept override { realtime::spend_cpu_time(amount); }
  void start(Nanoseconds base_ns) override {
    if (const auto files = settings_.udp ? shared_memory_files() : std::set<std::string>(); !files.empty())
      throw Error(Error::Kind::kFailed, "rclcpp: transport=udp is not in effect: " + rmw_ +
                                            " uses the shared memory /dev/shm/" + *files.begin());
    for (const auto& [group, node] : nodes_) {
      if (!node.lifecycle) continue;
      node.lifecycle->configure();
      node.lifecycle->activate();
    }
    for (const auto& executor : executors_) executor->set_base(base_ns);
    try {
      for (const auto& executor : executors_) executor->create_threads();
      reset_timers();  // before anything runs: no executor thread reads the timers while they are being set
    } catch (const Error&) {
      for (const auto& executor : executors_) executor->stop();
      throw;
    }
    shared_.running.store(true);
    for (const auto& executor : executors_) executor->run();
  }

  [[nodiscard]] bool timers_done() const noexcept override {
    return std::ranges::all_of(executors_, [](const auto& executor) { return executor->timers_done(); });
  }

  void stop() noexcept override {
    for (const auto& executor : executors_) executor->stop();
    shared_.running.store(false);
  }

  [[nodiscard]] std::string describe() override {
    Nanoseconds behind = 0;
    for (const auto& executor : executors_) {
      for (const RosTimer* const timer : executor->timers()) behind = std::max(behind, timer->behind());
    }
    nlohmann::json effective = {{"rmw", rmw_},
                                {"node", settings_.lifecycle ? "lifecycle" : "node"},
                                {"parameter_services", settings_.parameter_services},
                                {"rosout", settings_.rosout},
                                {"participants", contexts_.size()},
                                {"timers_behind_ns", behind},
                                {"shared_memory_files", shared_memory_files()}};
    effective.update(nlohmann::json::parse(configured_));
    if (const char* const distribution = std::getenv("ROS_DISTRO")) effective["ros_distro"] = distribution;
    return nlohmann::json{
        {"name", given_.middleware}, {"version", RCLCPP_VERSION_STR}, {"effective", effective}}
        .dump();
  }

 private:
  // A group without a name is a node all the same.
  const NodeHandle& node(std::size_t group, std::size_t participant) {
    if (!nodes_.contains(group)) name_group(group, {"/", "group_" + std::to_string(group), participant, 0});
    return nodes_.at(group);
  }

  // Takes ownership; the executor runs it.
  template <typename Receiver>
  Receiver& keep(std::vector<std::unique_ptr<Receiver>>& all, std::size_t executor, int priority,
                 std::unique_ptr<Receiver> receiver) {
    all.push_back(std::move(receiver));
    executors_.at(executor)->add_receiver(*all.back(), priority);
    return *all.back();
  }

  void reset_timers() {
    for (const auto& executor : executors_) {
      for (RosTimer* const timer : executor->timers()) {
        if (!timer->never()) timer->reset();
      }
    }
  }

  const PluginSettings given_;
  const Settings settings_;
  std::string configured_;                // JSON: the DDS settings and how they were applied
  std::optional<TemporaryFile> profile_;  // for Fast DDS, until the first node exists
  std::string rmw_;
  ServiceFraming framing_ = ServiceFraming::kRmwFastrtps;
  Shared shared_;
  std::vector<rclcpp::Context::SharedPtr> contexts_;  // one per participant
  std::map<std::size_t, NodeHandle> nodes_;           // by group
  std::map<std::tuple<std::size_t, std::string, std::string>, LocalTopic>
      topics_;  // participant, topic, type
  // Endpoints are declared before the executors that run them.
  std::vector<std::unique_ptr<Publisher>> publishers_;
  std::vector<std::unique_ptr<RosSubscription>> subscriptions_;
  std::vector<std::unique_ptr<RosClient>> clients_;
  std::vector<std::unique_ptr<RosServer>> servers_;
  std::vector<std::unique_ptr<RosActionClient>> action_clients_;
  std::vector<std::unique_ptr<RosActionServer>> action_servers_;
  std::vector<std::unique_ptr<RosWaitable>> waitables_;
  std::vector<std::unique_ptr<RosExecutor>> executors_;
};

std::unique_ptr<Runtime> open(const PluginSettings& settings, const measure::Clock& clock, EventSink& sink) {
  return std::make_unique<RclcppRuntime>(settings, clock, sink);
}

// Threads that an rclcpp executor started itself (the timers of its EventsExecutor) have the name and
// settings of their creator, and belong to it.
std::vector<realtime::OwnThread> own_threads() {
  std::vector<realtime::OwnThread> own = realtime::own_threads();
  const std::vector<realtime::ThreadState> all = realtime::read_threads();
  const std::size_t registered = own.size();
  for (const realtime::ThreadState& thread : all) {
    if (std::ranges::find(own, thread.tid, &realtime::OwnThread::tid) != own.end()) continue;
    for (std::size_t i = 0; i < registered; ++i) {
      if (own[i].role != realtime::Role::kExecutor) continue;
      const auto parent = std::ranges::find(all, own[i].tid, &realtime::ThreadState::tid);
      if (parent == all.end() || parent->name != thread.name) continue;
      own.push_back({thread.tid, realtime::Role::kExecutor, own[i].asked});
      break;
    }
  }
  return own;
}

constexpr PluginApi kApi{kPluginAbi, "rclcpp", RCLCPP_VERSION_STR, &open, &own_threads};

}  // namespace
}  // namespace perflab::runtime::ros

extern "C" __attribute__((visibility("default"))) const perflab::runtime::PluginApi*
perflab_runtime_plugin() {
  return &perflab::runtime::ros::kApi;
}
