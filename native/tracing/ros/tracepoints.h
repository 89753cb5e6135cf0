/* The tracepoints of ROS 2 as functions that may be there: a versioned struct of function pointers.
 *
 * The runtime calls them where rclcpp, rcl and rmw have theirs. The functions live in a library that is
 * loaded on request (libperflab_ros2_tracepoints.so, with LTTng-UST behind it); a program that does not load
 * it has a null pointer instead of this struct and nothing of a tracer in its memory.
 *
 * Events, names of fields and types are those of tracetools 8.2 (ROS 2 Jazzy), and of 8.5 (Kilted) those of requests
 * and responses; provider.cpp says so to LTTng.
 * A handle is an address that nothing else of its layer has in this process, for as long as the process
 * lives.
 *
 * Threads: any function from any thread. None of them allocates, locks or fails.
 *
 * Example:
 *   const perflab_ros2_tracepoints* trace = ...;  // or NULL
 *   if (trace != NULL) trace->callback_start(callback, 0);
 */
#ifndef PERFLAB_ROS2_TRACEPOINTS_H
#define PERFLAB_ROS2_TRACEPOINTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Raised by one whenever a library built against an older header would misbehave. */
#define PERFLAB_ROS2_TRACEPOINTS_ABI 3u

/* Size of an endpoint's gid; the last bytes are 0 if the middleware's identity is shorter. */
#define PERFLAB_ROS2_GID_BYTES 24

/* The version reported by rcl_init: it identifies the set of events and perflab as their source. */
#define PERFLAB_ROS2_TRACETOOLS_VERSION "8.5.0+perflab"

typedef struct perflab_ros2_tracepoints {
  uint32_t abi; /* PERFLAB_ROS2_TRACEPOINTS_ABI at compile time */

  /* True if a session records the events now, i.e. ros2:rcl_init, the first event of a process. */
  int (*recorded)(void);

  /* Initialisation */
  void (*rcl_init)(const void* context_handle, const char* version);
  void (*rcl_node_init)(const void* node_handle, const void* rmw_handle, const char* node_name,
                        const char* name_space);
  void (*rmw_publisher_init)(const void* rmw_publisher_handle, const uint8_t* gid);
  void (*rcl_publisher_init)(const void* publisher_handle, const void* node_handle,
                             const void* rmw_publisher_handle, const char* topic_name, size_t queue_depth);
  void (*rmw_subscription_init)(const void* rmw_subscription_handle, const uint8_t* gid);
  void (*rcl_subscription_init)(const void* subscription_handle, const void* node_handle,
                                const void* rmw_subscription_handle, const char* topic_name,
                                size_t queue_depth);
  void (*rclcpp_subscription_init)(const void* subscription_handle, const void* subscription);
  void (*rclcpp_subscription_callback_added)(const void* subscription, const void* callback);
  void (*rcl_service_init)(const void* service_handle, const void* node_handle,
                           const void* rmw_service_handle, const char* service_name);
  void (*rclcpp_service_callback_added)(const void* service_handle, const void* callback);
  void (*rcl_client_init)(const void* client_handle, const void* node_handle, const void* rmw_client_handle,
                          const char* service_name);
  void (*rmw_client_init)(const void* rmw_client_handle, const uint8_t* gid);
  void (*rcl_timer_init)(const void* timer_handle, int64_t period_ns);
  void (*rclcpp_timer_callback_added)(const void* timer_handle, const void* callback);
  void (*rclcpp_timer_link_node)(const void* timer_handle, const void* node_handle);
  void (*rclcpp_callback_register)(const void* callback, const char* symbol);
  void (*rclcpp_construct_ring_buffer)(const void* buffer, uint64_t capacity);
  void (*rclcpp_buffer_to_ipb)(const void* buffer, const void* ipb);
  void (*rclcpp_ipb_to_subscription)(const void* ipb, const void* subscription);

  /* Run time */
  void (*rclcpp_publish)(const void* message);
  void (*rclcpp_intra_publish)(const void* publisher_handle, const void* message);
  void (*rcl_publish)(const void* publisher_handle, const void* message);
  void (*rmw_publish)(const void* rmw_publisher_handle, const void* message, int64_t timestamp_ns);
  void (*rmw_take)(const void* rmw_subscription_handle, const void* message, int64_t source_timestamp_ns,
                   int taken);
  void (*rcl_take)(const void* message);
  void (*rclcpp_take)(const void* message);
  /* A request and its response, identified by the client's gid and the request's number. */
  void (*rmw_send_request)(const void* rmw_client_handle, const void* request, int64_t sequence_number);
  void (*rmw_take_request)(const void* rmw_service_handle, const void* request, const uint8_t* client_gid,
                           int64_t sequence_number, int taken);
  void (*rmw_send_response)(const void* rmw_service_handle, const void* response, const uint8_t* client_gid,
                            int64_t sequence_number, int64_t timestamp_ns);
  void (*rmw_take_response)(const void* rmw_client_handle, const void* response, int64_t sequence_number,
                            int64_t source_timestamp_ns, int taken);
  void (*callback_start)(const void* callback, int is_intra_process);
  void (*callback_end)(const void* callback);
  void (*rclcpp_executor_get_next_ready)(void);
  void (*rclcpp_executor_wait_for_work)(int64_t timeout_ns); /* -1: no limit */
  void (*rclcpp_executor_execute)(const void* handle);
  void (*rclcpp_ring_buffer_enqueue)(const void* buffer, uint64_t index, uint64_t size, int overwritten);
  void (*rclcpp_ring_buffer_dequeue)(const void* buffer, uint64_t index, uint64_t size);

  /* perflab's own event, right before the callback_start of a timer: when the tick was due. */
  void (*timer_due)(const void* timer_handle, int64_t due_ns);
} perflab_ros2_tracepoints;

/* The only symbol that the library exports for this purpose (name below); returns static storage. */
typedef const perflab_ros2_tracepoints* (*perflab_ros2_tracepoints_entry)(void);
#define PERFLAB_ROS2_TRACEPOINTS_ENTRY_NAME "perflab_ros2_tracepoints_library"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PERFLAB_ROS2_TRACEPOINTS_H */
