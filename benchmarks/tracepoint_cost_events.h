/* Bare tracepoints with the fields of the ones that tracepoint_cost.c sets them beside. */
/* clang-format off */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tracepoint_cost

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "tracepoint_cost_events.h"

#if !defined(PERFLAB_TRACEPOINT_COST_EVENTS_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PERFLAB_TRACEPOINT_COST_EVENTS_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(tracepoint_cost, bytes_0, LTTNG_UST_TP_ARGS(), LTTNG_UST_TP_FIELDS())

LTTNG_UST_TRACEPOINT_EVENT(
    tracepoint_cost, bytes_8, LTTNG_UST_TP_ARGS(const void *, a),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, first, a)))

LTTNG_UST_TRACEPOINT_EVENT(
    tracepoint_cost, bytes_12, LTTNG_UST_TP_ARGS(const void *, a, int, b),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, first, a) lttng_ust_field_integer(int, second, b)))

LTTNG_UST_TRACEPOINT_EVENT(
    tracepoint_cost, bytes_24, LTTNG_UST_TP_ARGS(const void *, a, const void *, b, int64_t, c),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, first, a)
                        lttng_ust_field_integer_hex(const void *, second, b)
                        lttng_ust_field_integer(int64_t, third, c)))

LTTNG_UST_TRACEPOINT_EVENT(
    tracepoint_cost, bytes_28, LTTNG_UST_TP_ARGS(const void *, a, const void *, b, int64_t, c, int, d),
    LTTNG_UST_TP_FIELDS(lttng_ust_field_integer_hex(const void *, first, a)
                        lttng_ust_field_integer_hex(const void *, second, b)
                        lttng_ust_field_integer(int64_t, third, c)
                        lttng_ust_field_integer(int, fourth, d)))

#endif

#include <lttng/tracepoint-event.h>
