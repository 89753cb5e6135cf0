/* The provider `perflab`: what ROS 2 has no tracepoint for. LTTng includes this file several times. */
/* clang-format off */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER perflab

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tracing/ros/perflab_events.h"

#if !defined(PERFLAB_PERFLAB_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PERFLAB_PERFLAB_EVENTS_H

#include <lttng/tracepoint.h>
#include <stddef.h>
#include <stdint.h>

#include "tracing/ros/tracepoints.h"

LTTNG_UST_TRACEPOINT_EVENT(
    perflab, timer_due,
    LTTNG_UST_TP_ARGS(const void *, timer_handle_value,
                      int64_t, due_ns_value),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, timer_handle, timer_handle_value)
                      lttng_ust_field_integer(int64_t, due_ns, due_ns_value)))

#endif

#include <lttng/tracepoint-event.h>
