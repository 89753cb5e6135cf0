// The `rclcpp` runtime: a graph on ROS 2 itself.
//
// Every group is a node (rclcpp::Node or LifecycleNode), its endpoints are typed publishers, subscriptions,
// clients and services of rclcpp, its timers wall timers, its waitables those of rclcpp, its callbacks run by rclcpp's
// executors. So what is measured is what an application gets: type support, rmw, rcl, rclcpp.
//
// What differs from `dds`, because ROS differs:
//  * a timer that is late leaves out the ticks that it missed, always (they are told as skipped);
//  * services are framed as the RMW does it;
//  * when a message arrived in the receive thread is not known;
//  * where the RMW tells no writer with a message (rmw_cyclonedds_cpp; within a process) its identity is zero.
#pragma once

#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <tuple>

#include "runtime/plugin.h"
#include "runtime/rclcpp/entities.h"
#include "runtime/rclcpp/executor.h"
#include "runtime/rclcpp/settings.h"
#include "runtime/rclcpp/waitable.h"

namespace perflab::runtime::ros {

class RclcppRuntime final : public Runtime {
 public:
  // Throws Error.
  RclcppRuntime(const PluginSettings& given, const measure::Clock& clock, EventSink& sink);
  ~RclcppRuntime() override;

  [[nodiscard]] const measure::Clock& clock() const noexcept override { return shared_.clock; }
  void name_group(std::size_t group, const NodeName& node) override;
  std::size_t add_executor(const ExecutorSettings& settings) override;
  Publisher& create_publisher(const EndpointSettings& settings) override;
  Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                    MessageHandler& handler) override;
  Client& create_client(std::size_t executor, const ServiceSettings& settings, MessageHandler& handler) override;
  Server& create_server(std::size_t executor, const ServiceSettings& settings, RequestHandler& handler) override;
  [[nodiscard]] ServiceFraming service_framing() const noexcept override { return framing_; }
  void create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) override;
  Waitable& create_waitable(std::size_t executor, const WaitableSettings& settings,
                            WaitableHandler& handler) override;
  void work(Nanoseconds amount) noexcept override;
  void start(Nanoseconds base_ns) override;
  [[nodiscard]] bool timers_done() const noexcept override;
  void stop() noexcept override;
  [[nodiscard]] std::string describe() override;

 private:
  const NodeHandle& node(std::size_t group, std::size_t participant);
  void reset_timers();

  const PluginSettings given_;
  const Settings settings_;
  std::string configured_;  // JSON: what was set of DDS, and how
  std::optional<TemporaryFile> profile_;  // of Fast DDS, until there is a node
  std::string rmw_;
  ServiceFraming framing_ = ServiceFraming::kRmwFastrtps;
  Shared shared_;
  std::vector<rclcpp::Context::SharedPtr> contexts_;  // one per participant
  std::map<std::size_t, NodeHandle> nodes_;           // by group
  std::map<std::tuple<std::size_t, std::string, std::string>, LocalTopic> topics_;  // participant, topic, type
  // Endpoints before what runs them.
  std::vector<std::unique_ptr<Publisher>> publishers_;
  std::vector<std::unique_ptr<RosSubscription>> subscriptions_;
  std::vector<std::unique_ptr<RosClient>> clients_;
  std::vector<std::unique_ptr<RosServer>> servers_;
  std::vector<std::unique_ptr<RosWaitable>> waitables_;
  std::vector<std::unique_ptr<RosExecutor>> executors_;
};

}  // namespace perflab::runtime::ros
