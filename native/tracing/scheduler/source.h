// Sources of scheduler events: perf's ring buffers, or BPF programs. Both provide the same events, per CPU in
// order of time; the recorder does not know which one it uses.
//
// Example:
//   const auto source = open_perf_source(settings);  // throws Unsupported
//   source->start();
//   while (running) source->drain([](unsigned cpu, std::span<const SchedulerEvent> events) { ... }, 50ms);
//   source->stop();
//   source->drain(...);  // the rest
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"

namespace perflab::tracing {

constexpr std::size_t kCommBytes = 16;  // the kernel's TASK_COMM_LEN
using Comm = std::array<char, kCommBytes>;

enum class EventKind : std::uint8_t {
  switched,
  waking,
  wakeup,
  wakeup_new,
  migrate,
  fork,
  exec,
  exit,
  wakeup_recovered,  // before the switch to a thread whose wake-up was not seen, or its migration
  cpu_held,          // before that, or before a migration: the thread on the CPU for which it waited
  // Only on request:
  futex_wait,   // a thread calls the kernel to wait at an address
  futex_return  // and returns
};
constexpr std::array<const char*, 12> kEventNames = {
    "sched_switch",       "sched_waking",       "sched_wakeup",
    "sched_wakeup_new",   "sched_migrate_task", "sched_process_fork",
    "sched_process_exec", "sched_process_exit", "perflab_wakeup_recovered",
    "perflab_cpu_held",   "perflab_futex_wait", "perflab_futex_return"};
constexpr std::size_t kKernelEvents = 8;  // the first ones are tracepoints

// prev_state of a thread of which only the successor is known: whether it sleeps is unknown. Not a state of
// any kernel; readers of the lowest 8 bits see a thread that is neither runnable nor in an ordinary sleep.
constexpr std::int64_t kStateUnknown = (std::int64_t{1} << 30U) | 0x80;

// Values as in the kernel: priorities are p->prio (120 is nice 0), states the mask of the tracepoint.
struct SchedulerEvent {
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
  EventKind kind{};
  std::int32_t pid = 0,
               tid = 0;  // thread that ran on the event's CPU, in the initial PID name space
  // The thread concerned: switched: the outgoing one; fork: the parent (its tid); otherwise the one named.
  std::int32_t subject = 0;
  std::int32_t subject_priority = 0;
  Comm subject_comm{};
  // switched: the incoming one; fork: the child (its tid); exec: the thread's previous tid; futex_wait: the
  // owner of the lock according to its memory, 0 if none is named.
  std::int32_t other = 0;
  std::int32_t other_pid = 0;  // fork: the child's process; 0: unknown
  std::int32_t other_priority = 0;
  Comm other_comm{};
  std::int64_t state = 0;       // switched: prev_state
  std::int32_t from_cpu = 0;    // migrate
  std::int32_t target_cpu = 0;  // waking, wakeup, wakeup_new, wakeup_recovered, cpu_held; migrate: the
                                // destination
  // wakeup_recovered: how long ago it was woken, and the outgoing thread had arrived (-1: unknown). cpu_held:
  // how long ago the subject left target_cpu (0: it is still there), and had arrived.
  std::int64_t waited_ns = 0, held_ns = -1;
  // futex_wait and futex_return: the address, FUTEX_* with its flags, and the return value.
  std::int64_t address = 0;
  std::int32_t operation = 0, result = 0;
  std::string_view filename;  // exec; valid during the handler call
};

struct SourceSettings {
  std::vector<unsigned> cpus;           // empty: all online CPUs
  std::size_t buffer_bytes = 4u << 20;  // per CPU; a power of two times the page size
  // Only for a source that filters in the kernel (`filters()`): roots of the process trees to keep.
  std::vector<std::int32_t> roots;
  bool futexes = false;  // also futex_wait and futex_return; not with perf_event
  // For tests: simulates a machine that withholds events of these kinds.
  std::vector<EventKind> unheard;
};

// Lost events between two instants of one CPU. A source that cannot determine the CPU does not report it.
struct Loss {
  std::optional<unsigned> cpu;
  std::int64_t after_ns = 0, before_ns = 0;  // times of the events around it; 0: none before
  std::uint64_t events = 0;
};

class Source {
 public:
  using Handler = std::function<void(unsigned cpu, std::span<const SchedulerEvent> events)>;

  Source() = default;
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  virtual ~Source() = default;

  [[nodiscard]] virtual const char* name() const noexcept = 0;  // "perf_event", "ebpf"
  [[nodiscard]] virtual bool filters() const noexcept { return false; }
  [[nodiscard]] virtual bool has_futexes() const noexcept { return false; }
  [[nodiscard]] virtual std::vector<unsigned> cpus() const = 0;
  virtual void start() = 0;
  // No events follow; earlier ones can still be drained.
  virtual void stop() noexcept = 0;
  // Waits for events for at most `timeout_ns` and passes them on, per CPU in order of time, also across
  // calls. Events of different CPUs are not ordered.
  virtual void drain(const Handler& handler, std::int64_t timeout_ns) = 0;
  // Losses since the last call.
  [[nodiscard]] virtual std::vector<Loss> take_losses() = 0;
  // Switches missed by the tracepoint that the source knows from elsewhere; they are among the events, except
  // for filtered ones.
  [[nodiscard]] virtual std::uint64_t recovered() const noexcept { return 0; }
  // Likewise for wake-ups. Empty if the source cannot recover any.
  [[nodiscard]] virtual std::optional<std::uint64_t> recovered_wakeups() const noexcept {
    return std::nullopt;
  }
  // After stop() and the last drain(): events that the kernel counted, but delivered to no buffer. Their
  // times are unknown.
  [[nodiscard]] virtual std::uint64_t withheld() const noexcept { return 0; }

  // For filtering sources: also keeps the tree of this process; from the first call on everything else is
  // omitted.
  virtual void add_root(std::int32_t pid) { static_cast<void>(pid); }
  [[nodiscard]] virtual std::uint64_t filtered_out() const noexcept { return 0; }
};

// The check of every source before it opens: returns the CPUs to record, ascending. Throws BadInput if a
// buffer size or CPU is invalid, Unsupported if events would use other thread numbers than this process sees.
[[nodiscard]] std::vector<unsigned> cpus_to_record(const SourceSettings& settings);
// The first line of a small file; empty if it cannot be read.
[[nodiscard]] std::string first_line(const std::string& path);

[[nodiscard]] std::unique_ptr<Source> open_perf_source(const SourceSettings& settings);
[[nodiscard]] std::unique_ptr<Source> open_ebpf_source(const SourceSettings& settings);

}  // namespace perflab::tracing
