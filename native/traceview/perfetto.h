// A trace in Perfetto's own format (https://perfetto.dev/docs/reference/trace-packet-proto): opens in
// ui.perfetto.dev and is read by trace_processor.
//
//   process                     one for each row of processes
//     thread                    callbacks, and in them what they publish; flows lead from there to callbacks
//       executor                phases
//       functions               calls of instrumented functions
//       lost messages           instants: not taken, overwritten
//   CPUs, thread states         sched_switch and sched_waking: Perfetto makes sched and thread_state of them
//   Data quality                what to know of the trace, and when events were lost
//
// What is not known is not drawn:
//   * what has no end is a slice without an end where nothing follows on its track, else an instant;
//   * a thread whose state is not known until it runs again is in no state (NULL) from when it left its CPU.
// Times are those of the trace, as the clock that Perfetto takes its own from; the time of day is in a clock
// snapshot. Numbers of processes, threads and CPUs that stand for several (of hosts, or used again) get a
// multiple of 10,000,000 added (CPUs: those of the hosts before), since Perfetto knows each number once.
//
// Example:
//   write_perfetto(export_tables(*view), options, [&](std::string_view bytes) { file.write(bytes); });
#pragma once

#include "traceview/export_input.h"

namespace perflab::traceview {

// Passes on exceptions of the sink.
ExportCounts write_perfetto(const ExportTables& tables, const ExportOptions& options, const ExportSink& sink);

}  // namespace perflab::traceview
