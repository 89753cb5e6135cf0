/* An LTTng event whose fields are its arguments, each written once: PERFLAB_EVENT2(ros2,
 * rclcpp_callback_register, (HANDLE, callback), (TEXT, symbol)) */
#ifndef PERFLAB_EVENT_MACROS_H
#define PERFLAB_EVENT_MACROS_H

#include <stddef.h>
#include <stdint.h>

#include "tracing/ros/tracepoints.h"

/* clang-format off */
#define PERFLAB_ARGUMENT_HANDLE(name) const void *, name##_value
#define PERFLAB_ARGUMENT_TEXT(name) const char *, name##_value
#define PERFLAB_ARGUMENT_GID(name) const uint8_t *, name##_value
#define PERFLAB_ARGUMENT_SIZE(name) size_t, name##_value
#define PERFLAB_ARGUMENT_INT(name) int, name##_value
#define PERFLAB_ARGUMENT_INT64(name) int64_t, name##_value
#define PERFLAB_ARGUMENT_UINT64(name) uint64_t, name##_value
#define PERFLAB_ARGUMENT(kind, name) PERFLAB_ARGUMENT_##kind(name)

#define PERFLAB_FIELD_HANDLE(name) lttng_ust_field_integer_hex(const void *, name, name##_value)
#define PERFLAB_FIELD_TEXT(name) lttng_ust_field_string(name, name##_value)
#define PERFLAB_FIELD_GID(name) lttng_ust_field_array(uint8_t, name, name##_value, PERFLAB_ROS2_GID_BYTES)
#define PERFLAB_FIELD_SIZE(name) lttng_ust_field_integer(size_t, name, name##_value)
#define PERFLAB_FIELD_INT(name) lttng_ust_field_integer(int, name, name##_value)
#define PERFLAB_FIELD_INT64(name) lttng_ust_field_integer(int64_t, name, name##_value)
#define PERFLAB_FIELD_UINT64(name) lttng_ust_field_integer(uint64_t, name, name##_value)
#define PERFLAB_FIELD(kind, name) PERFLAB_FIELD_##kind(name)

#define PERFLAB_EVENT0(provider, name) \
  LTTNG_UST_TRACEPOINT_EVENT(provider, name, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())
#define PERFLAB_EVENT1(provider, name, a) \
  LTTNG_UST_TRACEPOINT_EVENT(provider, name, LTTNG_UST_TP_ARGS(PERFLAB_ARGUMENT a), \
                             LTTNG_UST_TP_FIELDS(PERFLAB_FIELD a))
#define PERFLAB_EVENT2(provider, name, a, b) \
  LTTNG_UST_TRACEPOINT_EVENT(provider, name, LTTNG_UST_TP_ARGS(PERFLAB_ARGUMENT a, PERFLAB_ARGUMENT b), \
                             LTTNG_UST_TP_FIELDS(PERFLAB_FIELD a PERFLAB_FIELD b))
#define PERFLAB_EVENT3(provider, name, a, b, c) \
  LTTNG_UST_TRACEPOINT_EVENT(provider, name, \
                             LTTNG_UST_TP_ARGS(PERFLAB_ARGUMENT a, PERFLAB_ARGUMENT b, PERFLAB_ARGUMENT c), \
                             LTTNG_UST_TP_FIELDS(PERFLAB_FIELD a PERFLAB_FIELD b PERFLAB_FIELD c))
#define PERFLAB_EVENT4(provider, name, a, b, c, d) \
  LTTNG_UST_TRACEPOINT_EVENT( \
      provider, name, \
      LTTNG_UST_TP_ARGS(PERFLAB_ARGUMENT a, PERFLAB_ARGUMENT b, PERFLAB_ARGUMENT c, PERFLAB_ARGUMENT d), \
      LTTNG_UST_TP_FIELDS(PERFLAB_FIELD a PERFLAB_FIELD b PERFLAB_FIELD c PERFLAB_FIELD d))
#define PERFLAB_EVENT5(provider, name, a, b, c, d, e) \
  LTTNG_UST_TRACEPOINT_EVENT( \
      provider, name, \
      LTTNG_UST_TP_ARGS(PERFLAB_ARGUMENT a, PERFLAB_ARGUMENT b, PERFLAB_ARGUMENT c, PERFLAB_ARGUMENT d, \
                        PERFLAB_ARGUMENT e), \
      LTTNG_UST_TP_FIELDS(PERFLAB_FIELD a PERFLAB_FIELD b PERFLAB_FIELD c PERFLAB_FIELD d PERFLAB_FIELD e))
/* clang-format on */

#endif /* PERFLAB_EVENT_MACROS_H */
