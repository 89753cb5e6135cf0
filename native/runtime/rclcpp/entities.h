// The endpoints of a graph on ROS 2: publishers, subscriptions, clients and services of rclcpp, for any type.
// The whole runtime uses either structs or encoded messages.
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

// A node of either kind; exactly one of the two is set.
struct NodeHandle {
  rclcpp::Node::SharedPtr node;
  rclcpp_lifecycle::LifecycleNode::SharedPtr lifecycle;

  // Returns the result of `use` for the one that is set.
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

// Shared by the endpoints of one runtime.
struct Shared {
  const measure::Clock& clock;
  EventSink& sink;
  std::string rmw{};
  bool structs = true;  // otherwise messages are passed encoded
  bool intra_process = false;
  // Executors are running, and with them the callbacks of QoS events; until then events are polled.
  std::atomic<bool> running{false};
  std::vector<perflab_identity> identities{};  // of publishers, as reported by the ROS graph
};

// The subscriptions of one topic and type in one participant to which rclcpp delivers within the process.
struct LocalTopic {
  std::size_t sharing = 0;  // subscriptions that may share a message ...
  std::size_t owning = 0;   // ... and those that want their own
};

// The `inline` executor: runs an entity whenever the middleware has a message for it or it is triggered, in
// the notifying thread. Several threads may notify; one at a time runs.
class Inline {
 public:
  // `take_one` returns false if there was nothing, or something not meant for us (a reply to another client,
  // a message that also came within the process): then there may be more.
  explicit Inline(std::function<bool()> take_one) : take_one_(std::move(take_one)) {}

  void open() noexcept {
    open_.store(true, std::memory_order_release);
    on_ready(1);  // handles what came before
  }
  void close() noexcept { open_.store(false, std::memory_order_release); }
  [[nodiscard]] bool is_open() const noexcept { return open_.load(std::memory_order_acquire); }
  // `count`: how many messages the middleware reports.
  void on_ready(std::size_t count) noexcept {
    announced_.fetch_add(count, std::memory_order_relaxed);
    gate_.pass(kAnnounced, [this](Gate::Marks) { take_all(); });
  }

  // During its lifetime nothing is taken; what becomes ready is taken at its end. Waits for another thread
  // that is taking, which never needs this one.
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
    bool holds_ = false;  // false in a callback of its own, which is taking already
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

// An entity that the `inline` executor runs: subscription, client, server or waitable.
class RosReceiver {
 public:
  explicit RosReceiver(Shared& shared) : shared_(shared), inline_([this] { return take_one(); }) {}
  virtual ~RosReceiver() = default;

  void open_inline() {
    inline_.open();
    listen();
  }
  // The pointers by which rclcpp's executors know it.
  [[nodiscard]] virtual std::vector<const void*> executables() const = 0;
  void close_inline() noexcept {
    inline_.close();
    try {
      ignore();
    } catch (const std::exception&) {  // possibly nothing was set
    }
  }

 protected:
  // Called by an executor when it is ready; returns the result for Inline.
  virtual bool take() = 0;
  // Makes rclcpp notify us when it is ready, from now on. A waitable notifies by itself.
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

// Reports matched and incompatible peers of a publisher or subscription as events.
class Matches {
 public:
  Matches(Shared& shared, const EndpointSettings& settings) : shared_(shared), settings_(settings) {}

  // rclcpp uses one type for offered and requested QoS.
  void report_incompatible(const rmw_qos_incompatible_event_status_t& status) const;
  // Returns `matched`. Executors run the callbacks of QoS events; before they run, new events are reported
  // whenever the count is read.
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

// Endpoints on a node. Each throws Error or an exception of rclcpp.
std::unique_ptr<Publisher> make_publisher(Shared& shared, const NodeHandle& node, const EndpointSettings& settings,
                                          const LocalTopic& topic);
std::unique_ptr<RosSubscription> make_subscription(Shared& shared, const NodeHandle& node,
                                                   const EndpointSettings& settings, MessageHandler& handler);
std::unique_ptr<RosClient> make_client(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
                                       MessageHandler& handler);
std::unique_ptr<RosServer> make_server(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
                                       RequestHandler& handler);
// Those of rclcpp_action (actions.cpp).
std::unique_ptr<RosActionClient> make_action_client(Shared& shared, const NodeHandle& node, const ActionSettings& settings,
                                                    ActionClientHandler& handler);
std::unique_ptr<RosActionServer> make_action_server(Shared& shared, const NodeHandle& node, const ActionSettings& settings,
                                                    ActionServerHandler& handler);

// 0 if ROS can no longer count.
template <typename Count>
std::size_t counted(Count&& count) noexcept {
  try {
    return count();
  } catch (const std::exception&) {
    return 0;
  }
}

// Throws Error if values of `qos` do not exist in ROS.
rclcpp::QoS to_ros(const perflab_qos& qos);
// Likewise; throws Unsupported for policies that are not ROS 2's.
rclcpp::QoS to_ros(const EndpointSettings& settings);

// The identity of a writer; all zero if the RMW reports something else than for its publishers.
perflab_identity identity_of(const rmw_gid_t& gid) noexcept;

// The same from the ROS graph, which knows the writer some time after its creation; all zero if it does not
// within some seconds. `known` are identities found before: a node may have several publishers of a topic.
perflab_identity identity_in_graph(rclcpp::node_interfaces::NodeGraphInterface& graph,
                                   const std::string& node, const std::string& node_namespace,
                                   const std::string& topic, std::vector<perflab_identity>& known);

}  // namespace perflab::runtime::ros
