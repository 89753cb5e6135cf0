// The fields of scheduler events: their names in a trace (as in LTTng's kernel tracer) and in the kernel's
// tracepoint, and their place in a SchedulerEvent.
#pragma once

#include <array>
#include <span>
#include <variant>

#include "tracing/scheduler/source.h"

namespace perflab::tracing {

struct EventField {
  using Place = std::variant<std::int32_t SchedulerEvent::*, std::int64_t SchedulerEvent::*,
                             Comm SchedulerEvent::*, std::string_view SchedulerEvent::*>;
  const char* name;
  const char* kernel_name;  // nullptr: not in the tracepoint
  Place place;
  bool is_priority = false;  // p->prio; in a trace minus 100, as in LTTng
};

inline std::span<const EventField> fields_of(EventKind kind) {
  using E = SchedulerEvent;
  static constexpr std::array<EventField, 7> kSwitch = {
      {{"prev_comm", "prev_comm", &E::subject_comm},
       {"prev_tid", "prev_pid", &E::subject},
       {"prev_prio", "prev_prio", &E::subject_priority, true},
       {"prev_state", "prev_state", &E::state},
       {"next_comm", "next_comm", &E::other_comm},
       {"next_tid", "next_pid", &E::other},
       {"next_prio", "next_prio", &E::other_priority, true}}};
  static constexpr std::array<EventField, 4> kWakeUp = {{{"comm", "comm", &E::subject_comm},
                                                         {"tid", "pid", &E::subject},
                                                         {"prio", "prio", &E::subject_priority, true},
                                                         {"target_cpu", "target_cpu", &E::target_cpu}}};
  static constexpr std::array<EventField, 5> kMigrate = {{{"comm", "comm", &E::subject_comm},
                                                          {"tid", "pid", &E::subject},
                                                          {"prio", "prio", &E::subject_priority, true},
                                                          {"orig_cpu", "orig_cpu", &E::from_cpu},
                                                          {"dest_cpu", "dest_cpu", &E::target_cpu}}};
  static constexpr std::array<EventField, 6> kFork = {
      {{"parent_comm", "parent_comm", &E::subject_comm},
       {"parent_tid", "parent_pid", &E::subject},
       {"parent_pid", nullptr, &E::pid},  // the parent is the forking process
       {"child_comm", "child_comm", &E::other_comm},
       {"child_tid", "child_pid", &E::other},
       {"child_pid", nullptr, &E::other_pid}}};
  static constexpr std::array<EventField, 3> kExec = {{{"filename", "filename", &E::filename},
                                                       {"tid", "pid", &E::subject},
                                                       {"old_tid", "old_pid", &E::other}}};
  static constexpr std::array<EventField, 3> kExit = {{{"comm", "comm", &E::subject_comm},
                                                       {"tid", "pid", &E::subject},
                                                       {"prio", "prio", &E::subject_priority, true}}};
  static constexpr std::array<EventField, 6> kRecovered = {{{"comm", nullptr, &E::subject_comm},
                                                            {"tid", nullptr, &E::subject},
                                                            {"prio", nullptr, &E::subject_priority, true},
                                                            {"target_cpu", nullptr, &E::target_cpu},
                                                            {"waited_ns", nullptr, &E::waited_ns},
                                                            {"held_ns", nullptr, &E::held_ns}}};
  static constexpr std::array<EventField, 6> kHeld = {{{"comm", nullptr, &E::subject_comm},
                                                       {"tid", nullptr, &E::subject},
                                                       {"prio", nullptr, &E::subject_priority, true},
                                                       {"cpu", nullptr, &E::target_cpu},
                                                       {"until_ns", nullptr, &E::waited_ns},
                                                       {"since_ns", nullptr, &E::held_ns}}};
  static constexpr std::array<EventField, 6> kFutexWait = {{{"comm", nullptr, &E::subject_comm},
                                                            {"tid", nullptr, &E::subject},
                                                            {"prio", nullptr, &E::subject_priority, true},
                                                            {"uaddr", nullptr, &E::address},
                                                            {"op", nullptr, &E::operation},
                                                            {"owner", nullptr, &E::other}}};
  static constexpr std::array<EventField, 6> kFutexReturn = {{{"comm", nullptr, &E::subject_comm},
                                                              {"tid", nullptr, &E::subject},
                                                              {"prio", nullptr, &E::subject_priority, true},
                                                              {"uaddr", nullptr, &E::address},
                                                              {"op", nullptr, &E::operation},
                                                              {"ret", nullptr, &E::result}}};
  switch (kind) {
    case EventKind::switched:
      return kSwitch;
    case EventKind::waking:
    case EventKind::wakeup:
    case EventKind::wakeup_new:
      return kWakeUp;
    case EventKind::migrate:
      return kMigrate;
    case EventKind::fork:
      return kFork;
    case EventKind::exec:
      return kExec;
    case EventKind::exit:
      return kExit;
    case EventKind::wakeup_recovered:
      return kRecovered;
    case EventKind::cpu_held:
      return kHeld;
    case EventKind::futex_wait:
      return kFutexWait;
    case EventKind::futex_return:
      return kFutexReturn;
  }
  return {};
}

}  // namespace perflab::tracing
