#include "tracing/scheduler/recording.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "base/time.h"
#include "tracing/scheduler/scheduler_ctf.h"

namespace perflab::tracing {
namespace {

constexpr std::size_t kMostLossesListed = 1000;
constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kPacketBytes = 256 << 10;
constexpr std::size_t kLeastPacketBytes = 4 << 10;

CtfSettings ctf_settings(const RecordingSettings& settings, const CtfUuid& uuid, const Source& source) {
  CtfSettings ctf;
  ctf.folder = settings.folder;
  ctf.uuid = uuid;
  ctf.metadata = scheduler_metadata({uuid, source.name(), !settings.roots.empty(), source.has_futexes()});
  ctf.cpus = source.cpus();
  ctf.flight_recorder_bytes = settings.flight_recorder_bytes;
  // Whole packets are dropped, so each must be a small part of a small memory.
  if (settings.flight_recorder_bytes != 0) {
    ctf.packet_bytes =
        std::clamp(settings.flight_recorder_bytes / (8 * std::max<std::size_t>(1, ctf.cpus.size())),
                   kLeastPacketBytes, kPacketBytes);
  } else {
    ctf.packet_bytes = kPacketBytes;
  }
  return ctf;
}

}  // namespace

Recording::Recording(RecordingSettings settings, Source& source)
    : settings_(std::move(settings)),
      source_(source),
      uuid_(random_uuid()),
      filtering_(!settings_.roots.empty()),
      writer_(ctf_settings(settings_, uuid_, source)) {
  for (const unsigned number : source_.cpus()) {
    if (stream_of_cpu_.size() <= number) stream_of_cpu_.resize(number + 1, 0);
    stream_of_cpu_[number] = cpus_.size();
    cpus_.emplace_back().number = number;
  }
  writer_.on_finish([this](std::int64_t begin_ns) { restate(begin_ns); });
  for (const std::int32_t pid : std::exchange(settings_.roots, {})) add_root(pid);
}

std::size_t Recording::stream_of(unsigned cpu) const {
  if (cpu >= stream_of_cpu_.size())
    throw std::out_of_range("an event of CPU " + std::to_string(cpu) + ", which is not recorded");
  return stream_of_cpu_[cpu];
}

void Recording::step(std::int64_t timeout_ns) {
  const std::int64_t before_ns = read_clock(CLOCK_MONOTONIC);
  source_.drain([this](unsigned cpu, std::span<const SchedulerEvent> events) { take(cpu, events); },
                timeout_ns);
  take_losses(std::nullopt, std::numeric_limits<std::int64_t>::max());
  // Everything that happened before the wait is in the queues now, on any CPU.
  if (filtering_ && !source_.filters()) filter_until(before_ns);
}

void Recording::take(unsigned number, std::span<const SchedulerEvent> events) {
  if (events.empty()) return;
  const std::size_t stream = stream_of(number);
  Cpu& cpu = cpus_[stream];
  take_losses(number, events.front().time_ns);
  const bool queued = filtering_ && !source_.filters();
  for (const SchedulerEvent& event : events) {
    check(cpu, event);
    if (queued) {
      Queued& entry = cpu.queue.emplace_back(event, std::string(event.filename), std::nullopt);
      entry.event.filename = {};
      entry.event.time_ns = std::max(event.time_ns, cpu.last_ns);
    } else {
      write(stream, event);
    }
    cpu.last_ns = std::max(cpu.last_ns, event.time_ns);
  }
}

// Losses of this CPU before this instant (without a number: of all CPUs).
void Recording::take_losses(std::optional<unsigned> number, std::int64_t until_ns) {
  for (Loss& loss : source_.take_losses()) waiting_losses_.push_back(loss);
  if (waiting_losses_.empty()) return;
  std::erase_if(waiting_losses_, [&](const Loss& loss) {
    if (number && (!loss.cpu || *loss.cpu != *number || loss.before_ns > until_ns)) return false;
    totals_.lost += loss.events;
    if (totals_.losses.size() < kMostLossesListed) totals_.losses.push_back(loss);
    if (loss.cpu) {
      place(stream_of(*loss.cpu), loss);
    } else {
      // The CPU is unknown: each CPU's stream is marked as possibly incomplete, and together they have the
      // total.
      Loss share = loss;
      share.events = (loss.events + cpus_.size() - 1) / cpus_.size();
      for (std::size_t i = 0; i < cpus_.size(); ++i) place(i, share);
    }
    return true;
  });
}

void Recording::place(std::size_t stream, const Loss& loss) {
  Cpu& cpu = cpus_[stream];
  cpu.lost_since = true;
  if (filtering_ && !source_.filters()) {
    Queued& entry = cpu.queue.emplace_back();
    entry.event.time_ns = cpu.last_ns;
    entry.loss = loss;
  } else {
    writer_.lost(stream, loss.after_ns, loss.before_ns, loss.events);
  }
}

void Recording::check(Cpu& cpu, const SchedulerEvent& event) {
  if (event.time_ns < cpu.last_ns) ++totals_.backwards;
  if (event.kind != EventKind::switched) return;
  // A filtering source omits switches on purpose.
  const bool left_out = filtering_ && source_.filters();
  if (!left_out && cpu.next_tid >= 0 && cpu.next_tid != event.subject && !cpu.lost_since)
    ++totals_.chain_breaks;
  cpu.next_tid = event.other;
  cpu.lost_since = false;
}

void Recording::write(std::size_t stream, const SchedulerEvent& event) {
  if (event.time_ns > until_ns_) return;
  write_event(writer_, stream, std::max(event.time_ns, writer_.last_ns(stream)), event);
  ++totals_.by_event[static_cast<std::size_t>(event.kind)];
  if (filtering_ && settings_.flight_recorder_bytes != 0) remember(event, event.time_ns);
}

// In order of time over all CPUs: a wake-up on one CPU determines what is kept of another.
void Recording::filter_until(std::int64_t time_ns) {
  for (;;) {
    Cpu* next = nullptr;
    for (Cpu& cpu : cpus_) {
      if (cpu.queue.empty()) continue;
      if (next == nullptr || cpu.queue.front().event.time_ns < next->queue.front().event.time_ns) next = &cpu;
    }
    if (next == nullptr || next->queue.front().event.time_ns >= time_ns) break;
    Queued& entry = next->queue.front();
    const auto stream = static_cast<std::size_t>(next - cpus_.data());
    if (entry.loss) {
      writer_.lost(stream, entry.loss->after_ns, entry.loss->before_ns, entry.loss->events);
    } else if (tree_.keep(next->number, entry.event)) {
      entry.event.filename = entry.filename;
      write(stream, entry.event);
    } else {
      ++totals_.filtered_out;
    }
    next->queue.pop_front();
  }
  filtered_until_ns_ = std::max(filtered_until_ns_, time_ns);
}

void Recording::add_root(std::int32_t pid) {
  if (threads_below(pid).empty())
    throw BadInput("root " + std::to_string(pid) + ": there is no such process");
  // The threads are named at an instant after everything written, and before everything not yet written:
  // earlier events still in the source are written first and so keep their times.
  std::int64_t time_ns = filtered_until_ns_;
  std::vector<ProcThread> threads;
  if (source_.filters()) {
    if (!filtering_) begin_filter();
    source_.add_root(pid);
    threads = threads_below(pid);  // if the source missed a thread, its fork shows it
    time_ns = read_clock(CLOCK_MONOTONIC);
    step(0);
  } else {
    if (!filtering_) {
      time_ns = read_clock(CLOCK_MONOTONIC);
      step(0);
      begin_filter();
      filtered_until_ns_ = time_ns;
    }
    threads = threads_below(pid);  // forks from here on are added to the tree by events
  }
  if (time_ns == 0) time_ns = read_clock(CLOCK_MONOTONIC);
  time_ns = std::max(time_ns, writer_.last_ns(0));
  for (const ProcThread& thread : threads) {
    tree_.add(thread);
    write_thread_kept(writer_, 0, time_ns, thread);
    if (settings_.flight_recorder_bytes != 0) members_.push_back({time_ns, kForever, thread});
  }
}

// Remembers the members of a tree, for restate().
void Recording::remember(const SchedulerEvent& event, std::int64_t time_ns) {
  if (event.kind == EventKind::fork) {
    members_.push_back({time_ns,
                        kForever,
                        {.pid = event.other_pid,
                         .tid = event.other,
                         .priority = event.other_priority,
                         .comm = event.other_comm}});
  } else if (event.kind == EventKind::exit) {
    const auto last = std::find_if(members_.rbegin(), members_.rend(), [&](const Member& member) {
      return member.thread.tid == event.subject && member.until_ns == kForever;
    });
    if (last != members_.rend()) last->until_ns = time_ns;
    if (members_.size() < 2 * most_members_) return;
    const std::int64_t oldest_ns = writer_.oldest_ns();
    std::erase_if(members_, [&](const Member& member) { return member.until_ns < oldest_ns; });
    most_members_ = std::max(members_.size(), most_members_);
  }
}

void Recording::begin_filter() {
  filtering_ = true;
  writer_.replace_metadata(scheduler_metadata({uuid_, source_.name(), true, source_.has_futexes()}));
}

// For a flight recorder: repeats facts from dropped packets.
void Recording::restate(std::int64_t begin_ns) {
  for (const Member& member : members_) {
    if (member.from_ns < begin_ns && member.until_ns >= begin_ns)
      write_thread_kept(writer_, 0, begin_ns, member.thread);
  }
}

void Recording::flush() { writer_.flush(); }

void Recording::stop() {
  // CPUs are switched off one after the other: after this instant only some would have events.
  until_ns_ = read_clock(CLOCK_MONOTONIC);
  source_.stop();
  step(0);
  if (filtering_ && !source_.filters()) filter_until(std::numeric_limits<std::int64_t>::max());
  writer_.finish(until_ns_);
}

RecordingTotals Recording::totals() const {
  RecordingTotals totals = totals_;
  for (const std::uint64_t events : totals.by_event) totals.events += events;
  totals.bytes = writer_.bytes();
  totals.filtered_out += source_.filtered_out();
  totals.recovered = source_.recovered();
  totals.recovered_wakeups = source_.recovered_wakeups();
  totals.withheld = source_.withheld();
  return totals;
}

}  // namespace perflab::tracing
