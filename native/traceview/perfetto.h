// Exports a trace in Perfetto's format (https://perfetto.dev/docs/reference/trace-packet-proto) for
// ui.perfetto.dev and trace_processor.
//
//   process                     one per row of processes
//     thread                    callbacks, with their publications nested; flows lead from these to callbacks
//       executor                phases
//       functions               calls of instrumented functions
//       lost messages           instants: not taken, overwritten
//   CPUs, thread states         sched_switch and sched_waking; Perfetto derives sched and thread_state from them
//   Data quality                limitations of the trace, and when events were lost
//
// Unknown intervals are not drawn:
//   * an item without an end is an open slice if nothing follows on its track, otherwise an instant;
//   * if a thread's state is unknown until it runs again, its state is NULL from when it left its CPU.
// Times are the trace's, exported as Perfetto's default clock; a clock snapshot has the offset to the time of day.
// Numbers of processes, threads and CPUs are unique in Perfetto. A number used on several hosts, or reused, gets a
// multiple of 10,000,000 added (a CPU: the number of CPUs of the hosts before).
//
// Example:
//   write_perfetto(export_tables(*view), options, [&](std::string_view bytes) { file.write(bytes); });
#pragma once

#include "traceview/export_input.h"

namespace perflab::traceview {

// Propagates exceptions of the sink.
ExportCounts write_perfetto(const ExportTables& tables, const ExportOptions& options, const ExportSink& sink);

}  // namespace perflab::traceview
