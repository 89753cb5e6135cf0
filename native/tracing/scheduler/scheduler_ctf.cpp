#include "tracing/scheduler/scheduler_ctf.h"

#include <sys/utsname.h>
#include <time.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <span>
#include <string_view>

namespace perflab::tracing {
namespace {

constexpr std::int32_t kLttngPriorityOffset = 100;
constexpr std::uint16_t kThreadKept = static_cast<std::uint16_t>(kEventNames.size());

struct Field {
  const char* type;
  const char* name;
};
constexpr const char* kComm = "comm";
constexpr const char* kText = "text";

constexpr std::array<Field, 7> kSwitch = {{{kComm, "prev_comm"},
                                           {"int32_t", "prev_tid"},
                                           {"int32_t", "prev_prio"},
                                           {"int64_t", "prev_state"},
                                           {kComm, "next_comm"},
                                           {"int32_t", "next_tid"},
                                           {"int32_t", "next_prio"}}};
constexpr std::array<Field, 4> kWakeUp = {
    {{kComm, "comm"}, {"int32_t", "tid"}, {"int32_t", "prio"}, {"int32_t", "target_cpu"}}};
constexpr std::array<Field, 5> kMigrate = {{{kComm, "comm"},
                                            {"int32_t", "tid"},
                                            {"int32_t", "prio"},
                                            {"int32_t", "orig_cpu"},
                                            {"int32_t", "dest_cpu"}}};
constexpr std::array<Field, 6> kFork = {{{kComm, "parent_comm"},
                                         {"int32_t", "parent_tid"},
                                         {"int32_t", "parent_pid"},
                                         {kComm, "child_comm"},
                                         {"int32_t", "child_tid"},
                                         {"int32_t", "child_pid"}}};
constexpr std::array<Field, 3> kExec = {{{kText, "filename"}, {"int32_t", "tid"}, {"int32_t", "old_tid"}}};
constexpr std::array<Field, 3> kExit = {{{kComm, "comm"}, {"int32_t", "tid"}, {"int32_t", "prio"}}};
constexpr std::array<Field, 4> kKept = {
    {{kComm, "comm"}, {"int32_t", "tid"}, {"int32_t", "pid"}, {"int32_t", "prio"}}};

std::span<const Field> fields_of(EventKind kind) {
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
  }
  return {};
}

std::string declaration(const char* name, std::uint16_t id, std::span<const Field> fields) {
  std::string text = std::string("event {\n\tname = \"") + name + "\";\n\tid = " + std::to_string(id) +
                     ";\n\tstream_id = 0;\n\tfields := struct {\n";
  for (const Field& field : fields) {
    if (field.type == kComm) {
      text += std::string("\t\tinteger { size = 8; align = 8; signed = false; encoding = UTF8; } _") +
              field.name + "[" + std::to_string(kCommBytes) + "];\n";
    } else {
      text += std::string("\t\t") + (field.type == kText ? "string" : field.type) + " _" + field.name + ";\n";
    }
  }
  return text + "\t};\n};\n\n";
}

// Within quotes of TSDL.
std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    if (letter == '\n') continue;
    result += letter;
  }
  return result + '"';
}

std::int64_t nanoseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// Between CLOCK_MONOTONIC and the time of day: where the two readings of the former were nearest to each
// other.
std::int64_t epoch_offset_ns() {
  std::int64_t best = 0, nearest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 16; ++i) {
    const std::int64_t before = nanoseconds(CLOCK_MONOTONIC), day = nanoseconds(CLOCK_REALTIME);
    const std::int64_t after = nanoseconds(CLOCK_MONOTONIC);
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

std::int32_t lttng_priority(std::int32_t priority) { return priority - kLttngPriorityOffset; }

void put_comm(CtfBytes& bytes, const Comm& comm) { bytes.put_bytes(comm.data(), comm.size()); }

}  // namespace

std::string scheduler_metadata(const SchedulerTraceFacts& facts) {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::string text =
      ctf_preamble(facts.uuid, environment(facts), boot, epoch_offset_ns(),
                   "\tevent.context := struct {\n\t\tint32_t _pid;\n\t\tint32_t _tid;\n\t};\n");
  for (std::size_t i = 0; i < kEventNames.size(); ++i)
    text += declaration(kEventNames[i], static_cast<std::uint16_t>(i), fields_of(static_cast<EventKind>(i)));
  return text + declaration("perflab_thread_kept", kThreadKept, kKept);
}

void write_event(CtfWriter& writer, std::size_t stream, std::int64_t time_ns, const SchedulerEvent& event) {
  writer.event(stream, static_cast<std::uint16_t>(event.kind), time_ns, [&](CtfBytes& bytes) {
    bytes.put(event.pid);
    bytes.put(event.tid);
    switch (event.kind) {
      case EventKind::switched:
        put_comm(bytes, event.subject_comm);
        bytes.put(event.subject);
        bytes.put(lttng_priority(event.subject_priority));
        bytes.put(event.state);
        put_comm(bytes, event.other_comm);
        bytes.put(event.other);
        bytes.put(lttng_priority(event.other_priority));
        break;
      case EventKind::waking:
      case EventKind::wakeup:
      case EventKind::wakeup_new:
        put_comm(bytes, event.subject_comm);
        bytes.put(event.subject);
        bytes.put(lttng_priority(event.subject_priority));
        bytes.put(event.target_cpu);
        break;
      case EventKind::migrate:
        put_comm(bytes, event.subject_comm);
        bytes.put(event.subject);
        bytes.put(lttng_priority(event.subject_priority));
        bytes.put(event.from_cpu);
        bytes.put(event.target_cpu);
        break;
      case EventKind::fork:
        put_comm(bytes, event.subject_comm);
        bytes.put(event.subject);
        bytes.put(event.pid);  // the parent is who forks
        put_comm(bytes, event.other_comm);
        bytes.put(event.other);
        bytes.put(event.other_pid);
        break;
      case EventKind::exec:
        bytes.put_text(event.filename);
        bytes.put(event.subject);
        bytes.put(event.other);
        break;
      case EventKind::exit:
        put_comm(bytes, event.subject_comm);
        bytes.put(event.subject);
        bytes.put(lttng_priority(event.subject_priority));
        break;
    }
  });
}

void write_thread_kept(CtfWriter& writer, std::size_t stream, std::int64_t time_ns,
                       const ProcThread& thread) {
  writer.event(stream, kThreadKept, time_ns, [&](CtfBytes& bytes) {
    bytes.put(thread.pid);
    bytes.put(thread.tid);
    put_comm(bytes, thread.comm);
    bytes.put(thread.tid);
    bytes.put(thread.pid);
    bytes.put(lttng_priority(thread.priority));
  });
}

}  // namespace perflab::tracing
