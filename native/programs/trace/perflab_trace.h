// The trace reader for programs in other languages: libperflab_trace.so.
//
// Functions that can fail write one line (NUL-terminated, UTF-8, cut to size) to `error`. Tables are Arrow C
// streams (https://arrow.apache.org/docs/format/CStreamInterface.html); what they hand out stays valid when
// the trace is closed. One trace may be used by several threads at a time, except for closing it.
//
// Example:
//   char error[1024];
//   const char* paths[] = {"traces/session"};
//   perflab_trace* trace = perflab_trace_open(paths, 1, 0, NULL, 0, error, sizeof error);
//   struct ArrowArrayStream takes;
//   if (trace != NULL && perflab_trace_table(trace, "takes", &takes, error, sizeof error) == 0) { ...;
//   takes.release(&takes); } perflab_trace_close(trace);
#ifndef PERFLAB_TRACE_H
#define PERFLAB_TRACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PERFLAB_TRACE_EXPORT __attribute__((visibility("default")))

struct ArrowArrayStream;
typedef struct perflab_trace perflab_trace;

// Reads the traces in these directories. `threads`: how many decode, 0 is one per CPU. `columns`: which will be read of the
// tables of what happened (callback_instances, publications, takes, intra_deliveries, phases), "takes.match", or "takes.rmw_ns?"
// where nothing but which rows are null will be asked for (perflab_trace_count); NULL: all of them. A table has those that nobody wants only where they are needed all the same; the other tables are always whole.
// NULL on failure.
PERFLAB_TRACE_EXPORT perflab_trace* perflab_trace_open(const char* const* paths, size_t count,
                                                       unsigned threads, const char* const* columns,
                                                       size_t column_count, char* error, size_t error_size);

// NULL is allowed.
PERFLAB_TRACE_EXPORT void perflab_trace_close(perflab_trace* trace);

// Facts about the traces, as JSON; valid as long as the trace.
PERFLAB_TRACE_EXPORT const char* perflab_trace_facts(const perflab_trace* trace);

// The table of that name (native/traceview/tables.h), without copying. Returns 0, or -1 with an error line.
PERFLAB_TRACE_EXPORT int perflab_trace_table(perflab_trace* trace, const char* name,
                                             struct ArrowArrayStream* out, char* error, size_t error_size);

// The table of that name as JSON: for each column that is kept its name and the list of its values. For tables of few rows:
// it lives as long as the trace. NULL and an error line where there is no such table.
PERFLAB_TRACE_EXPORT const char* perflab_trace_rows(perflab_trace* trace, const char* name, char* error,
                                                    size_t error_size);

// How many rows of a table are alike, as JSON: a list of groups, each [values of `by`..., rows, `counted`..., `least`...];
// lives as long as the trace. `question` is JSON: {"table": "takes"} and, as wanted,
//   by        columns with rows of other tables, or names; without them there is one group
//   counted   lists of columns: in how many rows none of these is null
//   least     columns of instants: the earliest; null where there is none
//   instants, begin_ns, end_ns   only rows of which the earliest of these columns lies in [begin_ns, end_ns)
// NULL and an error line where that cannot be told.
PERFLAB_TRACE_EXPORT const char* perflab_trace_count(perflab_trace* trace, const char* question, char* error,
                                                     size_t error_size);

// How `n` stretches of time were spent, one row each: on_cpu_ns, preempted_ns, blocked_ns, wake_up_ns
// (int64), migrations (uint32); all null where that is not known. For the rest of the stretch the thread was stopped, by
// a signal or a debugger. `threads` has rows of the table of threads;
// a row that is not there (-1, say) and an end before its begin are not known. 0, or -1 and an error line.
PERFLAB_TRACE_EXPORT int perflab_trace_split(perflab_trace* trace, const int32_t* threads,
                                             const int64_t* begins, const int64_t* ends, size_t n,
                                             struct ArrowArrayStream* out, char* error, size_t error_size);

// Who held the CPUs that these intervals waited for: interval (uint32, index of the interval), state, cpu,
// holder (row of threads), held_ns. Unknown intervals have no rows. Returns 0, or -1 with an error line.
PERFLAB_TRACE_EXPORT int perflab_trace_holds(perflab_trace* trace, const int32_t* threads,
                                             const int64_t* begins, const int64_t* ends, size_t n,
                                             struct ArrowArrayStream* out, char* error, size_t error_size);

// Writes the trace, which was opened for all columns, to the file at `path`, which it replaces, as `format`: "perfetto" or "folded". `options`: a JSON object of
// what only the caller knows, all of it optional; names are by row of their tables.
//   begin_ns, end_ns, epoch_offset_ns               of the trace, as in its facts
//   processes, threads, callbacks, publishers, subscriptions, functions   what they are called
//   quality                                          sentences about the trace as a whole
//   marks       [[time_ns, text], ...]               what to know at an instant
//   losses      [{begin_ns, end_ns, track, text}]    events that are missing; the first two may be null
//   gaps        [[begin_ns, end_ns], ...]            in which events of user space may be missing; ascending, disjoint
//   not_taken   [[publication, subscription], ...]   rows
//   wall                                             folded: wall time instead of time on a CPU
// What was written and left out goes to `counts` as a JSON object of numbers. 0, or -1 and an error line; what the file holds
// then is of no use.
PERFLAB_TRACE_EXPORT int perflab_trace_export(perflab_trace* trace, const char* format, const char* path,
                                              const char* options, char* counts, size_t counts_size,
                                              char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
