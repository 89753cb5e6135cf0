// Scheduler events of LTTng and of perf as one.
#include <array>
#include <charconv>
#include <limits>
#include <string>

#include "traceview/schema.h"

namespace perflab::traceview {
namespace {

// Where a kind of event has what: places in the order of the fields in schema.cpp.
struct Places {
  Kind kind;
  SchedulerEvent::Kind normal;
  int tid, name;
  int priority = -1, target_cpu = -1, origin_cpu = -1;  // -1: events of this kind have none
};
using Normal = SchedulerEvent::Kind;
constexpr std::array kPlaces{Places{Kind::sched_switch, Normal::switched, 5, 4, 6},
                             Places{Kind::sched_waking, Normal::waking, 1, 0, 2, 3},
                             Places{Kind::sched_wakeup, Normal::wakeup, 1, 0, 2, 3},
                             Places{Kind::sched_wakeup_new, Normal::wakeup_new, 1, 0, 2, 3},
                             Places{Kind::sched_migrate_task, Normal::migrate, 1, 0, 2, 4, 3},
                             Places{Kind::process_fork, Normal::fork, 3, 5},
                             Places{Kind::process_exec, Normal::exec, 1, 0},
                             Places{Kind::process_exit, Normal::exit, 1, 0, 2},
                             Places{Kind::wakeup_recovered, Normal::wakeup_recovered, 1, 0, 2, 3},
                             Places{Kind::cpu_held, Normal::cpu_held, 1, 0, 2, 3},
                             Places{Kind::futex_wait, Normal::futex_wait, 1, 0, 2},
                             Places{Kind::futex_return, Normal::futex_return, 1, 0, 2},
                             Places{Kind::thread_kept, Normal::kept, 1, 0}};
// Of a switch also the thread that leaves, and of a fork the process.
enum : int { kPreviousName, kPreviousTid, kPreviousPriority, kPreviousState };
constexpr int kChildPid = 4;
// Places of fields of a recovered wake-up, and of the thread that held a CPU with the interval.
constexpr int kWaited = 4, kHeld = 5;
// Of a call to wait at an address; the last one is its owner, or what it returned.
constexpr int kAddress = 3, kOperation = 4, kOwnerOrResult = 5;

constexpr bool are_in_order() {
  for (std::size_t i = 0; i < kPlaces.size(); ++i) {
    if (static_cast<std::size_t>(kPlaces[i].kind) != static_cast<std::size_t>(Kind::sched_switch) + i)
      return false;
  }
  return kPlaces.back().kind == Kind::thread_kept;
}
static_assert(are_in_order(), "one row for each kind of event of the scheduler, in their order");

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

  [[nodiscard]] std::optional<std::int32_t> number(int place) const noexcept {
    const auto field = static_cast<std::size_t>(place);
    if (place < 0 || !bound_.has(field) || bound_.fields[field].text || bound_.fields[field].bytes)
      return std::nullopt;
    const auto value = static_cast<std::int64_t>(bound_.value(event_, field));
    if (value < std::numeric_limits<std::int32_t>::min() || value > std::numeric_limits<std::int32_t>::max())
      return std::nullopt;
    return static_cast<std::int32_t>(value);
  }
  [[nodiscard]] std::string_view text(int place) const noexcept {
    const auto field = static_cast<std::size_t>(place);
    if (!bound_.has(field)) return {};
    // Arrays of 8-bit integers that the metadata does not call text are text here all the same.
    const BoundField& bytes = bound_.fields[field];
    return bytes.text || bytes.bytes ? bound_.text(event_, field) : std::string_view{};
  }
  [[nodiscard]] std::optional<std::int32_t> priority(int place) const noexcept {
    const auto value = number(place);
    if (!value || bound_.perf) return value;
    return *value + kLttngPriorityOffset;
  }
  [[nodiscard]] std::optional<std::int32_t> cpu(int place) const noexcept {
    const auto value = number(place);
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
  if (!is_scheduler(bound.kind)) return std::nullopt;
  const Places& places =
      kPlaces[static_cast<std::size_t>(bound.kind) - static_cast<std::size_t>(Kind::sched_switch)];
  const Reader read(bound, event);
  SchedulerEvent result;
  result.time_ns = event.time_ns;
  result.host = host;
  result.cpu = static_cast<std::int32_t>(*stream_cpu);
  if (bound.pid.slot >= 0 && bound.tid.slot >= 0) {
    result.emitter_pid = static_cast<std::int32_t>(bound.value(event, bound.pid));
    result.emitter_tid = static_cast<std::int32_t>(bound.value(event, bound.tid));
  }
  std::optional<std::int32_t> tid = read.number(places.tid);
  result.kind = places.normal;
  result.name = read.text(places.name);
  result.priority = read.priority(places.priority);
  result.target_cpu = read.cpu(places.target_cpu);
  result.origin_cpu = read.cpu(places.origin_cpu);
  if (bound.kind == Kind::sched_switch) {
    const auto previous = read.number(kPreviousTid);
    if (!previous) return std::nullopt;
    result.previous_tid = *previous;
    result.previous_name = read.text(kPreviousName);
    result.previous_priority = read.priority(kPreviousPriority);
    if (bound.has(kPreviousState)) {
      result.previous_state = end_state(bound.value(event, kPreviousState), bound.raw_states);
    }
  }
  if (bound.kind == Kind::sched_migrate_task && !result.target_cpu) return std::nullopt;
  if (bound.kind == Kind::process_fork) {
    result.pid = read.number(kChildPid);
    if (result.pid && *result.pid <= 0) result.pid.reset();  // not known
  }
  if (bound.kind == Kind::wakeup_recovered || bound.kind == Kind::cpu_held) {
    if (!bound.has(kWaited) || !bound.has(kHeld) || !result.target_cpu) return std::nullopt;
    result.waited_ns = static_cast<std::int64_t>(bound.value(event, kWaited));
    const auto held = static_cast<std::int64_t>(bound.value(event, kHeld));
    if (result.waited_ns < 0) return std::nullopt;
    if (held >= 0) result.held_ns = held;
  }
  if (bound.kind == Kind::futex_wait || bound.kind == Kind::futex_return) {
    const auto operation = read.number(kOperation), last = read.number(kOwnerOrResult);
    if (!operation || !last || !bound.has(kAddress)) return std::nullopt;
    result.address = bound.value(event, kAddress);
    result.operation = *operation;
    (bound.kind == Kind::futex_wait ? result.owner : result.result) = *last;
  }
  if (bound.kind == Kind::process_exec && !tid) tid = -1;  // the thread that runs there
  if (!tid) return std::nullopt;
  result.tid = *tid;
  return result;
}

}  // namespace perflab::traceview
