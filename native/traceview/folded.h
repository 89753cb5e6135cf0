// Folded stacks: one line per stack, its frames from the outside in with ";" between them, and how long
// threads were in it. What flamegraph.pl, inferno and speedscope read:
//
//   talker (10);talker (10);execute;/talker timer 100 ms;Talker::on_timer() 1500000
//
// Frames: process, thread, then what was open at that time: the executor's phase, callbacks and the functions
// called in them. Where no callback runs, [executor] is within a phase and [other] is not, with the functions
// that are open there.
//
// Weights are ns on a CPU, by the scheduler's events; the lines of a thread add up to its running time in
// thread_states. With ExportOptions::wall they are wall time from a thread's first to its last event, and the
// process says so: "talker (10) [wall time]". A callback, phase or call without an end is in no stack.
#pragma once

#include "traceview/export_input.h"

namespace perflab::traceview {

// Lines are in byte order. Throws std::invalid_argument if the trace has no scheduler events and wall time
// was not requested, and passes on exceptions of the sink.
ExportCounts write_folded(const ExportTables& tables, const ExportOptions& options, const ExportSink& sink);

}  // namespace perflab::traceview
