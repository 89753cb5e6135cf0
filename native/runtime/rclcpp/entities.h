// What a graph's endpoints are made of on ROS 2: publishers, subscriptions, clients and services of rclcpp, of any
// type. Whether their messages are structs or encoded is said once, for the whole runtime.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp_lifecycle/lifecycle_node.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/gate.h"
#include "runtime/rclcpp/distribution.h"
#include "runtime/runtime.h"

namespace perflab::runtime::ros {

// A node of either kind; one of the two is set.
struct NodeHandle {
  rclcpp::Node::SharedPtr node;
  rclcpp_lifecycle::LifecycleNode::SharedPtr lifecycle;

  // What `use` returns for the one that is set.
  template <typename Use>
  auto with(Use&& use) const {
    return node ? use(*node) : use(*lifecycle);
  }
  [[nodiscard]] auto base() const {
    return with([](auto& of) { return of.get_node_base_interface(); });
  }
  [[nodiscard]] auto graph() const {
    return with([](auto& of) { return of.get_node_graph_interface(); });
  }
  [[nodiscard]] auto services() const {
    return with([](auto& of) { return of.get_node_services_interface(); });
  }
  [[nodiscard]] auto clock() const {
    return with([](auto& of) { return of.get_node_clock_interface(); });
  }
  [[nodiscard]] auto logging() const {
    return with([](auto& of) { return of.get_node_logging_interface(); });
  }
  [[nodiscard]] auto timers() const {
    return with([](auto& of) { return of.get_node_timers_interface(); });
  }
  [[nodiscard]] auto waitables() const {
    return with([](auto& of) { return of.get_node_waitables_interface(); });
  }
};

// What the endpoints of one runtime share.
struct Shared {
  const measure::Clock& clock;
  EventSink& sink;
  std::string rmw{};
  bool structs = true;  // otherwise messages are given and taken encoded
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

// Runs something each time the middleware has a message, or a waitable is triggered, in the thread that says
// so: the `inline` executor. Several threads may say so; one at a time runs.
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
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  // `count`: how much the middleware says has come.
  void on_ready(std::size_t count) noexcept {
    announced_.fetch_add(count, std::memory_order_relaxed);
    gate_.pass(kAnnounced, [this](Gate::Marks) { take_all(); });
  }

  // While it lives, nothing is taken; what becomes ready is at its end. Another thread that is taking is
  // waited for, and needs nothing of this one.
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
    while (is_open() && (taken || announced > 0)) {
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

// What the `inline` executor runs: a subscription, a client, a server, a waitable.
class RosReceiver {
 public:
  explicit RosReceiver(Shared& shared) : shared_(shared), inline_([this] { return take_one(); }) {}
  virtual ~RosReceiver() = default;

  void open_inline() {
    inline_.open();
    listen();
  }
  // By which executors of rclcpp know it.
  [[nodiscard]] virtual std::vector<const void*> executables() const = 0;
  void close_inline() noexcept {
    inline_.close();
    try {
      ignore();
    } catch (const std::exception&) {  // it may be that nothing was set
    }
  }

 protected:
  // What an executor does with it when it is ready; returns what Inline wants.
  virtual bool take() = 0;
  // Has rclcpp say when it is ready, and no longer. A waitable says it itself.
  virtual void listen() {}
  virtual void ignore() {}
  [[nodiscard]] std::function<void(std::size_t)> on_ready() {
    return [this](std::size_t count) { inline_.on_ready(count); };
  }

  Shared& shared_;
  Inline inline_;

 private:
  bool take_one() noexcept {
    try {
      return take();
    } catch (const std::exception& error) {
      shared_.sink.on_failure(shared_.clock.now(), error.what());
      return false;
    }
  }
};

template <typename Entity>
class Received : public Entity, public RosReceiver {
 protected:
  using RosReceiver::RosReceiver;
};
using RosSubscription = Received<Subscription>;
using RosClient = Received<Client>;
using RosServer = Received<Server>;
using RosActionClient = Received<ActionClient>;
using RosActionServer = Received<ActionServer>;

// Who matches a publisher or subscription and what does not fit, as events.
class Matches {
 public:
  Matches(Shared& shared, const EndpointSettings& settings) : shared_(shared), settings_(settings) {}

  // rclcpp has one type for what is offered and what is requested.
  void report_incompatible(const rmw_qos_incompatible_event_status_t& status) const;
  // Returns `matched`. Before executors run, which have the callbacks of QoS events run, what is new is
  // reported whenever somebody asks for the count.
  template <typename Entity, typename Type>
  std::size_t look(std::size_t matched, Entity& entity, Type incompatible) {
    if (shared_.running.load(std::memory_order_relaxed)) return matched;
    if (matched > matched_) report(PERFLAB_MATCHED, nullptr, static_cast<int>(matched - matched_));
    matched_ = matched;
    for (const auto& [type, handler] : entity.get_event_handlers()) {
      if (type != incompatible) continue;
      if (std::shared_ptr<void> data = handler->take_data()) execute(*handler, std::move(data));
    }
    return matched;
  }

 private:
  void report(perflab_event_kind kind, const char* policy, int count) const;

  Shared& shared_;
  const EndpointSettings& settings_;
  std::size_t matched_ = 0;
};

// Endpoints on a node. Each throws Error, or what rclcpp throws.
std::unique_ptr<Publisher> make_publisher(Shared& shared, const NodeHandle& node, const EndpointSettings& settings,
                                          const LocalTopic& topic);
std::unique_ptr<RosSubscription> make_subscription(Shared& shared, const NodeHandle& node,
                                                   const EndpointSettings& settings, MessageHandler& handler);
std::unique_ptr<RosClient> make_client(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
                                       MessageHandler& handler);
std::unique_ptr<RosServer> make_server(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
                                       RequestHandler& handler);
// rclcpp_action's (actions.cpp).
std::unique_ptr<RosActionClient> make_action_client(Shared& shared, const NodeHandle& node, const ActionSettings& settings,
                                                    ActionClientHandler& handler);
std::unique_ptr<RosActionServer> make_action_server(Shared& shared, const NodeHandle& node, const ActionSettings& settings,
                                                    ActionServerHandler& handler);

// 0 where ROS cannot count any more.
template <typename Count>
std::size_t counted(Count&& count) noexcept {
  try {
    return count();
  } catch (const std::exception&) {
    return 0;
  }
}

// Throws Error where the values of `qos` have no place in ROS.
rclcpp::QoS to_ros(const perflab_qos& qos);
// Likewise; throws Unsupported where a policy is not of ROS 2.
rclcpp::QoS to_ros(const EndpointSettings& settings);

// The identity of a writer; all zero where the RMW tells something else than in its publishers.
perflab_identity identity_of(const rmw_gid_t& gid) noexcept;

// The same by asking the graph of ROS, which knows the writer a moment after it was made; all zero if it does
// not within some seconds. `known` are those that have been found before: a node may have several publishers
// of a topic.
perflab_identity identity_in_graph(rclcpp::node_interfaces::NodeGraphInterface& graph,
                                   const std::string& node, const std::string& node_namespace,
                                   const std::string& topic, std::vector<perflab_identity>& known);

}  // namespace perflab::runtime::ros
