// From scheduler events to what every thread was doing: running, preempted, blocked, or woken and waiting for
// a CPU.
//
// Definitions (docs/tracing.md):
//   running    from sched_switch to it until sched_switch away from it
//   preempted  it left its CPU although it could run (prev_state is running or preempted), until it is
//              switched in again
//   blocked    it left its CPU to sleep, until sched_wakeup (or sched_wakeup_new)
//   stopped    the same, but it left because of a signal of job control (SIGSTOP)
//   traced     the same, but it left because of a debugger (ptrace)
//   woken      from sched_wakeup until it is switched in; its length is the wake-up latency
// sched_waking is the instant at which the waker began; it is kept with the wake-up but begins no state: the
// thread may still be on its way to sleep, and on another CPU an interrupt lies between. A wake-up of a
// running thread has no latency, and of several wake-ups only the first counts until the thread runs. A
// preempted thread stays preempted when it is woken (it was about to sleep), but its wake-up has a latency.
// Before a thread's first event its state is not known (null in every answer), but a thread that is switched
// away first ran since the CPU's events began.
//
// What is not recorded:
//   no wake-ups at all  a thread that slept is blocked until it is switched in: its waiting for the CPU
//                       cannot be told from its sleep. Coverage::has_wakeups is false then; wake-up latencies
//                       are not known, not 0.
//   one wake-up         (of a host that has others) when the sleep ended is not known, and so the thread's
//                       state from there on until it is switched in is not claimed. Where the recorder knows
//                       it from the kernel (wakeup_recovered, before the next switch or migration) it counts
//                       like another, and its waker is that of sched_waking or not known.
//   one switch          a state whose end was not seen is not claimed at all (recordings of some threads
//                       only, lost events). A missing switch to a thread is made good in part by what the
//                       thread did in user space, see finish().
// The waker is what ran on the CPU of sched_waking, else of sched_wakeup; kernels that hand wake-ups to the
// other CPU record the latter there, so without sched_waking the waker of such a wake-up is what it
// interrupted. A migration is what sched_migrate_task says, or else that a thread is switched in on another
// CPU than the one it left, at the time of that switch. Recordings of process trees (filtered()) have every
// event that names a thread of a tree, and every switch on a CPU as long as a thread of a tree could run
// there and does not. `kept` names the threads of the trees; their children are of them too.
//   a CPU is covered     while a thread of a tree runs or waits there. Who runs there otherwise is not known,
//                        but where the recorder says it (cpu_held) of a thread that turns out to have waited.
//   threads of no tree   have no states but running, and that only where their CPU is covered.
// A wait at an address (futex) is from futex_wait to futex_return of the same thread and address. Its owner
// is the thread that the lock's memory names, where that is known and of the same process: any number may
// stand in memory. Waits that began before the events are not known.
// Tid 0 is the idle task: never a thread. A CPU that runs it has no holder.
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

// A scheduler event, normalised: names, priorities and states of LTTng and perf are alike here (schema.h does
// that).
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
  std::int32_t tid = 0;  // switched: the next; fork: the child; exec: -1 is the one that runs there;
                         // otherwise the one that the event is about
  std::optional<std::int32_t> pid;       // fork: the child's process, where the event says so
  std::optional<std::int32_t> priority;  // kernel's own scale (see tables.h); of tid
  std::string_view name;                 // of tid; "" where the event has none
  std::int32_t previous_tid = 0;         // switched only
  std::optional<std::int32_t> previous_priority;
  std::string_view previous_name;
  EndState previous_state = EndState::other;
  std::optional<std::int32_t> target_cpu;  // waking, wakeup, wakeup_new; migrate: the destination
  std::optional<std::int32_t> origin_cpu;  // migrate
  std::int64_t waited_ns = 0;              // wakeup_recovered: it was woken that long before
                                           // cpu_held: it left target_cpu that long before
  std::optional<std::int64_t> held_ns;     // wakeup_recovered: who runs there had come that long before
                                           // cpu_held: it had come there that long before
  std::uint64_t address = 0;               // futex_wait, futex_return
  std::int32_t operation = 0;              // likewise: FUTEX_* with its flags
  std::int32_t owner = 0;                  // futex_wait: who holds the lock; 0: nobody is named
  std::int32_t result = 0;                 // futex_return
  std::int32_t emitter_tid = 0;  // what ran when the event happened and its process, where the tracer says so
  std::int32_t emitter_pid = 0;
};

// Takes events in the order of time (of each host); after finish() it answers.
class Scheduler : public ThreadHistory {
 public:
  explicit Scheduler(Directory& directory);
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  void add(const SchedulerEvent& event);
  // Only what concerns process trees was recorded of this host. Before any event of it.
  void filtered(std::int32_t host);
  // Scheduler events of this host were lost in [begin, end] (of that CPU, or of all): states that reach into
  // it become unknown there, and nothing is claimed across it. Threads that ran on other CPUs are known to go
  // on; all that waited or slept are not, any CPU may have run them. Best said before the events that follow
  // `begin`: what is said later cuts the states that reach into the loss, but what was concluded from them
  // stays.
  void lost(std::int32_t host, std::optional<std::int32_t> cpu, std::int64_t begin_ns, std::int64_t end_ns);
  // Events of that CPU are in the trace. Where that is said of any CPU of a host, wake-ups on others show
  // that events are missing.
  void recorded(std::int32_t host, std::int32_t cpu);
  // Host and CPU, of those that events named and nobody recorded.
  [[nodiscard]] std::vector<std::pair<std::int32_t, std::int32_t>> missing_cpus() const;
  // Whether an event was about a thread of that number.
  [[nodiscard]] bool knows(std::int32_t host, std::int32_t tid) const;
  // The first instant after begin and before end at which that thread is known to have run, from elsewhere:
  // it emitted an event of user space.
  using Evidence = std::function<std::optional<std::int64_t>(std::int32_t thread, std::int64_t begin_ns,
                                                             std::int64_t end_ns)>;
  // No more events; the scheduler's trace covers a host up to its last event. Where the switch to a thread is
  // missing (some recorders lose switches out of idle), the thread is taken to run from its first evidence to
  // the switch away from it; such states are marked as inferred.
  void finish(const Evidence& ran = {});

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::traceview
