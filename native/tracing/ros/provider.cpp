// Passes events to LTTng-UST: the functions of tracepoints.h, each of them a tracepoint of the provider
// `ros2` (or `perflab`) with the same arguments.
//
// Everything here runs in the emitting thread; LTTng copies the fields into the buffer of the CPU and
// returns.
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE

#include "tracing/ros/perflab_events.h"
#include "tracing/ros/ros2_events.h"
#include "tracing/ros/tracepoints.h"

namespace {

#define EMIT(provider, name) [](auto... values) { lttng_ust_tracepoint(provider, name, values...); }

constexpr perflab_ros2_tracepoints kTracepoints = {
    .abi = PERFLAB_ROS2_TRACEPOINTS_ABI,
    .recorded = [] { return lttng_ust_tracepoint_enabled(ros2, rcl_init) ? 1 : 0; },
    .rcl_init = EMIT(ros2, rcl_init),
    .rcl_node_init = EMIT(ros2, rcl_node_init),
    .rmw_publisher_init = EMIT(ros2, rmw_publisher_init),
    .rcl_publisher_init = EMIT(ros2, rcl_publisher_init),
    .rmw_subscription_init = EMIT(ros2, rmw_subscription_init),
    .rcl_subscription_init = EMIT(ros2, rcl_subscription_init),
    .rclcpp_subscription_init = EMIT(ros2, rclcpp_subscription_init),
    .rclcpp_subscription_callback_added = EMIT(ros2, rclcpp_subscription_callback_added),
    .rcl_service_init = EMIT(ros2, rcl_service_init),
    .rclcpp_service_callback_added = EMIT(ros2, rclcpp_service_callback_added),
    .rcl_client_init = EMIT(ros2, rcl_client_init),
    .rmw_client_init = EMIT(ros2, rmw_client_init),
    .rcl_timer_init = EMIT(ros2, rcl_timer_init),
    .rclcpp_timer_callback_added = EMIT(ros2, rclcpp_timer_callback_added),
    .rclcpp_timer_link_node = EMIT(ros2, rclcpp_timer_link_node),
    .rclcpp_callback_register = EMIT(ros2, rclcpp_callback_register),
    .rclcpp_construct_ring_buffer = EMIT(ros2, rclcpp_construct_ring_buffer),
    .rclcpp_buffer_to_ipb = EMIT(ros2, rclcpp_buffer_to_ipb),
    .rclcpp_ipb_to_subscription = EMIT(ros2, rclcpp_ipb_to_subscription),
    .rclcpp_publish = EMIT(ros2, rclcpp_publish),
    .rclcpp_intra_publish = EMIT(ros2, rclcpp_intra_publish),
    .rcl_publish = EMIT(ros2, rcl_publish),
    .rmw_publish = EMIT(ros2, rmw_publish),
    .rmw_take = EMIT(ros2, rmw_take),
    .rcl_take = EMIT(ros2, rcl_take),
    .rclcpp_take = EMIT(ros2, rclcpp_take),
    .rmw_send_request = EMIT(ros2, rmw_send_request),
    .rmw_take_request = EMIT(ros2, rmw_take_request),
    .rmw_send_response = EMIT(ros2, rmw_send_response),
    .rmw_take_response = EMIT(ros2, rmw_take_response),
    .callback_start = EMIT(ros2, callback_start),
    .callback_end = EMIT(ros2, callback_end),
    .rclcpp_executor_get_next_ready = EMIT(ros2, rclcpp_executor_get_next_ready),
    .rclcpp_executor_wait_for_work = EMIT(ros2, rclcpp_executor_wait_for_work),
    .rclcpp_executor_execute = EMIT(ros2, rclcpp_executor_execute),
    .rclcpp_ring_buffer_enqueue = EMIT(ros2, rclcpp_ring_buffer_enqueue),
    .rclcpp_ring_buffer_dequeue = EMIT(ros2, rclcpp_ring_buffer_dequeue),
    .timer_due = EMIT(perflab, timer_due),
};

}  // namespace

extern "C" __attribute__((visibility("default"))) const perflab_ros2_tracepoints*
perflab_ros2_tracepoints_library() {
  return &kTracepoints;
}
