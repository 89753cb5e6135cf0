/* The provider `ros2` of tracetools 8.2 (ROS 2 Jazzy), with requests and responses of 8.5 (Kilted): every
 * event with its fields, in the same order and with the same types, so that one reader handles both.
 * Events that perflab never emits are declared nevertheless. LTTng includes this file several times. */
/* clang-format off */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER ros2

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tracing/ros/ros2_events.h"

#if !defined(PERFLAB_ROS2_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PERFLAB_ROS2_EVENTS_H

#include <lttng/tracepoint.h>

#include "tracing/ros/event_macros.h"

PERFLAB_EVENT2(ros2, rcl_init, (HANDLE, context_handle), (TEXT, version))
PERFLAB_EVENT4(ros2, rcl_node_init, (HANDLE, node_handle), (HANDLE, rmw_handle), (TEXT, node_name),
               (TEXT, namespace))
PERFLAB_EVENT2(ros2, rmw_publisher_init, (HANDLE, rmw_publisher_handle), (GID, gid))
PERFLAB_EVENT5(ros2, rcl_publisher_init, (HANDLE, publisher_handle), (HANDLE, node_handle),
               (HANDLE, rmw_publisher_handle), (TEXT, topic_name), (SIZE, queue_depth))
PERFLAB_EVENT1(ros2, rclcpp_publish, (HANDLE, message))
PERFLAB_EVENT2(ros2, rclcpp_intra_publish, (HANDLE, publisher_handle), (HANDLE, message))
PERFLAB_EVENT2(ros2, rcl_publish, (HANDLE, publisher_handle), (HANDLE, message))
PERFLAB_EVENT3(ros2, rmw_publish, (HANDLE, rmw_publisher_handle), (HANDLE, message), (INT64, timestamp))
PERFLAB_EVENT2(ros2, rmw_subscription_init, (HANDLE, rmw_subscription_handle), (GID, gid))
PERFLAB_EVENT5(ros2, rcl_subscription_init, (HANDLE, subscription_handle), (HANDLE, node_handle),
               (HANDLE, rmw_subscription_handle), (TEXT, topic_name), (SIZE, queue_depth))
PERFLAB_EVENT2(ros2, rclcpp_subscription_init, (HANDLE, subscription_handle), (HANDLE, subscription))
PERFLAB_EVENT2(ros2, rclcpp_subscription_callback_added, (HANDLE, subscription), (HANDLE, callback))
PERFLAB_EVENT4(ros2, rmw_take, (HANDLE, rmw_subscription_handle), (HANDLE, message),
               (INT64, source_timestamp), (INT, taken))
PERFLAB_EVENT1(ros2, rcl_take, (HANDLE, message))
PERFLAB_EVENT1(ros2, rclcpp_take, (HANDLE, message))
PERFLAB_EVENT4(ros2, rcl_service_init, (HANDLE, service_handle), (HANDLE, node_handle),
               (HANDLE, rmw_service_handle), (TEXT, service_name))
PERFLAB_EVENT2(ros2, rclcpp_service_callback_added, (HANDLE, service_handle), (HANDLE, callback))
PERFLAB_EVENT4(ros2, rcl_client_init, (HANDLE, client_handle), (HANDLE, node_handle),
               (HANDLE, rmw_client_handle), (TEXT, service_name))
PERFLAB_EVENT2(ros2, rmw_client_init, (HANDLE, rmw_client_handle), (GID, gid))
PERFLAB_EVENT3(ros2, rmw_send_request, (HANDLE, rmw_client_handle), (HANDLE, request), (INT64, sequence_number))
PERFLAB_EVENT5(ros2, rmw_take_request, (HANDLE, rmw_service_handle), (HANDLE, request), (GID, client_gid),
               (INT64, sequence_number), (INT, taken))
PERFLAB_EVENT5(ros2, rmw_send_response, (HANDLE, rmw_service_handle), (HANDLE, response), (GID, client_gid),
               (INT64, sequence_number), (INT64, timestamp))
PERFLAB_EVENT5(ros2, rmw_take_response, (HANDLE, rmw_client_handle), (HANDLE, response), (INT64, sequence_number),
               (INT64, source_timestamp), (INT, taken))
PERFLAB_EVENT2(ros2, rcl_timer_init, (HANDLE, timer_handle), (INT64, period))
PERFLAB_EVENT2(ros2, rclcpp_timer_callback_added, (HANDLE, timer_handle), (HANDLE, callback))
PERFLAB_EVENT2(ros2, rclcpp_timer_link_node, (HANDLE, timer_handle), (HANDLE, node_handle))
PERFLAB_EVENT2(ros2, rclcpp_callback_register, (HANDLE, callback), (TEXT, symbol))
PERFLAB_EVENT2(ros2, callback_start, (HANDLE, callback), (INT, is_intra_process))
PERFLAB_EVENT1(ros2, callback_end, (HANDLE, callback))
PERFLAB_EVENT2(ros2, rcl_lifecycle_state_machine_init, (HANDLE, node_handle), (HANDLE, state_machine))
PERFLAB_EVENT3(ros2, rcl_lifecycle_transition, (HANDLE, state_machine), (TEXT, start_label),
               (TEXT, goal_label))
PERFLAB_EVENT0(ros2, rclcpp_executor_get_next_ready)
PERFLAB_EVENT1(ros2, rclcpp_executor_wait_for_work, (INT64, timeout))
PERFLAB_EVENT1(ros2, rclcpp_executor_execute, (HANDLE, handle))
PERFLAB_EVENT2(ros2, rclcpp_ipb_to_subscription, (HANDLE, ipb), (HANDLE, subscription))
PERFLAB_EVENT2(ros2, rclcpp_buffer_to_ipb, (HANDLE, buffer), (HANDLE, ipb))
PERFLAB_EVENT2(ros2, rclcpp_construct_ring_buffer, (HANDLE, buffer), (UINT64, capacity))
PERFLAB_EVENT4(ros2, rclcpp_ring_buffer_enqueue, (HANDLE, buffer), (UINT64, index), (UINT64, size),
               (INT, overwritten))
PERFLAB_EVENT3(ros2, rclcpp_ring_buffer_dequeue, (HANDLE, buffer), (UINT64, index), (UINT64, size))
PERFLAB_EVENT1(ros2, rclcpp_ring_buffer_clear, (HANDLE, buffer))

#endif

#include <lttng/tracepoint-event.h>
