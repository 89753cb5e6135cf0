// Exports folded stacks for flamegraph.pl, inferno and speedscope: one line per stack with its frames, outermost
// first, separated by ";", and the time that threads spent in it:
//
//   talker (10);talker (10);execute;/talker timer 100 ms;Talker::on_timer() 1500000
//
// Frames: process, thread, the executor's phase, callbacks, and the functions called in them. While no callback runs,
// the frame is [executor] within a phase and [other] outside, followed by the open functions.
//
// Weights are CPU time in ns, from scheduler events; the lines of a thread add up to its running time in
// thread_states. With ExportOptions::wall, weights are wall time from a thread's first to its last event, and the
// process frame is marked: "talker (10) [wall time]". Callbacks, phases and calls without an end are omitted.
#pragma once

#include "traceview/export_input.h"

namespace perflab::traceview {

// Lines are in byte order. Throws std::invalid_argument if the trace has no scheduler events and wall time was
// not requested; propagates exceptions of the sink.
ExportCounts write_folded(const ExportTables& tables, const ExportOptions& options, const ExportSink& sink);

}  // namespace perflab::traceview
