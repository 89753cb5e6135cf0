#include "runtime/dds/tracing.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "runtime/dds/publisher.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/waitable.h"

namespace perflab::runtime {

Gid gid_of(const perflab_identity& identity) noexcept {
  Gid gid{};
  static_assert(sizeof identity.bytes <= gid.size());
  std::ranges::copy(identity.bytes, gid.begin());
  return gid;
}

namespace {

std::size_t depth_of(const perflab_qos& qos) noexcept {
  return qos.history == PERFLAB_KEEP_LAST ? static_cast<std::size_t>(qos.depth) : 0;
}

}  // namespace

DdsRuntime::Tracer::Tracer(const perflab_ros2_tracepoints& trace, const void* context) : trace_(trace) {
  trace_.rcl_init(context, PERFLAB_ROS2_TRACETOOLS_VERSION);
}

void DdsRuntime::Tracer::name_group(std::size_t group, const std::string& node_namespace,
                                    const std::string& node) {
  const auto [at, is_new] = nodes_.try_emplace(group);
  if (!is_new) return;
  at->second.name = node_namespace + (node_namespace.ends_with('/') ? "" : "/") + node;
  trace_.rcl_node_init(&at->second, &at->second.rmw, node.c_str(), node_namespace.c_str());
}

const DdsRuntime::Tracer::Node* DdsRuntime::Tracer::node_of(std::size_t group) const {
  const auto at = nodes_.find(group);
  return at == nodes_.end() ? nullptr : &at->second;
}

// rclcpp records the C++ name of the function; ours are a few fixed ones, so the name of the node and of the
// caller is recorded instead.
void DdsRuntime::Tracer::register_callback(const void* callback, const char* what, std::size_t group,
                                           const std::string& of) {
  const Node* const node = node_of(group);
  const std::string symbol =
      std::string("perflab::") + what + "(" + (node == nullptr ? "" : node->name + ", ") + of + ")";
  trace_.rclcpp_callback_register(callback, symbol.c_str());
}

void DdsRuntime::Tracer::made(const DdsPublisher& publisher) {
  const EndpointSettings& settings = publisher.settings();
  if (settings.kind != TopicKind::kTopic) return;
  trace_.rmw_publisher_init(publisher.rmw_handle(), gid_of(publisher.identity()).data());
  trace_.rcl_publisher_init(&publisher, node_of(settings.group), publisher.rmw_handle(),
                            settings.topic.c_str(), depth_of(settings.qos));
}

void DdsRuntime::Tracer::made(DdsSubscription& subscription) {
  const EndpointSettings& settings = subscription.settings();
  const Node* const node = node_of(settings.group);
  const void* const callback = subscription.from_middleware().callback();
  switch (settings.kind) {
    case TopicKind::kRequest:
      trace_.rcl_service_init(&subscription, node, subscription.rmw_handle(), settings.topic.c_str());
      trace_.rclcpp_service_callback_added(&subscription, callback);
      register_callback(callback, "service", settings.group, settings.topic);
      return;
    case TopicKind::kReply:
      trace_.rcl_client_init(&subscription, node, subscription.rmw_handle(), settings.topic.c_str());
      return;
    case TopicKind::kTopic:
      break;
  }
  trace_.rmw_subscription_init(subscription.rmw_handle(), gid_of(subscription.identity()).data());
  trace_.rcl_subscription_init(&subscription, node, subscription.rmw_handle(), settings.topic.c_str(),
                               depth_of(settings.qos));
  if (MessageSource* const process = subscription.from_process()) {
    const void* const ipb = &subscription.taker();
    trace_.rclcpp_construct_ring_buffer(subscription.ring(), depth_of(settings.qos));
    trace_.rclcpp_buffer_to_ipb(subscription.ring(), ipb);
    trace_.rclcpp_ipb_to_subscription(ipb, process);
    trace_.rclcpp_subscription_callback_added(process, process->callback());
    register_callback(process->callback(), "subscription", settings.group, settings.topic);
    trace_.rclcpp_subscription_init(&subscription, process);
  }
  trace_.rclcpp_subscription_init(&subscription, &subscription.from_middleware());
  trace_.rclcpp_subscription_callback_added(&subscription.from_middleware(), callback);
  register_callback(callback, "subscription", settings.group, settings.topic);
}

void DdsRuntime::Tracer::made(const DdsWaitable& waitable) {
  register_callback(waitable.callback(), "waitable", waitable.settings().group, waitable.settings().name);
}

TimerHandler& DdsRuntime::Tracer::make_timer(const TimerSettings& settings, TimerHandler& handler,
                                             TracedTimer::Phases phases) {
  timers_.push_back(std::make_unique<TracedTimer>(trace_, handler, phases));
  TracedTimer& timer = *timers_.back();
  made_timer(&timer, timer.callback(), settings.group, settings.name, settings.period_ns);
  return timer;
}

Span& DdsRuntime::Tracer::make_span(std::size_t group, const std::string& name, Nanoseconds period_ns) {
  TracedSpan& span = *spans_.emplace_back(std::make_unique<TracedSpan>(trace_, period_ns));
  if (period_ns > 0) {
    made_timer(&span, span.callback(), group, name, period_ns);
  } else {
    register_callback(span.callback(), "span", group, name);
  }
  return span;
}

void DdsRuntime::Tracer::made_timer(const void* handle, const void* callback, std::size_t group, const std::string& name,
                                    Nanoseconds period_ns) {
  trace_.rcl_timer_init(handle, period_ns);
  trace_.rclcpp_timer_callback_added(handle, callback);
  register_callback(callback, "timer", group, name);
  trace_.rclcpp_timer_link_node(handle, node_of(group));
}

}  // namespace perflab::runtime
