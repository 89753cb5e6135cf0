#include "tracing/scheduler/scheduler_ctf.h"

#include <sys/utsname.h>

#include <algorithm>
#include <limits>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/time.h"
#include "tracing/scheduler/event_fields.h"

namespace perflab::tracing {
namespace {

constexpr std::int32_t kLttngPriorityOffset = 100;
constexpr std::uint16_t kThreadKept = static_cast<std::uint16_t>(kEventNames.size());

constexpr std::array<EventField, 4> kKept = {{{"comm", nullptr, &SchedulerEvent::subject_comm},
                                              {"tid", nullptr, &SchedulerEvent::subject},
                                              {"pid", nullptr, &SchedulerEvent::pid},
                                              {"prio", nullptr, &SchedulerEvent::subject_priority, true}}};

// By index of the alternative in EventField::Place.
constexpr std::array<const char*, 4> kFieldTypes = {
    "int32_t", "int64_t", "integer { size = 8; align = 8; signed = false; encoding = UTF8; }", "string"};

std::string declaration(const char* name, std::uint16_t id, std::span<const EventField> fields) {
  std::string text = std::string("event {\n\tname = \"") + name + "\";\n\tid = " + std::to_string(id) +
                     ";\n\tstream_id = 0;\n\tfields := struct {\n";
  for (const EventField& field : fields) {
    const bool is_comm = std::holds_alternative<Comm SchedulerEvent::*>(field.place);
    text += std::string("\t\t") + kFieldTypes[field.place.index()] + " _" + field.name +
            (is_comm ? "[" + std::to_string(kCommBytes) + "]" : "") + ";\n";
  }
  return text + "\t};\n};\n\n";
}

void put_event(CtfBytes& bytes, const SchedulerEvent& event, std::span<const EventField> fields) {
  bytes.put(event.pid);
  bytes.put(event.tid);
  for (const EventField& field : fields) {
    const auto put = [&](auto place) {
      const auto& value = event.*place;
      using Value = std::remove_cvref_t<decltype(value)>;
      if constexpr (std::is_same_v<Value, std::string_view>) {
        bytes.put_text(value);
      } else if constexpr (std::is_integral_v<Value>) {
        bytes.put(field.is_priority ? static_cast<Value>(value - kLttngPriorityOffset) : value);
      } else {
        bytes.put(value);
      }
    };
    std::visit(put, field.place);
  }
}

// Quotes a text for TSDL.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    if (letter == '\n') continue;
    result += letter;
  }
  return result + '"';
}

// The offset between CLOCK_MONOTONIC and the time of day, from the pair of readings closest together.
std::int64_t epoch_offset_ns() {
  std::int64_t best = 0, nearest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 16; ++i) {
    const std::int64_t before = read_clock(CLOCK_MONOTONIC), day = read_clock(CLOCK_REALTIME);
    const std::int64_t after = read_clock(CLOCK_MONOTONIC);
    if (after - before >= nearest) continue;
    nearest = after - before;
    best = day - (before + (after - before) / 2);
  }
  return best;
}

std::string environment(const SchedulerTraceFacts& facts) {
  utsname system{};
  uname(&system);
  std::string text;
  const auto say = [&](const char* name, std::string_view value) {
    text += std::string("\t") + name + " = " + quoted(value) + ";\n";
  };
  say("hostname", system.nodename);
  say("domain", "kernel");
  say("sysname", system.sysname);
  say("kernel_release", system.release);
  say("kernel_version", system.version);
  say("tracer_name", "perflab-scheduler-recorder");
  text += "\ttracer_major = " PERFLAB_VERSION_MAJOR ";\n\ttracer_minor = " PERFLAB_VERSION_MINOR
          ";\n\ttracer_patchlevel = " PERFLAB_VERSION_PATCH ";\n";
  say("scheduler_source", facts.source);
  if (facts.filtered) say("scheduler_filter", "process tree");
  return text;
}

}  // namespace

std::string scheduler_metadata(const SchedulerTraceFacts& facts) {
  std::string text = ctf_preamble(
      facts.uuid, environment(facts), first_line("/proc/sys/kernel/random/boot_id"), epoch_offset_ns(),
      "\tevent.context := struct {\n\t\tint32_t _pid;\n\t\tint32_t _tid;\n\t};\n");
  for (std::uint16_t id = 0; id < kEventNames.size(); ++id) {
    const auto kind = static_cast<EventKind>(id);
    if (facts.futexes || (kind != EventKind::futex_wait && kind != EventKind::futex_return))
      text += declaration(kEventNames[id], id, fields_of(kind));
  }
  return text + declaration("perflab_thread_kept", kThreadKept, kKept);
}

void write_event(CtfWriter& writer, std::size_t stream, std::int64_t time_ns, const SchedulerEvent& event) {
  writer.event(stream, static_cast<std::uint16_t>(event.kind), time_ns,
               [&](CtfBytes& bytes) { put_event(bytes, event, fields_of(event.kind)); });
}

void write_thread_kept(CtfWriter& writer, std::size_t stream, std::int64_t time_ns,
                       const ProcThread& thread) {
  SchedulerEvent event;
  event.pid = thread.pid;
  event.tid = event.subject = thread.tid;
  event.subject_priority = thread.priority;
  event.subject_comm = thread.comm;
  writer.event(stream, kThreadKept, time_ns, [&](CtfBytes& bytes) { put_event(bytes, event, kKept); });
}

}  // namespace perflab::tracing
