// Scheduler events of LTTng and of perf as one. Where fields are: see field::... below; schema.cpp binds them
// in this order.
#include <charconv>
#include <limits>
#include <string>

#include "traceview/schema.h"

namespace perflab::traceview {
namespace {

// The order of the fields in schema.cpp.
namespace switched {
enum : std::size_t { prev_comm, prev_tid, prev_prio, prev_state, next_comm, next_tid, next_prio };
}
namespace wake_up {
enum : std::size_t { comm, tid, prio, target_cpu };
}
namespace migrate {
enum : std::size_t { comm, tid, prio, orig_cpu, dest_cpu };
}
namespace fork {
enum : std::size_t { parent_tid, parent_pid, parent_comm, child_tid, child_pid, child_comm };
}
namespace exec {
enum : std::size_t { filename, tid };
}
namespace exit {
enum : std::size_t { comm, tid, prio };
}
namespace kept {
enum : std::size_t { comm, tid };
}

constexpr std::int32_t kMostCpus = 1 << 16;         // a number beyond it is none of a CPU
constexpr std::int32_t kLttngPriorityOffset = 100;  // LTTng has p->prio - 100

// prev_state is a mask; these have the same meaning in all kernels.
constexpr std::uint64_t kInterruptible = 1;
constexpr std::uint64_t kUninterruptible = 2;
constexpr std::uint64_t kStopped = 4;  // by a signal of job control: SIGSTOP, SIGTSTP
constexpr std::uint64_t kTraced = 8;   // by a debugger: ptrace
constexpr std::uint64_t kExitStates = 16 | 32;
constexpr std::uint64_t kDeadOrParked = 64;  // dead before 4.14, parked since
constexpr std::uint64_t kParkedBefore = 512;
constexpr std::uint64_t kStates = 0xff;

// Preempted is 0, or the one bit above all states: 256 since 4.14 (TASK_REPORT_MAX), 1024 to 4096 before
// (TASK_STATE_MAX).
EndState end_state(std::uint64_t state, bool raw_states) noexcept {
  if (state == 0) return EndState::preempted;
  if ((state & kStates) == 0)
    return raw_states && state == kParkedBefore ? EndState::other : EndState::preempted;
  if ((state & kExitStates) != 0) return EndState::ended;
  if ((state & kDeadOrParked) != 0) return raw_states ? EndState::ended : EndState::other;
  if ((state & kStopped) != 0) return EndState::stopped;
  if ((state & kTraced) != 0) return EndState::traced;
  if ((state & kUninterruptible) != 0) return EndState::uninterruptible;
  return (state & kInterruptible) != 0 ? EndState::sleeping : EndState::other;
}

class Reader {
 public:
  Reader(const BoundEvent& bound, const ctf::Event& event) noexcept : bound_(bound), event_(event) {}

  [[nodiscard]] std::optional<std::int32_t> number(std::size_t field) const noexcept {
    if (!bound_.has(field) || bound_.fields[field].text || bound_.fields[field].bytes) return std::nullopt;
    const auto value = static_cast<std::int64_t>(bound_.value(event_, field));
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
      return std::nullopt;
    return static_cast<std::int32_t>(value);
  }
  [[nodiscard]] std::string_view text(std::size_t field) const noexcept {
    if (!bound_.has(field)) return {};
    // Arrays of 8-bit integers that the metadata does not call text are text here all the same.
    const BoundField& place = bound_.fields[field];
    return place.text || place.bytes ? bound_.text(event_, field) : std::string_view{};
  }
  [[nodiscard]] std::optional<std::int32_t> priority(std::size_t field) const noexcept {
    const auto value = number(field);
    if (!value || bound_.perf) return value;
    return *value + kLttngPriorityOffset;
  }
  [[nodiscard]] std::optional<std::int32_t> cpu(std::size_t field) const noexcept {
    const auto value = number(field);
    return value && *value >= 0 && *value < kMostCpus ? value : std::nullopt;
  }

 private:
  const BoundEvent& bound_;
  const ctf::Event& event_;
};

}  // namespace

bool has_raw_states(const ctf::Metadata& metadata) {
  auto release = metadata.environment_text("kernel_release");
  if (!release) release = metadata.environment_text("release");
  if (!release) return false;
  const char* const last = release->data() + release->size();
  int major = 0, minor = 0;
  const auto [dot, error] = std::from_chars(release->data(), last, major);
  if (error != std::errc() || dot == last || *dot != '.') return false;
  if (std::from_chars(dot + 1, last, minor).ec != std::errc()) return false;
  return major < 4 || (major == 4 && minor < 14);
}

std::optional<SchedulerEvent> scheduler_event(const BoundEvent& bound, const ctf::Event& event,
                                              std::int32_t host, std::optional<std::uint32_t> stream_cpu) {
  if (!stream_cpu || *stream_cpu >= static_cast<std::uint32_t>(kMostCpus)) return std::nullopt;
  const Reader read(bound, event);
  SchedulerEvent result;
  result.time_ns = event.time_ns;
  result.host = host;
  result.cpu = static_cast<std::int32_t>(*stream_cpu);
  if (bound.pid.slot >= 0 && bound.tid.slot >= 0) {
    result.emitter_pid = static_cast<std::int32_t>(event.slots[bound.pid.slot]);
    result.emitter_tid = static_cast<std::int32_t>(event.slots[bound.tid.slot]);
  }
  std::optional<std::int32_t> tid;
  switch (bound.kind) {
    case Kind::sched_switch: {
      const auto previous = read.number(switched::prev_tid);
      if (!previous) return std::nullopt;
      result.kind = SchedulerEvent::Kind::switched;
      tid = read.number(switched::next_tid);
      result.name = read.text(switched::next_comm);
      result.priority = read.priority(switched::next_prio);
      result.previous_tid = *previous;
      result.previous_name = read.text(switched::prev_comm);
      result.previous_priority = read.priority(switched::prev_prio);
      if (bound.has(switched::prev_state)) {
        result.previous_state = end_state(bound.value(event, switched::prev_state), bound.raw_states);
      }
      break;
    }
    case Kind::sched_waking:
    case Kind::sched_wakeup:
    case Kind::sched_wakeup_new:
      result.kind = bound.kind == Kind::sched_waking   ? SchedulerEvent::Kind::waking
                    : bound.kind == Kind::sched_wakeup ? SchedulerEvent::Kind::wakeup
                                                       : SchedulerEvent::Kind::wakeup_new;
      tid = read.number(wake_up::tid);
      result.name = read.text(wake_up::comm);
      result.priority = read.priority(wake_up::prio);
      result.target_cpu = read.cpu(wake_up::target_cpu);
      break;
    case Kind::sched_migrate_task:
      result.kind = SchedulerEvent::Kind::migrate;
      tid = read.number(migrate::tid);
      result.name = read.text(migrate::comm);
      result.priority = read.priority(migrate::prio);
      result.origin_cpu = read.cpu(migrate::orig_cpu);
      result.target_cpu = read.cpu(migrate::dest_cpu);
      if (!result.target_cpu) return std::nullopt;
      break;
    case Kind::process_fork:
      result.kind = SchedulerEvent::Kind::fork;
      tid = read.number(fork::child_tid);
      result.pid = read.number(fork::child_pid);
      if (result.pid && *result.pid <= 0) result.pid.reset();  // not known
      result.name = read.text(fork::child_comm);
      break;
    case Kind::process_exec:
      result.kind = SchedulerEvent::Kind::exec;
      tid = read.number(exec::tid).value_or(-1);
      result.name = read.text(exec::filename);
      break;
    case Kind::process_exit:
      result.kind = SchedulerEvent::Kind::exit;
      tid = read.number(exit::tid);
      result.name = read.text(exit::comm);
      result.priority = read.priority(exit::prio);
      break;
    case Kind::thread_kept:
      result.kind = SchedulerEvent::Kind::kept;
      tid = read.number(kept::tid);
      result.name = read.text(kept::comm);
      break;
    default:
      return std::nullopt;
  }
  if (!tid) return std::nullopt;
  result.tid = *tid;
  return result;
}

}  // namespace perflab::traceview
