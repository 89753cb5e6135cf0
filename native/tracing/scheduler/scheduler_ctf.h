// The format of scheduler events in a trace: names, types and priorities (p->prio - 100) of LTTng's kernel
// tracer, so that any reader of its traces can read these.
//
// Five events are perflab's own. `perflab_wakeup_recovered` {comm, tid, prio, target_cpu, waited_ns, held_ns}
// comes before the switch to a thread, or its migration, whose wake-up had no event: it was woken `waited_ns`
// before, and the outgoing thread had arrived `held_ns` before (-1: unknown). `perflab_cpu_held` {comm, tid,
// prio, cpu, until_ns, since_ns} comes before that, or before a migration, and names the thread on the CPU
// for which it waited: since and until that long before. `perflab_thread_kept` {comm, tid, pid, prio} says
// that this thread of a filtered trace belongs to the tree from here on, as do its children; it is written
// for threads that exist when a root is named. `perflab_futex_wait` {comm, tid, prio, uaddr, op, owner} says
// that a thread calls the kernel to wait at an address, and which thread holds the lock there according to
// its memory (0: none named), `perflab_futex_return` {comm, tid, prio, uaddr, op, ret} that the call returns;
// only traces that contain these two declare them.
#pragma once

#include <cstdint>
#include <string>

#include "tracing/ctf_writer.h"
#include "tracing/scheduler/process_tree.h"
#include "tracing/scheduler/source.h"

namespace perflab::tracing {

struct SchedulerTraceFacts {
  CtfUuid uuid{};
  std::string source;     // "perf_event"
  bool filtered = false;  // filtered by process tree
  bool futexes = false;   // waits at addresses are recorded
};

[[nodiscard]] std::string scheduler_metadata(const SchedulerTraceFacts& facts);

// `time_ns` replaces the event's own time.
void write_event(CtfWriter& writer, std::size_t stream, std::int64_t time_ns, const SchedulerEvent& event);
void write_thread_kept(CtfWriter& writer, std::size_t stream, std::int64_t time_ns, const ProcThread& thread);

}  // namespace perflab::tracing
