/* Tells LTTng-UST what happens: the functions of tracepoints.h, each a tracepoint of the provider `ros2` (or
 * `perflab`).
 *
 * Everything here runs in the thread that emits; LTTng copies the fields into the buffer of the CPU and
 * returns. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE

#include "tracing/ros/perflab_events.h"
#include "tracing/ros/ros2_events.h"
#include "tracing/ros/tracepoints.h"

static int recorded(void) { return lttng_ust_tracepoint_enabled(ros2, rcl_init) ? 1 : 0; }

static void rcl_init(const void* context_handle, const char* version) {
  lttng_ust_tracepoint(ros2, rcl_init, context_handle, version);
}

static void rcl_node_init(const void* node_handle, const void* rmw_handle, const char* node_name,
                          const char* name_space) {
  lttng_ust_tracepoint(ros2, rcl_node_init, node_handle, rmw_handle, node_name, name_space);
}

static void rmw_publisher_init(const void* rmw_publisher_handle, const uint8_t* gid) {
  lttng_ust_tracepoint(ros2, rmw_publisher_init, rmw_publisher_handle, gid);
}

static void rcl_publisher_init(const void* publisher_handle, const void* node_handle,
                               const void* rmw_publisher_handle, const char* topic_name, size_t queue_depth) {
  lttng_ust_tracepoint(ros2, rcl_publisher_init, publisher_handle, node_handle, rmw_publisher_handle,
                       topic_name, queue_depth);
}

static void rmw_subscription_init(const void* rmw_subscription_handle, const uint8_t* gid) {
  lttng_ust_tracepoint(ros2, rmw_subscription_init, rmw_subscription_handle, gid);
}

static void rcl_subscription_init(const void* subscription_handle, const void* node_handle,
                                  const void* rmw_subscription_handle, const char* topic_name,
                                  size_t queue_depth) {
  lttng_ust_tracepoint(ros2, rcl_subscription_init, subscription_handle, node_handle, rmw_subscription_handle,
                       topic_name, queue_depth);
}

static void rclcpp_subscription_init(const void* subscription_handle, const void* subscription) {
  lttng_ust_tracepoint(ros2, rclcpp_subscription_init, subscription_handle, subscription);
}

static void rclcpp_subscription_callback_added(const void* subscription, const void* callback) {
  lttng_ust_tracepoint(ros2, rclcpp_subscription_callback_added, subscription, callback);
}

static void rcl_service_init(const void* service_handle, const void* node_handle,
                             const void* rmw_service_handle, const char* service_name) {
  lttng_ust_tracepoint(ros2, rcl_service_init, service_handle, node_handle, rmw_service_handle, service_name);
}

static void rclcpp_service_callback_added(const void* service_handle, const void* callback) {
  lttng_ust_tracepoint(ros2, rclcpp_service_callback_added, service_handle, callback);
}

static void rcl_client_init(const void* client_handle, const void* node_handle, const void* rmw_client_handle,
                            const char* service_name) {
  lttng_ust_tracepoint(ros2, rcl_client_init, client_handle, node_handle, rmw_client_handle, service_name);
}

static void rcl_timer_init(const void* timer_handle, int64_t period) {
  lttng_ust_tracepoint(ros2, rcl_timer_init, timer_handle, period);
}

static void rclcpp_timer_callback_added(const void* timer_handle, const void* callback) {
  lttng_ust_tracepoint(ros2, rclcpp_timer_callback_added, timer_handle, callback);
}

static void rclcpp_timer_link_node(const void* timer_handle, const void* node_handle) {
  lttng_ust_tracepoint(ros2, rclcpp_timer_link_node, timer_handle, node_handle);
}

static void rclcpp_callback_register(const void* callback, const char* symbol) {
  lttng_ust_tracepoint(ros2, rclcpp_callback_register, callback, symbol);
}

static void rclcpp_construct_ring_buffer(const void* buffer, uint64_t capacity) {
  lttng_ust_tracepoint(ros2, rclcpp_construct_ring_buffer, buffer, capacity);
}

static void rclcpp_buffer_to_ipb(const void* buffer, const void* ipb) {
  lttng_ust_tracepoint(ros2, rclcpp_buffer_to_ipb, buffer, ipb);
}

static void rclcpp_ipb_to_subscription(const void* ipb, const void* subscription) {
  lttng_ust_tracepoint(ros2, rclcpp_ipb_to_subscription, ipb, subscription);
}

static void rclcpp_publish(const void* message) { lttng_ust_tracepoint(ros2, rclcpp_publish, message); }

static void rclcpp_intra_publish(const void* publisher_handle, const void* message) {
  lttng_ust_tracepoint(ros2, rclcpp_intra_publish, publisher_handle, message);
}

static void rcl_publish(const void* publisher_handle, const void* message) {
  lttng_ust_tracepoint(ros2, rcl_publish, publisher_handle, message);
}

static void rmw_publish(const void* rmw_publisher_handle, const void* message, int64_t timestamp) {
  lttng_ust_tracepoint(ros2, rmw_publish, rmw_publisher_handle, message, timestamp);
}

static void rmw_take(const void* rmw_subscription_handle, const void* message, int64_t source_timestamp,
                     int taken) {
  lttng_ust_tracepoint(ros2, rmw_take, rmw_subscription_handle, message, source_timestamp, taken);
}

static void rcl_take(const void* message) { lttng_ust_tracepoint(ros2, rcl_take, message); }

static void rclcpp_take(const void* message) { lttng_ust_tracepoint(ros2, rclcpp_take, message); }

static void callback_start(const void* callback, int is_intra_process) {
  lttng_ust_tracepoint(ros2, callback_start, callback, is_intra_process);
}

static void callback_end(const void* callback) { lttng_ust_tracepoint(ros2, callback_end, callback); }

static void rclcpp_executor_get_next_ready(void) {
  lttng_ust_tracepoint(ros2, rclcpp_executor_get_next_ready);
}

static void rclcpp_executor_wait_for_work(int64_t timeout) {
  lttng_ust_tracepoint(ros2, rclcpp_executor_wait_for_work, timeout);
}

static void rclcpp_executor_execute(const void* handle) {
  lttng_ust_tracepoint(ros2, rclcpp_executor_execute, handle);
}

static void rclcpp_ring_buffer_enqueue(const void* buffer, uint64_t index, uint64_t size, int overwritten) {
  lttng_ust_tracepoint(ros2, rclcpp_ring_buffer_enqueue, buffer, index, size, overwritten);
}

static void rclcpp_ring_buffer_dequeue(const void* buffer, uint64_t index, uint64_t size) {
  lttng_ust_tracepoint(ros2, rclcpp_ring_buffer_dequeue, buffer, index, size);
}

static void timer_due(const void* timer_handle, int64_t due_ns) {
  lttng_ust_tracepoint(perflab, timer_due, timer_handle, due_ns);
}

static const perflab_ros2_tracepoints kTracepoints = {
    .abi = PERFLAB_ROS2_TRACEPOINTS_ABI,
    .recorded = recorded,
    .rcl_init = rcl_init,
    .rcl_node_init = rcl_node_init,
    .rmw_publisher_init = rmw_publisher_init,
    .rcl_publisher_init = rcl_publisher_init,
    .rmw_subscription_init = rmw_subscription_init,
    .rcl_subscription_init = rcl_subscription_init,
    .rclcpp_subscription_init = rclcpp_subscription_init,
    .rclcpp_subscription_callback_added = rclcpp_subscription_callback_added,
    .rcl_service_init = rcl_service_init,
    .rclcpp_service_callback_added = rclcpp_service_callback_added,
    .rcl_client_init = rcl_client_init,
    .rcl_timer_init = rcl_timer_init,
    .rclcpp_timer_callback_added = rclcpp_timer_callback_added,
    .rclcpp_timer_link_node = rclcpp_timer_link_node,
    .rclcpp_callback_register = rclcpp_callback_register,
    .rclcpp_construct_ring_buffer = rclcpp_construct_ring_buffer,
    .rclcpp_buffer_to_ipb = rclcpp_buffer_to_ipb,
    .rclcpp_ipb_to_subscription = rclcpp_ipb_to_subscription,
    .rclcpp_publish = rclcpp_publish,
    .rclcpp_intra_publish = rclcpp_intra_publish,
    .rcl_publish = rcl_publish,
    .rmw_publish = rmw_publish,
    .rmw_take = rmw_take,
    .rcl_take = rcl_take,
    .rclcpp_take = rclcpp_take,
    .callback_start = callback_start,
    .callback_end = callback_end,
    .rclcpp_executor_get_next_ready = rclcpp_executor_get_next_ready,
    .rclcpp_executor_wait_for_work = rclcpp_executor_wait_for_work,
    .rclcpp_executor_execute = rclcpp_executor_execute,
    .rclcpp_ring_buffer_enqueue = rclcpp_ring_buffer_enqueue,
    .rclcpp_ring_buffer_dequeue = rclcpp_ring_buffer_dequeue,
    .timer_due = timer_due,
};

const perflab_ros2_tracepoints* perflab_ros2_tracepoints_library(void);

__attribute__((visibility("default"))) const perflab_ros2_tracepoints* perflab_ros2_tracepoints_library(
    void) {
  return &kTracepoints;
}
