// What a graph's endpoints are made of on ROS 2: typed publishers, subscriptions, clients and services of rclcpp.
//
// Everything typed stands behind MessageEntities, one per message type (types/, one translation unit each), so
// that the rest knows no message.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <thread>
#include <vector>

#include <rclcpp/rclcpp.hpp>
#include <rclcpp_lifecycle/lifecycle_node.hpp>

#include "base/gate.h"
#include "runtime/runtime.h"

namespace perflab::runtime::ros {

// A node of either kind; one of the two is set.
struct NodeHandle {
  rclcpp::Node::SharedPtr node;
  rclcpp_lifecycle::LifecycleNode::SharedPtr lifecycle;

  [[nodiscard]] rclcpp::node_interfaces::NodeBaseInterface::SharedPtr base() const {
    return node ? node->get_node_base_interface() : lifecycle->get_node_base_interface();
  }
  [[nodiscard]] rclcpp::node_interfaces::NodeGraphInterface::SharedPtr graph() const {
    return node ? node->get_node_graph_interface() : lifecycle->get_node_graph_interface();
  }
  [[nodiscard]] rclcpp::node_interfaces::NodeServicesInterface::SharedPtr services() const {
    return node ? node->get_node_services_interface() : lifecycle->get_node_services_interface();
  }
  [[nodiscard]] rclcpp::node_interfaces::NodeTimersInterface::SharedPtr timers() const {
    return node ? node->get_node_timers_interface() : lifecycle->get_node_timers_interface();
  }
  [[nodiscard]] rclcpp::node_interfaces::NodeWaitablesInterface::SharedPtr waitables() const {
    return node ? node->get_node_waitables_interface() : lifecycle->get_node_waitables_interface();
  }
};

// What the endpoints of one runtime share.
struct Shared {
  const measure::Clock& clock;
  EventSink& sink;
  bool intra_process = false;
  // Executors run, and with them the callbacks of QoS events; until then these are looked for by hand.
  std::atomic<bool> running{false};
  std::vector<perflab_identity> identities{};  // of publishers, as the graph of ROS tells them
};

// The subscriptions of one topic and type in one participant, to which rclcpp delivers within the process.
struct LocalTopic {
  std::size_t sharing = 0;  // subscriptions that may share a message ...
  std::size_t owning = 0;   // ... and those that want their own
};

// Runs something each time the middleware has a message, or a waitable is triggered, in the thread that says so: the
// `inline` executor. Several threads may say so; one at a time runs.
class Inline {
 public:
  // `take_one` is false where there was nothing, or only something that was not for us (a reply to another
  // client, what came within the process as well): then there may be more.
  explicit Inline(std::function<bool()> take_one) : take_one_(std::move(take_one)) {}

  void open() noexcept {
    open_.store(true, std::memory_order_release);
    on_ready(1);  // what came before
  }
  void close() noexcept { open_.store(false, std::memory_order_release); }
  // `count`: how much the middleware says has come.
  void on_ready(std::size_t count) noexcept {
    announced_.fetch_add(count, std::memory_order_relaxed);
    gate_.pass(kAnnounced, [this](Gate::Marks) { take_all(); });
  }

  // While it lives, nothing is taken; what becomes ready is at its end. Another thread that is taking is waited
  // for, and needs nothing of this one.
  class Later {
   public:
    explicit Later(Inline& of) noexcept : of_(of) {
      if (of.taker_.load(std::memory_order_acquire) == std::this_thread::get_id()) return;
      of.gate_.enter();
      holds_ = true;
    }
    Later(const Later&) = delete;
    Later& operator=(const Later&) = delete;
    ~Later() {
      if (holds_) of_.gate_.leave([this](Gate::Marks) { of_.take_all(); });
    }

   private:
    Inline& of_;
    bool holds_ = false;  // not in a callback of its own, which is taking already
  };

 private:
  static constexpr Gate::Marks kAnnounced = 1;

  void take_all() noexcept {
    taker_.store(std::this_thread::get_id(), std::memory_order_release);
    std::size_t announced = announced_.exchange(0, std::memory_order_relaxed);
    bool taken = true;
    while (open_.load(std::memory_order_acquire) && (taken || announced > 0)) {
      if (announced > 0) --announced;
      taken = take_one_();
      announced += announced_.exchange(0, std::memory_order_relaxed);
    }
    taker_.store({}, std::memory_order_release);
  }

  std::function<bool()> take_one_;
  std::atomic<std::size_t> announced_{0};
  std::atomic<bool> open_{false};
  Gate gate_;
  std::atomic<std::thread::id> taker_{};
};

// What runs by the `inline` executor.
class RosReceiver {
 public:
  virtual ~RosReceiver() = default;
  virtual void open_inline() = 0;
  virtual void close_inline() noexcept = 0;
};

class RosSubscription : public Subscription, public RosReceiver {};
class RosClient : public Client, public RosReceiver {};
class RosServer : public Server, public RosReceiver {};

struct MessageEntities {
  std::string_view ros_type;  // "perflab_msgs/msg/StampedInt64"
  std::unique_ptr<Publisher> (*publisher)(Shared& shared, const NodeHandle& node,
                                             const EndpointSettings& settings, const LocalTopic& topic);
  std::unique_ptr<RosSubscription> (*subscription)(Shared& shared, const NodeHandle& node,
                                                   const EndpointSettings& settings, MessageHandler& handler);
  // Null for a type of variable size, which is no service.
  std::unique_ptr<RosClient> (*client)(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
                                       MessageHandler& handler);
  std::unique_ptr<RosServer> (*server)(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
                                       RequestHandler& handler);
};

// All types; made by CMake from the list of types/.
const std::vector<MessageEntities>& all_entities();

// Throws Error where the values of `qos` have no place in ROS.
rclcpp::QoS to_ros(const perflab_qos& qos);

// The identity of a writer; all zero where the RMW tells something else than in its publishers.
perflab_identity identity_of(const rmw_gid_t& gid) noexcept;

// The same by asking the graph of ROS, which knows the writer a moment after it was made; all zero if it does not
// within some seconds.
// `known` are those that have been found before: a node may have several publishers of a topic.
perflab_identity identity_in_graph(rclcpp::node_interfaces::NodeGraphInterface& graph, const std::string& node,
                                   const std::string& node_namespace, const std::string& topic,
                                   std::vector<perflab_identity>& known);

// One line of what was thrown; kUnsupported where ROS refuses a combination.
Error error_of(const std::string& what, const std::exception& error);

}  // namespace perflab::runtime::ros
