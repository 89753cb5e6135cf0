// C API of the trace reader for programs in any language: libperflab_trace.so.
//
// Functions that can fail write a message of one line (NUL-terminated, UTF-8, truncated to size) to `error`. Tables are
// Arrow C streams (https://arrow.apache.org/docs/format/CStreamInterface.html); their data stays valid after the trace is
// closed. Several threads may use a trace at the same time; no thread may use it while it is being closed.
//
// Example:
//   char error[1024];
//   const char* paths[] = {"traces/session"};
//   perflab_trace* trace = perflab_trace_open(paths, 1, 0, NULL, 0, error, sizeof error);
//   struct ArrowArrayStream takes;
//   if (trace != NULL && perflab_trace_table(trace, "takes", &takes, error, sizeof error) == 0) {
//     ...
//     takes.release(&takes);
//   }
//   perflab_trace_close(trace);
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

// Reads the traces in these directories. Returns NULL on failure. `threads`: number of decoding threads; 0: one per CPU.
// `columns`: the columns that will be read of the tables callback_instances, publications, takes, intra_deliveries and
// phases: "takes.match", or "takes.rmw_ns?" if it is only tested for null (perflab_trace_count). NULL: all columns. Other
// columns of these tables are present only if the reader itself needs them. All other tables are always complete.
PERFLAB_TRACE_EXPORT perflab_trace* perflab_trace_open(const char* const* paths, size_t count,
                                                       unsigned threads, const char* const* columns,
                                                       size_t column_count, char* error, size_t error_size);

// NULL is allowed.
PERFLAB_TRACE_EXPORT void perflab_trace_close(perflab_trace* trace);

// Facts about the traces, as JSON; valid until the trace is closed.
PERFLAB_TRACE_EXPORT const char* perflab_trace_facts(const perflab_trace* trace);

// Exports the named table (native/traceview/tables.h) without copying. Returns 0, or -1 with an error message.
PERFLAB_TRACE_EXPORT int perflab_trace_table(perflab_trace* trace, const char* name,
                                             struct ArrowArrayStream* out, char* error, size_t error_size);

// The named table as JSON: an object with the list of values of each kept column. Only for tables with few rows, as the
// text is kept until the trace is closed. Returns NULL with an error message if there is no such table.
PERFLAB_TRACE_EXPORT const char* perflab_trace_rows(perflab_trace* trace, const char* name, char* error,
                                                    size_t error_size);

// Counts the rows of a table by group. Returns JSON: a list of groups, each [values of `by`..., number of rows,
// `counted`..., `least`...]; valid until the trace is closed. `question` is a JSON object: {"table": "takes"} and
// optionally
//   by        columns that contain rows of other tables, or names; without them all rows form one group
//   counted   lists of columns: the number of rows in which none of the columns is null
//   least     columns of instants: the earliest; null if there is none
//   instants, begin_ns, end_ns   only rows whose earliest instant in these columns is in [begin_ns, end_ns)
// Returns NULL with an error message on failure.
PERFLAB_TRACE_EXPORT const char* perflab_trace_count(perflab_trace* trace, const char* question, char* error,
                                                     size_t error_size);

// Splits `n` intervals by the thread's state, one row per interval: on_cpu_ns, preempted_ns, blocked_ns, wake_up_ns
// (int64), migrations (uint32); all null if the state is unknown. During the rest of an interval the thread was stopped
// by a signal or a debugger. `threads` contains rows of the table of threads. The result is null for a row that does not
// exist (e.g. -1) and for an end before its begin. Returns 0, or -1 with an error message.
PERFLAB_TRACE_EXPORT int perflab_trace_split(perflab_trace* trace, const int32_t* threads,
                                             const int64_t* begins, const int64_t* ends, size_t n,
                                             struct ArrowArrayStream* out, char* error, size_t error_size);

// The threads that held CPUs while the intervals' threads waited for them: interval (uint32, index of the interval),
// state, cpu, holder (row of threads), held_ns. Intervals with unknown states have no rows. Returns 0, or -1 with an
// error message.
PERFLAB_TRACE_EXPORT int perflab_trace_holds(perflab_trace* trace, const int32_t* threads,
                                             const int64_t* begins, const int64_t* ends, size_t n,
                                             struct ArrowArrayStream* out, char* error, size_t error_size);

// Exports the trace, which must have been opened with all columns, to the file at `path`, replacing it. `format`:
// "perfetto" or "folded". `options`: a JSON object of data that the trace itself lacks, all of it optional; names are
// indexed by the rows of their tables.
//   begin_ns, end_ns, epoch_offset_ns               of the trace, as in its facts
//   processes, threads, callbacks, publishers, subscriptions, functions   their names
//   quality                                          sentences about the trace as a whole
//   marks       [[time_ns, text], ...]               remarks on instants
//   losses      [{begin_ns, end_ns, track, text}]    missing events; begin and end may be null
//   gaps        [[begin_ns, end_ns], ...]            intervals in which user-space events may be missing; ascending,
//                                                    disjoint
//   not_taken   [[publication, subscription], ...]   rows
//   wall                                             folded: wall time instead of CPU time
// `counts` receives the numbers of written and omitted items as a JSON object. Returns 0, or -1 with an error message; the
// file's content is then invalid.
PERFLAB_TRACE_EXPORT int perflab_trace_export(perflab_trace* trace, const char* format, const char* path,
                                              const char* options, char* counts, size_t counts_size,
                                              char* error, size_t error_size);

#ifdef __cplusplus
}
#endif

#endif
