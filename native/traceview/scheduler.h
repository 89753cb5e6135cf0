// Derives the state of every thread from scheduler events: running, preempted, blocked, or woken and waiting for a CPU.
//
// Definitions (docs/tracing.md):
//   running    from the sched_switch to the thread until the sched_switch away from it
//   preempted  from leaving its CPU while runnable (prev_state is running or preempted) until it is switched in again
//   blocked    from leaving its CPU to sleep until sched_wakeup (or sched_wakeup_new)
//   stopped    like blocked, but because of a job control signal (SIGSTOP)
//   traced     like blocked, but because of a debugger (ptrace)
//   woken      from sched_wakeup until it is switched in; the length is the wake-up latency
// sched_waking is the instant at which the waker began. It is stored with the wake-up but begins no state:
// the thread may still be going to sleep, and a wake-up on another CPU needs an interrupt first. A wake-up of
// a running thread has no latency. Until the thread runs, only the first of several wake-ups counts. A
// preempted thread stays preempted when it is woken (it was about to sleep), but its wake-up has a latency.
// Before its first event, a thread's state is unknown (null in every result); but if that event switches the
// thread away, the thread ran since the CPU's events began.
//
// Missing events:
//   no wake-ups at all  a sleeping thread counts as blocked until it is switched in, because waiting for the
//                       CPU cannot be separated from sleeping. Coverage::has_wakeups is false; wake-up
//                       latencies are null, not 0.
//   one wake-up         (others exist on the host) the end of the sleep is unknown, so the thread's state is
//                       unknown until it is switched in. If the recorder infers the wake-up from the kernel
//                       (wakeup_recovered, before the next switch or migration), it counts like any other;
//                       its waker is that of sched_waking, or unknown.
//   one switch          a state without a recorded end is omitted (partial recordings, lost events).
//                       User-space events replace part of a missing switch to a thread, see finish().
// The waker is the thread that ran on the CPU of sched_waking or, without it, of sched_wakeup. Some kernels delegate
// wake-ups to the target CPU and record sched_wakeup there; without sched_waking, the waker is then the
// thread that the wake-up interrupted. A migration is a sched_migrate_task event; without one, the switch to a
// thread on another CPU than the one that it left. Recordings of process trees
// (filtered()) contain every event that names a thread of a tree, and every switch on a CPU while a thread of
// a tree is waiting for that CPU. `kept` names the threads of the trees; their children belong to the trees,
// too.
//   a CPU is covered          while a thread of a tree runs or waits there. At other times the thread on the CPU is
//                             unknown, unless the recorder reports it (cpu_held) for a thread that waited.
//   threads outside of trees  have only the state running, and only while their CPU is covered.
// A wait at an address (futex) lasts from futex_wait to futex_return of the same thread and address. Its
// owner is the thread named in the lock's memory, if that thread is known and in the same process, because the
// memory may contain any number. Waits that began before the first event are unknown.
// Tid 0 is the idle task, never a thread. A CPU that runs it has no holder.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "traceview/directory.h"
#include "traceview/tables.h"
#include "traceview/thread_history.h"

namespace perflab::traceview {

// A scheduler event in tracer-independent form (schema.h): names, priorities and states of LTTng and perf have the same
// encoding.
struct SchedulerEvent {
  enum class Kind : std::uint8_t {
    switched,
    waking,
    wakeup,
    wakeup_new,
    migrate,
    fork,
    exec,
    exit,
    wakeup_recovered,
    cpu_held,
    futex_wait,
    futex_return,
    kept
  };
  Kind kind = Kind::switched;
  std::int64_t time_ns = 0;
  std::int32_t host = 0;
  std::int32_t cpu = 0;  // on which the event happened
  std::int32_t tid = 0;  // switched: the next thread; fork: the child; exec: -1 for the thread that runs
                         // there; otherwise the subject
  std::optional<std::int32_t> pid;       // fork: the child's process, if the event has it
  std::optional<std::int32_t> priority;  // of tid, on the kernel's scale (see tables.h)
  std::string_view name;                 // of tid; "" if the event has none
  std::int32_t previous_tid = 0;         // switched only
  std::optional<std::int32_t> previous_priority;
  std::string_view previous_name;
  EndState previous_state = EndState::other;
  std::optional<std::int32_t> target_cpu;  // waking, wakeup, wakeup_new; migrate: the destination
  std::optional<std::int32_t> origin_cpu;  // migrate
  std::int64_t waited_ns = 0;              // wakeup_recovered: time since the thread was woken
                                           // cpu_held: time since the thread left target_cpu
  std::optional<std::int64_t> held_ns;     // time since the thread that runs there had been switched in
  std::uint64_t address = 0;               // futex_wait, futex_return
  std::int32_t operation = 0;              // futex_wait, futex_return: FUTEX_* with its flags
  std::int32_t owner = 0;                  // futex_wait: owner of the lock; 0 if there is none
  std::int32_t result = 0;                 // futex_return
  std::int32_t emitter_tid = 0;  // thread that ran when the event happened, and its process, if the tracer
                                 // records them
  std::int32_t emitter_pid = 0;
};

// Receives events in time order (per host); queries are possible after finish().
class Scheduler : public ThreadHistory {
 public:
  explicit Scheduler(Directory& directory);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void add(const SchedulerEvent& event);
  // Marks the recording of this host as limited to process trees. Must be called before any event of the host.
  void filtered(std::int32_t host);
  // Scheduler events of this host were lost in [begin, end] (of one CPU, or of all): states that reach into
  // the loss become unknown there. The states of threads that ran on other CPUs continue; threads that waited or slept
  // become unknown, because any CPU may have run them. Should be called before the events that follow `begin`: a later
  // call shortens the states that reach into the loss, but does not undo conclusions drawn from them.
  void lost(std::int32_t host, std::optional<std::int32_t> cpu, std::int64_t begin_ns, std::int64_t end_ns);
  // The trace has events of that CPU. Once this is set for any CPU of a host, wake-ups on other CPUs show
  // that events are missing.
  void recorded(std::int32_t host, std::int32_t cpu);
  // Host and CPU of the CPUs that events named but no recording covers.
  [[nodiscard]] std::vector<std::pair<std::int32_t, std::int32_t>> missing_cpus() const;
  // Whether any event concerned a thread with this number.
  [[nodiscard]] bool knows(std::int32_t host, std::int32_t tid) const;
  // Returns the first instant between begin and end at which the thread certainly ran because it emitted a
  // user-space event.
  using Evidence = std::function<std::optional<std::int64_t>(std::int32_t thread, std::int64_t begin_ns,
                                                             std::int64_t end_ns)>;
  // Ends the input; the scheduler's trace covers a host up to its last event. If the switch to a thread is
  // missing (some recorders lose switches out of idle), the thread counts as running from its first evidence
  // to the switch away from it; such states are marked as inferred.
  void finish(const Evidence& ran = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::traceview
