// The differences between supported ROS 2 distributions: Humble has rclcpp 16, Jazzy 28; Rolling had 29 when
// it was tried.
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
// A custom executor learns what a wait found ready.
#if RCLCPP_VERSION_GTE(28, 0, 0)
#define PERFLAB_HAS_WAIT_RESULT 1
#endif
// A timer's callback learns when it was due.
#if RCLCPP_VERSION_GTE(28, 0, 0)
#define PERFLAB_HAS_TIMER_INFO 1
#endif

namespace perflab::runtime::ros {

// Deprecated before removal (StaticSingleThreadedExecutor since rclcpp 29). Comparisons of executors should
// include them as long as they exist, so the warning is suppressed.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#ifdef PERFLAB_HAS_EVENTS_EXECUTOR
using EventsExecutor = rclcpp::experimental::executors::EventsExecutor;
#endif
#ifdef PERFLAB_HAS_STATIC_EXECUTOR
using StaticSingleThreadedExecutor = rclcpp::executors::StaticSingleThreadedExecutor;
#endif
#pragma GCC diagnostic pop

// ROS_AUTOMATIC_DISCOVERY_RANGE; older versions only have ROS_LOCALHOST_ONLY.
#if __has_include(<rmw/discovery_options.h>)
inline constexpr bool kHasDiscoveryRange = true;
#else
inline constexpr bool kHasDiscoveryRange = false;
#endif

// Numbers of servers and clients of a service, by full name. Humble only counts nodes and topics; later
// versions count by the reply topic, as here.
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

// Humble requires a mutable argument, which later versions deprecate.
template <typename Executed>
void execute(Executed& executed, std::shared_ptr<void> data) {
  if constexpr (requires { executed.execute(std::as_const(data)); }) {
    executed.execute(std::as_const(data));
  } else {
    executed.execute(data);
  }
}

}  // namespace perflab::runtime::ros
