/* The provider `ros2` as tracetools 8.2 (ROS 2 Jazzy) has it: every event with its fields, in the same order
 * and of the same types, so that whoever reads one trace reads the other. Those that perflab never emits are
 * declared all the same. LTTng includes this file several times. */
/* clang-format off */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ros2

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tracing/ros/ros2_events.h"

#if !defined(PERFLAB_ROS2_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PERFLAB_ROS2_EVENTS_H

#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

#include "tracing/ros/tracepoints.h"

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_init,
    LTTNG_UST_TP_ARGS(const void *, context_handle_value,
                      const char *, version_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, context_handle, context_handle_value)
                      lttng_ust_field_string(version, version_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_node_init,
    LTTNG_UST_TP_ARGS(const void *, node_handle_value,
                      const void *, rmw_handle_value,
                      const char *, node_name_value,
                      const char *, namespace_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, node_handle, node_handle_value)
                      lttng_ust_field_integer_hex(const void *, rmw_handle, rmw_handle_value)
                      lttng_ust_field_string(node_name, node_name_value)
                      lttng_ust_field_string(namespace, namespace_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rmw_publisher_init,
    LTTNG_UST_TP_ARGS(const void *, rmw_publisher_handle_value,
                      const uint8_t *, gid_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, rmw_publisher_handle, rmw_publisher_handle_value)
                      lttng_ust_field_array(uint8_t, gid, gid_value, PERFLAB_ROS2_GID_BYTES)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_publisher_init,
    LTTNG_UST_TP_ARGS(const void *, publisher_handle_value,
                      const void *, node_handle_value,
                      const void *, rmw_publisher_handle_value,
                      const char *, topic_name_value,
                      size_t, queue_depth_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, publisher_handle, publisher_handle_value)
                      lttng_ust_field_integer_hex(const void *, node_handle, node_handle_value)
                      lttng_ust_field_integer_hex(const void *, rmw_publisher_handle, rmw_publisher_handle_value)
                      lttng_ust_field_string(topic_name, topic_name_value)
                      lttng_ust_field_integer(size_t, queue_depth, queue_depth_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_publish,
    LTTNG_UST_TP_ARGS(const void *, message_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, message, message_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_intra_publish,
    LTTNG_UST_TP_ARGS(const void *, publisher_handle_value,
                      const void *, message_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, publisher_handle, publisher_handle_value)
                      lttng_ust_field_integer_hex(const void *, message, message_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_publish,
    LTTNG_UST_TP_ARGS(const void *, publisher_handle_value,
                      const void *, message_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, publisher_handle, publisher_handle_value)
                      lttng_ust_field_integer_hex(const void *, message, message_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rmw_publish,
    LTTNG_UST_TP_ARGS(const void *, rmw_publisher_handle_value,
                      const void *, message_value,
                      int64_t, timestamp_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, rmw_publisher_handle, rmw_publisher_handle_value)
                      lttng_ust_field_integer_hex(const void *, message, message_value)
                      lttng_ust_field_integer(int64_t, timestamp, timestamp_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rmw_subscription_init,
    LTTNG_UST_TP_ARGS(const void *, rmw_subscription_handle_value,
                      const uint8_t *, gid_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, rmw_subscription_handle, rmw_subscription_handle_value)
                      lttng_ust_field_array(uint8_t, gid, gid_value, PERFLAB_ROS2_GID_BYTES)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_subscription_init,
    LTTNG_UST_TP_ARGS(const void *, subscription_handle_value,
                      const void *, node_handle_value,
                      const void *, rmw_subscription_handle_value,
                      const char *, topic_name_value,
                      size_t, queue_depth_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, subscription_handle, subscription_handle_value)
                      lttng_ust_field_integer_hex(const void *, node_handle, node_handle_value)
                      lttng_ust_field_integer_hex(const void *, rmw_subscription_handle, rmw_subscription_handle_value)
                      lttng_ust_field_string(topic_name, topic_name_value)
                      lttng_ust_field_integer(size_t, queue_depth, queue_depth_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_subscription_init,
    LTTNG_UST_TP_ARGS(const void *, subscription_handle_value,
                      const void *, subscription_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, subscription_handle, subscription_handle_value)
                      lttng_ust_field_integer_hex(const void *, subscription, subscription_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_subscription_callback_added,
    LTTNG_UST_TP_ARGS(const void *, subscription_value,
                      const void *, callback_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, subscription, subscription_value)
                      lttng_ust_field_integer_hex(const void *, callback, callback_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rmw_take,
    LTTNG_UST_TP_ARGS(const void *, rmw_subscription_handle_value,
                      const void *, message_value,
                      int64_t, source_timestamp_value,
                      int, taken_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, rmw_subscription_handle, rmw_subscription_handle_value)
                      lttng_ust_field_integer_hex(const void *, message, message_value)
                      lttng_ust_field_integer(int64_t, source_timestamp, source_timestamp_value)
                      lttng_ust_field_integer(int, taken, taken_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_take,
    LTTNG_UST_TP_ARGS(const void *, message_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, message, message_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_take,
    LTTNG_UST_TP_ARGS(const void *, message_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, message, message_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_service_init,
    LTTNG_UST_TP_ARGS(const void *, service_handle_value,
                      const void *, node_handle_value,
                      const void *, rmw_service_handle_value,
                      const char *, service_name_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, service_handle, service_handle_value)
                      lttng_ust_field_integer_hex(const void *, node_handle, node_handle_value)
                      lttng_ust_field_integer_hex(const void *, rmw_service_handle, rmw_service_handle_value)
                      lttng_ust_field_string(service_name, service_name_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_service_callback_added,
    LTTNG_UST_TP_ARGS(const void *, service_handle_value,
                      const void *, callback_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, service_handle, service_handle_value)
                      lttng_ust_field_integer_hex(const void *, callback, callback_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_client_init,
    LTTNG_UST_TP_ARGS(const void *, client_handle_value,
                      const void *, node_handle_value,
                      const void *, rmw_client_handle_value,
                      const char *, service_name_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, client_handle, client_handle_value)
                      lttng_ust_field_integer_hex(const void *, node_handle, node_handle_value)
                      lttng_ust_field_integer_hex(const void *, rmw_client_handle, rmw_client_handle_value)
                      lttng_ust_field_string(service_name, service_name_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_timer_init,
    LTTNG_UST_TP_ARGS(const void *, timer_handle_value,
                      int64_t, period_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, timer_handle, timer_handle_value)
                      lttng_ust_field_integer(int64_t, period, period_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_timer_callback_added,
    LTTNG_UST_TP_ARGS(const void *, timer_handle_value,
                      const void *, callback_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, timer_handle, timer_handle_value)
                      lttng_ust_field_integer_hex(const void *, callback, callback_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_timer_link_node,
    LTTNG_UST_TP_ARGS(const void *, timer_handle_value,
                      const void *, node_handle_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, timer_handle, timer_handle_value)
                      lttng_ust_field_integer_hex(const void *, node_handle, node_handle_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_callback_register,
    LTTNG_UST_TP_ARGS(const void *, callback_value,
                      const char *, symbol_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, callback, callback_value)
                      lttng_ust_field_string(symbol, symbol_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, callback_start,
    LTTNG_UST_TP_ARGS(const void *, callback_value,
                      int, is_intra_process_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, callback, callback_value)
                      lttng_ust_field_integer(int, is_intra_process, is_intra_process_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, callback_end,
    LTTNG_UST_TP_ARGS(const void *, callback_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, callback, callback_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_lifecycle_state_machine_init,
    LTTNG_UST_TP_ARGS(const void *, node_handle_value,
                      const void *, state_machine_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, node_handle, node_handle_value)
                      lttng_ust_field_integer_hex(const void *, state_machine, state_machine_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rcl_lifecycle_transition,
    LTTNG_UST_TP_ARGS(const void *, state_machine_value,
                      const char *, start_label_value,
                      const char *, goal_label_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, state_machine, state_machine_value)
                      lttng_ust_field_string(start_label, start_label_value)
                      lttng_ust_field_string(goal_label, goal_label_value)))

LTTNG_UST_TRACEPOINT_EVENT(ros2, rclcpp_executor_get_next_ready, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_executor_wait_for_work,
    LTTNG_UST_TP_ARGS(int64_t, timeout_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer(int64_t, timeout, timeout_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_executor_execute,
    LTTNG_UST_TP_ARGS(const void *, handle_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, handle, handle_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_ipb_to_subscription,
    LTTNG_UST_TP_ARGS(const void *, ipb_value,
                      const void *, subscription_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, ipb, ipb_value)
                      lttng_ust_field_integer_hex(const void *, subscription, subscription_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_buffer_to_ipb,
    LTTNG_UST_TP_ARGS(const void *, buffer_value,
                      const void *, ipb_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, buffer, buffer_value)
                      lttng_ust_field_integer_hex(const void *, ipb, ipb_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_construct_ring_buffer,
    LTTNG_UST_TP_ARGS(const void *, buffer_value,
                      uint64_t, capacity_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, buffer, buffer_value)
                      lttng_ust_field_integer(uint64_t, capacity, capacity_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_ring_buffer_enqueue,
    LTTNG_UST_TP_ARGS(const void *, buffer_value,
                      uint64_t, index_value,
                      uint64_t, size_value,
                      int, overwritten_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, buffer, buffer_value)
                      lttng_ust_field_integer(uint64_t, index, index_value)
                      lttng_ust_field_integer(uint64_t, size, size_value)
                      lttng_ust_field_integer(int, overwritten, overwritten_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_ring_buffer_dequeue,
    LTTNG_UST_TP_ARGS(const void *, buffer_value,
                      uint64_t, index_value,
                      uint64_t, size_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, buffer, buffer_value)
                      lttng_ust_field_integer(uint64_t, index, index_value)
                      lttng_ust_field_integer(uint64_t, size, size_value)))

LTTNG_UST_TRACEPOINT_EVENT(
    ros2, rclcpp_ring_buffer_clear,
    LTTNG_UST_TP_ARGS(const void *, buffer_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, buffer, buffer_value)))

#endif

#include <lttng/tracepoint-event.h>
