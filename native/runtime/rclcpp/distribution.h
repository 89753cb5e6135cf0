// What differs between the distributions of ROS 2 that perflab is written for: Humble is rclcpp 16, Jazzy 28, and
// Rolling was 29 when it was tried.
#pragma once

#include <rclcpp/version.h>
#include <tracetools/tracetools.h>

#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <string>
#include <utility>

#if __has_include(<rclcpp/experimental/executors/events_executor/events_executor.hpp>)
#define PERFLAB_HAS_EVENTS_EXECUTOR 1
#include <rclcpp/experimental/executors/events_executor/events_executor.hpp>
#endif
#if __has_include(<rclcpp/executors/static_single_threaded_executor.hpp>)
#define PERFLAB_HAS_STATIC_EXECUTOR 1
#include <rclcpp/executors/static_single_threaded_executor.hpp>
#endif
// Waitables get wait sets and data by reference.
#if RCLCPP_VERSION_GTE(28, 1, 0)
#define PERFLAB_WAITABLE_BY_REFERENCE 1
#endif
#ifdef TRACETOOLS_TRACEPOINT
#define PERFLAB_TRACEPOINT TRACETOOLS_TRACEPOINT
#else
#define PERFLAB_TRACEPOINT TRACEPOINT
#endif
// An executor of one's own is told what a wait found ready.
#if RCLCPP_VERSION_GTE(28, 0, 0)
#define PERFLAB_HAS_WAIT_RESULT 1
#endif
// A timer's callback is told when it was due.
#if RCLCPP_VERSION_GTE(28, 0, 0)
#define PERFLAB_HAS_TIMER_INFO 1
#endif

namespace perflab::runtime::ros {

// Deprecated before they are removed (StaticSingleThreadedExecutor from rclcpp 29 on). Who compares executors wants to
// see them as long as they are there, and a warning here would tell nobody who could act on it.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#ifdef PERFLAB_HAS_EVENTS_EXECUTOR
using EventsExecutor = rclcpp::experimental::executors::EventsExecutor;
#endif
#ifdef PERFLAB_HAS_STATIC_EXECUTOR
using StaticSingleThreadedExecutor = rclcpp::executors::StaticSingleThreadedExecutor;
#endif
#pragma GCC diagnostic pop

// ROS_AUTOMATIC_DISCOVERY_RANGE; before, there was ROS_LOCALHOST_ONLY alone.
#if __has_include(<rmw/discovery_options.h>)
inline constexpr bool kHasDiscoveryRange = true;
#else
inline constexpr bool kHasDiscoveryRange = false;
#endif

// How many servers and clients a service has, by its full name. Humble counts nodes and topics only; the topic of the
// replies is what later ones count by.
template <typename Graph>
std::size_t count_services(Graph& graph, const std::string& service) {
  if constexpr (requires { graph.count_services(service); }) {
    return graph.count_services(service);
  } else {
    return graph.get_publishers_info_by_topic("rr" + service + "Reply", true).size();
  }
}
template <typename Graph>
std::size_t count_clients(Graph& graph, const std::string& service) {
  if constexpr (requires { graph.count_clients(service); }) {
    return graph.count_clients(service);
  } else {
    return graph.get_subscriptions_info_by_topic("rr" + service + "Reply", true).size();
  }
}

// Humble wants to change what it executes, later ones deprecate that.
template <typename Executed>
void execute(Executed& executed, std::shared_ptr<void> data) {
  if constexpr (requires { executed.execute(std::as_const(data)); }) {
    executed.execute(std::as_const(data));
  } else {
    executed.execute(data);
  }
}

}  // namespace perflab::runtime::ros
