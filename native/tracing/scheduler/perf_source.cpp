// Scheduler events from perf's ring buffers: each tracepoint on each CPU, with one ring per CPU.
//
// Each CPU also has perf's own switch records (PERF_RECORD_SWITCH_CPU_WIDE), for kernels on which some
// threads produce no events while they run, for any reader: not even when they leave their CPU. The incoming
// thread still produces a record, from which the switch is recovered. On a CPU where nothing is missing these
// records are turned off, and on again at the first switch that does not fit the previous one.
#include <linux/perf_event.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <optional>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/proc.h"
#include "base/time.h"
#include "tracing/scheduler/event_fields.h"
#include "tracing/scheduler/perf_ring.h"
#include "tracing/scheduler/process_tree.h"
#include "tracing/scheduler/source.h"
#include "tracing/scheduler/tracepoint.h"

namespace perflab::tracing {
namespace {

constexpr std::uint32_t kEnough =
    16;  // consistent switches out of idle before a CPU's records are turned off
constexpr std::uint64_t kSampled = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_RAW;

// Each CPU needs a descriptor per tracepoint, and the usual soft limit is meant for select().
void raise_descriptor_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= limit.rlim_max) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

[[noreturn]] void refuse_open(int reason) {
  const std::string paranoid = first_line("/proc/sys/kernel/perf_event_paranoid");
  if (reason == EACCES || reason == EPERM)
    throw Unsupported("kernel.perf_event_paranoid is " + (paranoid.empty() ? "unknown" : paranoid) +
                      "; scheduler events of all CPUs need -1, or CAP_PERFMON (a container's seccomp profile "
                      "may forbid it too): "
                      "sudo sysctl kernel.perf_event_paranoid=-1");
  if (reason == EMFILE || reason == ENFILE) {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    throw Unsupported("the limit of open files is " + std::to_string(limit.rlim_cur) +
                      "; scheduler events need 10 for each CPU: ulimit -n 65536");
  }
  if (reason == ENOSYS)
    throw Unsupported("this kernel lacks perf_event_open; use one built with CONFIG_PERF_EVENTS");
  throw Unsupported(std::string("perf_event_open: ") + std::strerror(reason));
}

[[noreturn]] void refuse_map(int reason, std::size_t bytes, std::size_t cpus) {
  if (reason == EPERM || reason == ENOMEM)
    throw Unsupported("kernel.perf_event_mlock_kb is " + first_line("/proc/sys/kernel/perf_event_mlock_kb") +
                      "; buffers of " + std::to_string(bytes >> 10) + " kB on " + std::to_string(cpus) +
                      " CPUs need more, or CAP_IPC_LOCK: sudo sysctl kernel.perf_event_mlock_kb=" +
                      std::to_string((bytes >> 10) + 8));
  throw Unsupported(std::string("mmap of a perf buffer: ") + std::strerror(reason));
}

int open_event(perf_event_attr attributes, unsigned cpu) {
  return static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, -1, static_cast<int>(cpu), -1, PERF_FLAG_FD_CLOEXEC));
}

// Since Linux 6.0 each event counts its lost records.
bool counts_losses() {
  static const bool can = [] {
    perf_event_attr attributes{};
    attributes.size = sizeof attributes;
    attributes.type = PERF_TYPE_SOFTWARE;
    attributes.config = PERF_COUNT_SW_DUMMY;
    attributes.disabled = attributes.exclude_kernel = 1;
    attributes.read_format = PERF_FORMAT_LOST;
    return Descriptor(
               static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)))
        .open();
  }();
  return can;
}

perf_event_attr common_attributes() {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.sample_type = kSampled;
  attributes.disabled = 1;
  attributes.sample_id_all = 1;
  attributes.read_format = counts_losses() ? PERF_FORMAT_LOST : 0;
  attributes.use_clockid = 1;
  attributes.clockid = CLOCK_MONOTONIC;
  return attributes;
}

// The location of a tracepoint's fields.
struct PlacedField {
  TracepointField in_record;
  EventField::Place place;
};
struct Tracepoint {
  EventKind kind{};
  std::uint32_t id = 0;
  std::size_t bytes = 0;  // size of the fixed part
  std::vector<PlacedField> fields;
};

Tracepoint read_tracepoint(EventKind kind) {
  const TracepointFormat format =
      read_tracepoint_format("sched", kEventNames[static_cast<std::size_t>(kind)]);
  Tracepoint point{.kind = kind, .id = format.id, .fields = {}};
  const auto add = [&](const char* name, const EventField::Place& place) {
    const TracepointField* const field = format.find(name);
    const bool is_number = place.index() < 2;
    if (field == nullptr || (is_number && field->size != 4 && field->size != 8))
      throw Unsupported("this kernel's tracepoint sched:" + format.name + " has no field " + name +
                        " that can be read");
    point.fields.push_back({*field, place});
  };
  add("common_pid", &SchedulerEvent::tid);
  for (const EventField& field : fields_of(kind))
    if (field.kernel_name != nullptr) add(field.kernel_name, field.place);
  for (const TracepointField& field : format.fields)
    point.bytes = std::max(point.bytes, field.offset + field.size);
  return point;
}

template <typename T>
T load(const std::byte* from) noexcept {
  T value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

std::int64_t number_of(std::span<const std::byte> raw, const TracepointField& field) noexcept {
  const std::byte* const at = raw.data() + field.offset;
  return field.size == sizeof(std::int64_t) ? load<std::int64_t>(at) : load<std::int32_t>(at);
}

std::string_view text_of(std::span<const std::byte> raw, const TracepointField& field) noexcept {
  std::size_t offset = field.offset, size = field.size;
  if (field.located) {
    const auto place = load<std::uint32_t>(raw.data() + field.offset);
    offset = place & 0xffffU;
    size = place >> 16U;
  }
  if (offset > raw.size() || size > raw.size() - offset) return {};
  const std::string_view text(reinterpret_cast<const char*>(raw.data() + offset), size);
  return text.substr(0, text.find('\0'));
}

Comm comm_of(std::string_view text) noexcept {
  Comm comm{};
  std::ranges::copy(text.substr(0, comm.size() - 1), comm.begin());
  return comm;
}

// The trailer of a record after its own fields (sample_id_all).
struct Sampled {
  std::int32_t pid = 0, tid = 0;
  std::int64_t time_ns = 0;
};
constexpr std::size_t kSampleIdBytes = 24;  // pid, tid, time, cpu, reserved

Sampled sampled(const std::byte* at) noexcept {
  return {load<std::int32_t>(at), load<std::int32_t>(at + 4), load<std::int64_t>(at + 8)};
}

// A record of a ring: an event, a loss, or perf's own record of a switch.
struct Entry {
  enum class What : std::uint8_t { event, lost, came };
  What what = What::event;
  SchedulerEvent event;  // for arrivals: `other` arrived after `subject`
  std::uint64_t lost = 0;
};

struct Cpu {
  unsigned number = 0;
  Descriptor leader;    // owns the ring, and records forks
  Descriptor switches;  // records switches
  std::vector<Descriptor> tracepoints;
  PerfRing ring;
  std::vector<Entry> entries;

  std::int64_t last_ns = 0;
  std::int32_t current = -1;  // as of the last switch; -1: unknown
  std::int32_t last_tid = -1, last_pid = 0;
  std::optional<std::pair<Comm, std::int32_t>> idle;  // its name and priority, once known
  std::uint64_t pending_loss = 0;
  std::uint64_t delivered = 0, reported_lost = 0;
  std::uint32_t complete = 0;  // switches consistent with the previous one
  bool incomplete = false;     // one was inconsistent, or was recovered
  bool switches_on = false;
};

class PerfSource final : public Source {
 public:
  explicit PerfSource(const SourceSettings& settings) : buffer_bytes_(settings.buffer_bytes) {
    const std::vector<unsigned> numbers = cpus_to_record(settings);
    if (settings.futexes)
      throw Unsupported(
          "perf_event cannot read the owner of a lock, which is in the memory of the process: waits for "
          "locks need the source ebpf");
    for (std::size_t i = 0; i < kKernelEvents; ++i)
      points_.push_back(read_tracepoint(static_cast<EventKind>(i)));
    raise_descriptor_limit();
    cpus_.resize(numbers.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) open(cpus_[i], numbers[i]);
  }

  const char* name() const noexcept override { return "perf_event"; }

  std::vector<unsigned> cpus() const override {
    std::vector<unsigned> numbers;
    for (const Cpu& cpu : cpus_) numbers.push_back(cpu.number);
    return numbers;
  }

  void start() override {
    for (Cpu& cpu : cpus_) {
      enable(cpu.leader, true);
      turn_switches(cpu, true);
      for (const Descriptor& event : cpu.tracepoints) enable(event, true);
    }
  }

  void stop() noexcept override {
    for (Cpu& cpu : cpus_) {
      for (const Descriptor& event : cpu.tracepoints) enable(event, false);
      turn_switches(cpu, false);
      enable(cpu.leader, false);
    }
    stopped_ = true;
  }

  void drain(const Handler& handler, std::int64_t timeout_ns) override {
    if (!stopped_) wait(timeout_ns);
    filenames_.clear();
    for (Cpu& cpu : cpus_) read(cpu);
    for (Cpu& cpu : cpus_) {
      // If an interrupt comes between taking the time and taking the place, the later event is first.
      const auto by_time = [](const Entry& a, const Entry& b) { return a.event.time_ns < b.event.time_ns; };
      if (!std::ranges::is_sorted(cpu.entries, by_time)) std::ranges::stable_sort(cpu.entries, by_time);
    }
    for (Cpu& cpu : cpus_) deliver(cpu, handler);
    for (Cpu& cpu : cpus_) cpu.entries.clear();
    if (stopped_) note_uncounted();
  }

  std::vector<Loss> take_losses() override { return std::exchange(losses_, {}); }
  std::uint64_t recovered() const noexcept override { return recovered_; }
  std::uint64_t withheld() const noexcept override { return withheld_; }

 private:
  static void enable(const Descriptor& event, bool on) noexcept {
    if (event.open()) ioctl(event.number(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
  }
  static void turn_switches(Cpu& cpu, bool on) noexcept {
    enable(cpu.switches, on);
    cpu.switches_on = on && cpu.switches.open();
  }

  void open(Cpu& cpu, unsigned number) {
    cpu.number = number;
    perf_event_attr leader = common_attributes();
    leader.type = PERF_TYPE_SOFTWARE;
    leader.config = PERF_COUNT_SW_DUMMY;
    leader.task = 1;
    leader.watermark = 1;
    leader.wakeup_watermark = static_cast<std::uint32_t>(buffer_bytes_ / 4);
    cpu.leader = Descriptor(open_event(leader, number));
    if (!cpu.leader.open()) refuse_open(errno);
    cpu.ring = PerfRing(cpu.leader.number(), buffer_bytes_);
    if (!cpu.ring.valid()) refuse_map(errno, buffer_bytes_, cpus_.size());
    perf_event_attr switches = common_attributes();
    switches.type = PERF_TYPE_SOFTWARE;
    switches.config = PERF_COUNT_SW_DUMMY;
    switches.context_switch = 1;
    cpu.switches = Descriptor(open_event(switches, number));  // not available before Linux 4.3
    if (cpu.switches.open()) redirect(cpu.switches, cpu);
    for (const Tracepoint& point : points_) {
      perf_event_attr attributes = common_attributes();
      attributes.type = PERF_TYPE_TRACEPOINT;
      attributes.config = point.id;
      attributes.sample_period = 1;
      const Descriptor& event = cpu.tracepoints.emplace_back(open_event(attributes, number));
      if (!event.open()) refuse_open(errno);
      redirect(event, cpu);
    }
  }

  static void redirect(const Descriptor& event, const Cpu& cpu) {
    if (ioctl(event.number(), PERF_EVENT_IOC_SET_OUTPUT, cpu.leader.number()) != 0)
      throw Unsupported(std::string("PERF_EVENT_IOC_SET_OUTPUT: ") + std::strerror(errno));
  }

  // Waits until a ring is a quarter full.
  void wait(std::int64_t timeout_ns) {
    waiting_.clear();
    for (const Cpu& cpu : cpus_) waiting_.push_back({cpu.leader.number(), POLLIN, 0});
    const timespec timeout = to_timespec(timeout_ns);
    ppoll(waiting_.data(), waiting_.size(), &timeout, nullptr);
    // The descriptor of an offline CPU reports a hang-up permanently; its remaining data are read, and
    // waiting must not spin.
    const bool hung = std::ranges::any_of(
        waiting_, [](const pollfd& one) { return (one.revents & (POLLHUP | POLLERR)) != 0; });
    if (hung) nanosleep(&timeout, nullptr);
  }

  // Reading
  // ---------------------------------------------------------------------------------------------------------

  void read(Cpu& cpu) {
    cpu.ring.read([&](const perf_event_header& header, std::span<const std::byte> body) {
      switch (header.type) {
        case PERF_RECORD_SAMPLE:
          return read_sample(cpu, body);
        case PERF_RECORD_LOST:
          return read_lost(cpu, body);
        case PERF_RECORD_FORK:
          return read_fork(body);
        case PERF_RECORD_SWITCH_CPU_WIDE:
          return read_switch(cpu, header, body);
        default:
          return;
      }
    });
  }

  void read_sample(Cpu& cpu, std::span<const std::byte> body) {
    constexpr std::size_t kFixed = 24 + 4;  // pid, tid, time, cpu, reserved; size of what follows
    if (body.size() < kFixed) return;
    const auto size = load<std::uint32_t>(body.data() + 24);
    if (size > body.size() - kFixed || size < 8) return;
    const std::span<const std::byte> raw = body.subspan(kFixed, size);
    const auto id = load<std::uint16_t>(raw.data());
    const auto point = std::ranges::find(points_, id, &Tracepoint::id);
    if (point == points_.end() || raw.size() < point->bytes) return;
    const Sampled sample = sampled(body.data());
    Entry& entry = cpu.entries.emplace_back();
    SchedulerEvent& event = entry.event;
    event.kind = point->kind;
    event.time_ns = sample.time_ns;
    event.pid = sample.pid;
    for (const PlacedField& field : point->fields) {
      const auto fill = [&](auto place) {
        using Value = std::remove_cvref_t<decltype(event.*place)>;
        if constexpr (std::is_integral_v<Value>) {
          event.*place = static_cast<Value>(number_of(raw, field.in_record));
        } else if constexpr (std::is_same_v<Value, Comm>) {
          event.*place = comm_of(text_of(raw, field.in_record));
        } else {
          event.*place = filenames_.emplace_back(text_of(raw, field.in_record));
        }
      };
      std::visit(fill, field.place);
    }
  }

  static void read_lost(Cpu& cpu, std::span<const std::byte> body) {
    if (body.size() < 16 + kSampleIdBytes) return;
    Entry& entry = cpu.entries.emplace_back();
    entry.what = Entry::What::lost;
    entry.lost = load<std::uint64_t>(body.data() + 8);
    entry.event.time_ns = sampled(body.data() + body.size() - kSampleIdBytes).time_ns;
  }

  // The tracepoint does not have the child's process; this record comes right before it.
  void read_fork(std::span<const std::byte> body) {
    if (body.size() < 24) return;
    const auto pid = load<std::int32_t>(body.data()), tid = load<std::int32_t>(body.data() + 8);
    process_of_child_[tid] = pid;
  }

  static void read_switch(Cpu& cpu, const perf_event_header& header, std::span<const std::byte> body) {
    if ((header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0 || body.size() < 8 + kSampleIdBytes) return;
    const Sampled sample = sampled(body.data() + body.size() - kSampleIdBytes);
    Entry& entry = cpu.entries.emplace_back();
    entry.what = Entry::What::came;
    entry.event.kind = EventKind::switched;
    entry.event.time_ns = sample.time_ns;
    entry.event.subject = load<std::int32_t>(body.data() + 4);
    entry.event.other = sample.tid;
  }

  // Delivering
  // ------------------------------------------------------------------------------------------------------

  void deliver(Cpu& cpu, const Handler& handler) {
    batch_.clear();
    const auto hand_over = [&] {
      if (!batch_.empty()) handler(cpu.number, batch_);
      batch_.clear();
    };
    for (std::size_t i = 0; i < cpu.entries.size(); ++i) {
      Entry& entry = cpu.entries[i];
      SchedulerEvent& event = entry.event;
      if (entry.what == Entry::What::lost) {
        hand_over();
        cpu.pending_loss += entry.lost;
        cpu.reported_lost += entry.lost;
        cpu.current = -1;
        continue;
      }
      if (entry.what == Entry::What::came && !recover(cpu, i)) continue;
      if (entry.what == Entry::What::event) {
        ++cpu.delivered;
        complete(cpu, event);
      }
      if (cpu.pending_loss != 0) {
        losses_.push_back({cpu.number, cpu.last_ns, event.time_ns, std::exchange(cpu.pending_loss, 0)});
      }
      cpu.last_ns = event.time_ns;
      batch_.push_back(event);
    }
    hand_over();
  }

  void complete(Cpu& cpu, SchedulerEvent& event) {
    // perf no longer knows the process of an exiting thread.
    if (event.pid <= 0 && event.tid > 0) {
      event.pid = event.tid == cpu.last_tid ? cpu.last_pid : 0;
    } else {
      cpu.last_tid = event.tid;
      cpu.last_pid = event.pid;
    }
    if (event.kind == EventKind::fork) {
      const auto found = process_of_child_.find(event.other);
      if (found != process_of_child_.end()) {
        event.other_pid = found->second;
        process_of_child_.erase(found);
      }
    }
    if (event.kind != EventKind::switched) return;
    if (event.other == 0) cpu.idle = {event.other_comm, event.other_priority};
    if (cpu.current >= 0 && cpu.current != event.subject) {
      if (!cpu.switches_on && !stopped_) turn_switches(cpu, true);
      cpu.incomplete = true;
    }
    if (cpu.switches_on && !cpu.incomplete && ++cpu.complete >= kEnough) turn_switches(cpu, false);
    cpu.current = event.other;
  }

  // True if perf's own record stands for a switch that the tracepoint missed; it then becomes that switch.
  bool recover(Cpu& cpu, std::size_t index) {
    SchedulerEvent& event = cpu.entries[index].event;
    const std::int32_t before = cpu.current;
    if (before == -1) cpu.current = event.other;
    if (before == -1 || before == event.other || before != event.subject) return false;
    const auto came = thread(cpu, index, event.other);
    const auto left = event.subject == 0 ? cpu.idle : thread(cpu, index, event.subject);
    if (!came || !left) return false;  // the next switch shows that something is missing
    event.other_comm = came->first;
    event.other_priority = came->second;
    event.subject_comm = left->first;
    event.subject_priority = left->second;
    event.state = event.subject == 0 ? 0 : kStateUnknown;
    event.tid = event.subject;
    event.pid = event.tid == cpu.last_tid ? cpu.last_pid : process_of(event.tid);
    cpu.current = event.other;
    cpu.incomplete = true;
    ++recovered_;
    return true;
  }

  // Name and priority of a thread: from its next departure from that CPU, from another event, or its current
  // ones.
  std::optional<std::pair<Comm, std::int32_t>> thread(const Cpu& cpu, std::size_t index,
                                                      std::int32_t tid) const {
    if (tid == 0) return cpu.idle;
    for (std::size_t i = index + 1; i < cpu.entries.size(); ++i) {
      const SchedulerEvent& event = cpu.entries[i].event;
      if (cpu.entries[i].what != Entry::What::event || event.kind != EventKind::switched) continue;
      if (event.subject == tid) return std::pair(event.subject_comm, event.subject_priority);
      break;
    }
    std::optional<std::pair<Comm, std::int32_t>> found;
    std::int64_t nearest = 0;
    for (const Cpu& any : cpus_) {
      for (const Entry& entry : any.entries) {
        const SchedulerEvent& event = entry.event;
        if (entry.what != Entry::What::event || event.kind == EventKind::exec || event.time_ns < nearest)
          continue;
        if (event.subject == tid && event.kind != EventKind::fork) {
          found = {event.subject_comm, event.subject_priority};
          nearest = event.time_ns;
        } else if (event.other == tid && event.kind == EventKind::switched) {
          found = {event.other_comm, event.other_priority};
          nearest = event.time_ns;
        }
      }
    }
    if (found) return found;
    const auto now = read_thread(tid, tid);
    return now ? std::optional(std::pair(now->comm, now->priority)) : std::nullopt;
  }

  static std::int32_t process_of(std::int32_t tid) {
    const std::string text = read_file("/proc/" + std::to_string(tid) + "/status").value_or("");
    return static_cast<std::int32_t>(proc::value_after(text, "\nTgid:").value_or(0));
  }

  // perf only reports a loss with the next record that fits; the kernel's own counts include the others.
  void note_uncounted() {
    for (Cpu& cpu : cpus_) {
      std::uint64_t counted = 0, lost = 0;
      for (const Descriptor& event : cpu.tracepoints) {
        std::array<std::uint64_t, 2> values{};  // events; lost ones
        if (::read(event.number(), values.data(), sizeof values) < static_cast<ssize_t>(sizeof values[0]))
          continue;
        counted += values[0];
        lost += values[1];
      }
      const std::uint64_t missing = counted > cpu.delivered ? counted - cpu.delivered : 0;
      if (!counts_losses()) lost = missing;
      if (missing > lost) withheld_ += missing - lost;
      const std::uint64_t more = lost > cpu.reported_lost ? lost - cpu.reported_lost : 0;
      const std::uint64_t last = more + std::exchange(cpu.pending_loss, 0);
      cpu.reported_lost += more;
      cpu.delivered = counted;  // once
      if (last != 0) losses_.push_back({cpu.number, cpu.last_ns, read_clock(CLOCK_MONOTONIC), last});
    }
  }

  std::size_t buffer_bytes_;
  std::vector<Tracepoint> points_;
  std::vector<Cpu> cpus_;
  std::vector<pollfd> waiting_;
  std::vector<SchedulerEvent> batch_;
  std::deque<std::string> filenames_;
  std::unordered_map<std::int32_t, std::int32_t> process_of_child_;
  std::vector<Loss> losses_;
  std::uint64_t recovered_ = 0, withheld_ = 0;
  bool stopped_ = false;
};

}  // namespace

std::unique_ptr<Source> open_perf_source(const SourceSettings& settings) {
  return std::make_unique<PerfSource>(settings);
}

}  // namespace perflab::tracing
