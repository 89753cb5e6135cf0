// How scheduler events look in a trace: LTTng's kernel tracer's names, types and priorities (p->prio - 100),
// so that whatever reads its traces reads these.
//
// Five events are perflab's own. `perflab_wakeup_recovered` {comm, tid, prio, target_cpu, waited_ns,
// held_ns} stands before the switch to a thread, or its migration, of whose wake-up no event came: it was
// woken that long before, and who leaves had come that long before (-1: not known). `perflab_cpu_held` {comm,
// tid, prio, cpu, until_ns, since_ns} stands before that, or before a migration, and says who had the CPU for
// which the thread waited: since and until that long before. `perflab_thread_kept` {comm, tid, pid, prio}
// says of a filtered trace that this thread is of the tree from here on, as its children are; it is written
// for the threads that were there when a root was named. `perflab_futex_wait` {comm, tid, prio, uaddr, op,
// owner} says that a thread calls the kernel to wait at an address, and which thread holds the lock there by
// its memory (0: that names none), `perflab_futex_return` {comm, tid, prio, uaddr, op, ret} that it comes
// back; only traces that have them declare them.
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
  bool filtered = false;  // by process tree
  bool futexes = false;   // waits at addresses are recorded
};

[[nodiscard]] std::string scheduler_metadata(const SchedulerTraceFacts& facts);

// `time_ns` stands for the event's own.
void write_event(CtfWriter& writer, std::size_t stream, std::int64_t time_ns, const SchedulerEvent& event);
void write_thread_kept(CtfWriter& writer, std::size_t stream, std::int64_t time_ns, const ProcThread& thread);

}  // namespace perflab::tracing
