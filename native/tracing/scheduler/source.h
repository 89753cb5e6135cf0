// Where scheduler events come from: perf's ring buffers, or a BPF program. Each brings the same events, per
// CPU and in the order of their times; whoever records them does not know which one it is.
//
// Example:
//   const auto source = open_perf_source(settings);  // throws Unsupported
//   source->start();
//   while (running) source->drain([](unsigned cpu, std::span<const SchedulerEvent> events) { ... }, 50ms);
//   source->stop();
//   source->drain(...);  // what was left
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
  wakeup_recovered,  // before the switch to a thread that was not seen to be woken, or its migration
  cpu_held,          // before that, or a migration: who had the CPU for which the thread waited
  // Only where they are asked for:
  futex_wait,   // a thread calls the kernel to wait at an address
  futex_return  // and comes back
};
constexpr std::array<const char*, 12> kEventNames = {
    "sched_switch",       "sched_waking",       "sched_wakeup",
    "sched_wakeup_new",   "sched_migrate_task", "sched_process_fork",
    "sched_process_exec", "sched_process_exit", "perflab_wakeup_recovered",
    "perflab_cpu_held",   "perflab_futex_wait", "perflab_futex_return"};
constexpr std::size_t kKernelEvents = 8;  // the first of them are tracepoints

// prev_state of a thread of which only the next one is known to have come: whether it sleeps is not known. No
// state of a kernel; readers that look at the lowest 8 bits see a thread that is neither runnable nor in an
// ordinary sleep.
constexpr std::int64_t kStateUnknown = (std::int64_t{1} << 30U) | 0x80;

// As the kernel says it: priorities are p->prio (120 is nice 0), states the mask of the tracepoint.
struct SchedulerEvent {
  std::int64_t time_ns = 0;  // CLOCK_MONOTONIC
  EventKind kind{};
  std::int32_t pid = 0,
               tid = 0;  // of the thread that ran on the CPU of the event, in the initial PID name space
  // The thread that it is about: switched: the one that leaves; fork: the parent (its tid); else whom it
  // names.
  std::int32_t subject = 0;
  std::int32_t subject_priority = 0;
  Comm subject_comm{};
  // switched: the one that comes; fork: the child (its tid); exec: the tid that the thread had before;
  // futex_wait: the owner of the lock by its memory, 0 where that names none.
  std::int32_t other = 0;
  std::int32_t other_pid = 0;  // fork: the child's process; 0: not known
  std::int32_t other_priority = 0;
  Comm other_comm{};
  std::int64_t state = 0;       // switched: prev_state
  std::int32_t from_cpu = 0;    // migrate
  std::int32_t target_cpu = 0;  // waking, wakeup, wakeup_new, wakeup_recovered, cpu_held; migrate: to which
  // wakeup_recovered: how long before this instant it was woken, and the thread that leaves had come (-1:
  // that is not known).
  // cpu_held: how long before it the subject left target_cpu (0: it is there), and had come.
  std::int64_t waited_ns = 0, held_ns = -1;
  // futex_wait and futex_return: the address, FUTEX_* with its flags, and what the call returned.
  std::int64_t address = 0;
  std::int32_t operation = 0, result = 0;
  std::string_view filename;  // exec; lives as long as the call of the handler
};

struct SourceSettings {
  std::vector<unsigned> cpus;           // empty: all that are online
  std::size_t buffer_bytes = 4u << 20;  // per CPU; a power of two times the page size
  // Only with a source that filters in the kernel (`filters()`): processes that descend from these.
  std::vector<std::int32_t> roots;
  bool futexes = false;  // futex_wait and futex_return too; perf_event has none
  // For tests: as on a machine that keeps events of these kinds from the source.
  std::vector<EventKind> unheard;
};

// What did not arrive, between two instants of one CPU. A source that cannot tell the CPU says nothing of it.
struct Loss {
  std::optional<unsigned> cpu;
  std::int64_t after_ns = 0, before_ns = 0;  // of the events around it; 0: none before
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
  // No event after it; those before it can still be drained.
  virtual void stop() noexcept = 0;
  // Waits for events at most that long and hands over what is there, per CPU in the order of time, over calls
  // too. Events of different CPUs have no order among each other.
  virtual void drain(const Handler& handler, std::int64_t timeout_ns) = 0;
  // Those that were lost since the last call.
  [[nodiscard]] virtual std::vector<Loss> take_losses() = 0;
  // Switches that the tracepoint did not bring and that the source knows from elsewhere; they are among the
  // events, but for those that it filters.
  [[nodiscard]] virtual std::uint64_t recovered() const noexcept { return 0; }
  // Wake-ups likewise. Nothing where the source cannot know of any.
  [[nodiscard]] virtual std::optional<std::uint64_t> recovered_wakeups() const noexcept {
    return std::nullopt;
  }
  // After stop() and the last drain(): events that the kernel counted, but gave to no buffer. Nobody knows
  // when.
  [[nodiscard]] virtual std::uint64_t withheld() const noexcept { return 0; }

  // Of sources that filter: keeps the tree of this process too; with the first one, all else is left out.
  virtual void add_root(std::int32_t pid) { static_cast<void>(pid); }
  [[nodiscard]] virtual std::uint64_t filtered_out() const noexcept { return 0; }
};

// What every source asks before it opens: the CPUs to record, ascending. Throws BadInput where a
// buffer or a CPU is none, Unsupported where events would have other numbers of threads than this process
// sees.
[[nodiscard]] std::vector<unsigned> cpus_to_record(const SourceSettings& settings);
// Of a small file; empty where it cannot be read.
[[nodiscard]] std::string first_line(const std::string& path);

[[nodiscard]] std::unique_ptr<Source> open_perf_source(const SourceSettings& settings);
[[nodiscard]] std::unique_ptr<Source> open_ebpf_source(const SourceSettings& settings);

}  // namespace perflab::tracing
