/* The provider `perflab`: events for which ROS 2 has no tracepoint. LTTng includes this file several
 * times. */
/* clang-format off */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER perflab

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tracing/ros/perflab_events.h"

#if !defined(PERFLAB_PERFLAB_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PERFLAB_PERFLAB_EVENTS_H

#include <lttng/tracepoint.h>

#include "tracing/ros/event_macros.h"

PERFLAB_EVENT2(perflab, timer_due, (HANDLE, timer_handle), (INT64, due_ns))

#endif

#include <lttng/tracepoint-event.h>
