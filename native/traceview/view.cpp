#include "traceview/view.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/hex.h"
#include "ctf/coverage.h"
#include "ctf/merge.h"
#include "ctf/stream.h"
#include "ctf/trace.h"
#include "traceview/run_times.h"
#include "traceview/schema.h"

namespace perflab::traceview {
namespace {

using Json = nlohmann::ordered_json;

template <typename T>
Json json_or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// The machine that a trace is of, as tracers write it: LTTng `hostname`, perf `host`.
std::optional<std::string> host_of(const ctf::Metadata& metadata) {
  if (auto name = metadata.environment_text("hostname")) return name;
  return metadata.environment_text("host");
}

// Sums of instants that a trace may have made up: wraps instead of overflowing.
std::int64_t plus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}

std::int64_t minus(std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}

// LTTng's clock (and that of perflab's recorder) has the boot's identity: two machines of one name, or two boots of one, have no clock in common.
std::string boot_of(const ctf::Metadata& metadata) {
  const std::string tracer = metadata.environment_text("tracer_name").value_or("");
  const bool names_boot = tracer.starts_with("lttng") || tracer.starts_with("perflab");
  if (!names_boot || metadata.clocks.empty() || !metadata.clocks.front().uuid) return {};
  return uuid_text(*metadata.clocks.front().uuid);
}

// A stream with events for both models is decoded in two passes, and its events are counted in the first.
enum class Pass : std::uint8_t { user_space, scheduler, counting };

}  // namespace

class ViewBuilder {
 public:
  ViewBuilder(std::span<const std::filesystem::path> paths, const ViewOptions& options)
      : paths_(paths),
        threads_(options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency())),
        set_(ctf::TraceSet::open(paths)),
        view_(new View()) {
    if (options.columns) check(*options.columns);
  }

  std::shared_ptr<const View> build() {
    for (const auto& trace : set_.traces()) add_trace(*trace);
    for (const auto& entry : set_.ledger()) keep(entry, nullptr);
    find_hosts();
    note_filter();
    note_lost_scheduler_events();
    note_between_recordings();
    note_missing_begins();
    note_missing_streams();
    find_breaks();
    keep_wanted();
    run(Pass::user_space);
    run(Pass::scheduler);
    run(Pass::counting);
    note_missing_ends();
    note_missing_cpus();
    if (total_events() == 0) throw ctf::TraceError(fmt::format("{}: no event can be read{}", paths_[0].string(), first_loss()));
    view_->ros_.finish();
    RunTimes ran(view_->ros_, view_->directory_.threads().size());
    view_->scheduler_.finish([&ran](std::int32_t thread, std::int64_t begin_ns, std::int64_t end_ns) {
      return ran.first_in(thread, begin_ns, end_ns);
    });
    view_->hosts_ = view_->directory_.host_table();
    view_->processes_ = view_->directory_.process_table();
    view_->threads_ = view_->directory_.thread_table();
    // Names may be cut in the middle of a character, by the kernel for one.
    view_->facts_ = facts().dump(-1, ' ', false, Json::error_handler_t::replace);
    return std::move(view_);
  }

 private:
  void check(const std::set<std::string, std::less<>>& columns) {
    std::set<std::string, std::less<>> known;
    view_->tables([&known](std::string_view name, const auto& table) {
      table.columns([&](const char* column, const auto&) { known.insert(fmt::format("{}.{}", name, column)); });
    });
    for (const std::string& column : columns) {
      const std::string_view name = std::string_view(column).substr(0, column.size() - (column.ends_with('?') ? 1 : 0));
      if (!known.contains(name)) throw std::invalid_argument(fmt::format("no table has the column {}", column));
    }
    wanted_ = columns;
  }

  // Without scheduler events, the run times of threads are derived from user-space events (RunTimes).
  void keep_wanted() {
    const auto is_scheduled = [](const TraceFacts& trace) { return trace.has_scheduler(); };
    if (!wanted_ || std::any_of(traces_.begin(), traces_.end(), is_scheduled)) return;
    view_->ros_.keep(*wanted_);
    view_->is_whole_ = false;
  }

  struct StreamFacts {
    bool user_space = false, scheduler = false, read = false;
    bool lossy = false;  // scheduler events of it are missing
    std::uint64_t events = 0;
    std::optional<std::int64_t> first_ns, last_ns;
  };
  struct TraceFacts {
    const ctf::Trace* trace = nullptr;
    std::vector<BoundEvent> bounds;      // by class index
    std::vector<std::uint64_t> counts;   // by class index
    std::vector<StreamFacts> streams;
    std::optional<std::string> host_name;
    std::int32_t host = 0;
    std::int64_t shift_ns = 0;
    std::optional<std::int32_t> pid;     // of the environment: buffers per process
    [[nodiscard]] bool has_scheduler() const {
      return std::any_of(streams.begin(), streams.end(), [](const StreamFacts& stream) { return stream.scheduler; });
    }
  };

  void add_trace(const ctf::Trace& trace) {
    TraceFacts facts;
    facts.trace = &trace;
    facts.counts.resize(trace.layouts.size());
    facts.streams.resize(trace.streams.size());
    facts.host_name = host_of(trace.metadata);
    if (const auto vpid = trace.metadata.environment_text("vpid")) facts.pid = std::atoi(vpid->c_str());
    for (std::uint32_t index = 0; const auto& layout : trace.layouts) {
      facts.bounds.push_back(bind(trace, layout));
      read_in_place(facts.bounds.back(), trace, index++);
      const Kind kind = facts.bounds.back().kind;
      for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        if (trace.streams[i].stream_class != layout.event_class->stream_class) continue;
        facts.streams[i].user_space |= is_user_space(kind);
        facts.streams[i].scheduler |= is_scheduler(kind);
      }
    }
    traces_.push_back(std::move(facts));
  }

  // Traces without a name of their host are of the only host that is named, or of one unnamed host.
  void find_hosts() {
    std::optional<std::string> only;
    bool several = false;
    for (const TraceFacts& trace : traces_) {
      if (!trace.host_name) continue;
      several |= only && *only != *trace.host_name;
      only = trace.host_name;
    }
    std::map<std::int32_t, std::int64_t> offset_of_host;
    for (TraceFacts& trace : traces_) {
      const std::string name = trace.host_name.value_or(several ? "" : only.value_or(""));
      trace.host = view_->directory_.host(name, boot_of(trace.trace->metadata));
      const auto offset = trace.trace->clock_offset_ns();
      // perf writes 0 where it records the raw clock; that is no offset to the epoch.
      if (offset && *offset != 0) offset_of_host.try_emplace(trace.host, *offset);
    }
    // Of one host all traces share its monotonic clock, so that offsets are left out; other hosts are brought to the first
    // one's time line by their offsets to the epoch.
    if (const auto first = offset_of_host.find(0); first != offset_of_host.end()) epoch_offset_ns_ = first->second;
    for (TraceFacts& trace : traces_) {
      const auto offset = offset_of_host.find(trace.host);
      if (trace.host == 0) continue;
      if (offset == offset_of_host.end() || !epoch_offset_ns_) {
        warnings_.push_back(fmt::format("{}: its clock has no known offset to that of the first host; times of the two hosts "
                                        "cannot be compared", trace.trace->path));
        continue;
      }
      trace.shift_ns = minus(offset->second, *epoch_offset_ns_);
    }
  }

  // perflab's recorder says when it kept only what concerns process trees.
  void note_filter() {
    for (const TraceFacts& trace : traces_) {
      const auto filter = trace.trace->metadata.environment_text("scheduler_filter");
      if (!filter) continue;
      view_->scheduler_.filtered(trace.host);
      scheduler_filter_ = *filter;
      warnings_.push_back(fmt::format("{}: of the scheduler only what concerns process trees was recorded; other threads appear where they "
                                      "hold a CPU for which one of a tree waits, and their shares of a CPU are not known", trace.trace->path));
    }
  }

  // The ledger says when events of the scheduler were lost: what threads did meanwhile is not known.
  void note_lost_scheduler_events() {
    for (TraceFacts& trace : traces_) {
      for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        if (!trace.streams[i].scheduler) continue;
        const auto& files = trace.trace->streams[i].files;
        for (const auto& entry : set_.ledger()) {
          if (std::find(files.begin(), files.end(), entry.file) != files.end()) note_lost(trace, i, entry);
        }
      }
    }
  }

  void note_lost(TraceFacts& trace, std::size_t index, const ctf::LedgerEntry& entry) {
    using ctf::Loss;
    const bool is_loss = entry.loss == Loss::discarded_events || entry.loss == Loss::lost_packets ||
                         entry.loss == Loss::truncated_packet || entry.loss == Loss::undecodable_event ||
                         entry.loss == Loss::corrupt_packet;
    if (!is_loss) return;
    trace.streams[index].lossy = true;
    const ctf::Stream& stream = trace.trace->streams[index];
    const std::optional<std::int32_t> cpu = cpu_of(stream);
    // Where the ledger does not know when a loss began, it was before the first packet; when it ended, after the last.
    const std::int64_t first = first_packet_ns(*trace.trace, stream);
    const std::int64_t begin = entry.begin_ns.value_or(std::min(entry.end_ns.value_or(first), first));
    const std::int64_t end = entry.end_ns.value_or(std::max(begin, last_packet_ns(*trace.trace, stream)));
    view_->scheduler_.lost(trace.host, cpu, plus(begin, trace.shift_ns), plus(end, trace.shift_ns));
  }

  static std::optional<std::int32_t> cpu_of(const ctf::Stream& stream) {
    return stream.cpu ? std::optional(static_cast<std::int32_t>(*stream.cpu)) : std::nullopt;
  }

  void lose(const TraceFacts& trace, std::size_t index, std::int64_t begin_ns, std::int64_t end_ns) {
    view_->scheduler_.lost(trace.host, cpu_of(trace.trace->streams[index]), plus(begin_ns, trace.shift_ns),
                           plus(end_ns, trace.shift_ns));
  }

  // Between two recordings of a host, such as those of two trials, the activity of its threads is unknown. It is also
  // unknown for a recording whose packets lack begin and end times.
  void note_between_recordings() {
    std::map<std::int32_t, std::vector<std::pair<std::int64_t, std::int64_t>>> recorded;
    std::set<std::int32_t> undated;
    for (const TraceFacts& trace : traces_) {
      std::optional<std::pair<std::int64_t, std::int64_t>> span;
      for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        const ctf::Stream& stream = trace.trace->streams[i];
        if (!trace.streams[i].scheduler || stream.packets.empty()) continue;
        const std::int64_t first = first_packet_ns(*trace.trace, stream);
        const std::int64_t last = last_packet_ns(*trace.trace, stream);
        if (first > last) undated.insert(trace.host);
        if (!span) span = {first, last};
        span = {std::min(span->first, first), std::max(span->second, last)};
      }
      if (span) recorded[trace.host].emplace_back(plus(span->first, trace.shift_ns), plus(span->second, trace.shift_ns));
    }
    for (auto& [host, spans] : recorded) {
      if (undated.contains(host)) continue;
      std::ranges::sort(spans);
      std::int64_t end = spans.front().second;
      for (const auto& [first, last] : spans) {
        if (first > end) view_->scheduler_.lost(host, std::nullopt, end, first);
        end = std::max(end, last);
      }
    }
  }

  // A stream is known from its first packet on. What the streams of other CPUs say of the time before is not all.
  void note_missing_begins() {
    for (TraceFacts& trace : traces_) {
      std::vector<ctf::EventTimes> times(trace.streams.size());
      std::optional<std::int64_t> begin;
      for (std::size_t i = 0; i < times.size(); ++i) {
        times[i].first_ns = ctf::first_event_ns(*trace.trace, i);
        if (times[i].first_ns) begin = std::min(begin.value_or(*times[i].first_ns), *times[i].first_ns);
      }
      if (!begin) continue;
      for (std::size_t i = 0; i < times.size(); ++i) {
        const ctf::Stream& stream = trace.trace->streams[i];
        const auto entry = ctf::missing_begin(*trace.trace, stream, times[i], *begin);
        if (!entry) continue;
        keep(*entry, &trace);
        trace.streams[i].lossy = true;
        if (trace.streams[i].scheduler && entry->end_ns.value_or(*begin) > *begin) lose(trace, i, *begin - 1, *entry->end_ns);
      }
    }
  }

  // A stream is known up to the end of its last packet.
  void note_missing_ends() {
    for (TraceFacts& trace : traces_) {
      std::optional<std::int64_t> end;
      for (const StreamFacts& stream : trace.streams) {
        if (stream.last_ns) end = std::max(end.value_or(*stream.last_ns), *stream.last_ns);
      }
      if (!end) continue;
      for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        const ctf::Stream& stream = trace.trace->streams[i];
        const ctf::EventTimes own{trace.streams[i].first_ns, trace.streams[i].last_ns};
        const auto entry = ctf::missing_end(*trace.trace, stream, own, *end);
        if (!entry) continue;
        keep(*entry, &trace);
        trace.streams[i].lossy = true;
        if (trace.streams[i].scheduler) lose(trace, i, *entry->begin_ns, *end);
      }
    }
  }

  void note_missing_streams() {
    for (TraceFacts& trace : traces_) {
      for (const auto& entry : ctf::missing_streams(*trace.trace)) {
        keep(entry, nullptr);
        if (!trace.has_scheduler()) continue;
        const auto number = ctf::cpu_in_name(entry.file);
        const auto cpu = number ? std::optional(static_cast<std::int32_t>(*number)) : std::nullopt;
        lose_everything(trace.host, cpu);
        if (cpu) missing_cpus_.emplace(trace.host, *cpu);
      }
    }
    for (const TraceFacts& trace : traces_) {
      if (!trace.has_scheduler()) continue;
      for (const std::uint32_t cpu : ctf::cpus_of(*trace.trace)) {
        scheduled_[trace.host].insert(static_cast<std::int32_t>(cpu));
        view_->scheduler_.recorded(trace.host, static_cast<std::int32_t>(cpu));
      }
    }
  }

  // CPUs on which threads ran that the scheduler's events know, and of which they say nothing.
  void note_missing_cpus() {
    for (const auto& [host, cpu] : view_->scheduler_.missing_cpus()) {
      if (missing_cpus_.emplace(host, cpu).second) miss_cpu(host, cpu, "threads were woken on it");
    }
    for (const TraceFacts& trace : traces_) {
      const auto scheduled = scheduled_.find(trace.host);
      if (scheduled == scheduled_.end() || scheduled->second.empty()) continue;
      for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        const auto cpu = cpu_of(trace.trace->streams[i]);
        if (!trace.streams[i].user_space || !cpu || scheduled->second.contains(*cpu)) continue;
        if (missing_cpus_.contains({trace.host, *cpu}) || !has_scheduled_thread(trace, i)) continue;
        miss_cpu(trace.host, *cpu, "threads of user space ran on it");
        missing_cpus_.emplace(trace.host, *cpu);
      }
    }
  }

  // Whether an event of a stream of user space is of a thread that the scheduler's events know.
  [[nodiscard]] bool has_scheduled_thread(const TraceFacts& trace, std::size_t stream) const {
    std::set<std::int32_t> unknown;
    std::vector<bool> in_place;
    for (const BoundEvent& bound : trace.bounds) in_place.push_back(bound.in_place);
    ctf::StreamReader reader(*trace.trace, stream, {}, in_place);
    for (ctf::Event event; reader.next(event);) {
      const BoundEvent& bound = trace.bounds[event.class_index];
      if (bound.tid.slot < 0) continue;
      const auto tid = static_cast<std::int32_t>(bound.value(event, bound.tid));
      if (!unknown.insert(tid).second) continue;
      if (view_->scheduler_.knows(trace.host, tid)) return true;
    }
    return false;
  }

  void miss_cpu(std::int32_t host, std::int32_t cpu, const char* evidence) {
    lose_everything(host, cpu);
    const auto trace = std::find_if(traces_.begin(), traces_.end(), [&](const TraceFacts& candidate) {
      return candidate.host == host && candidate.has_scheduler();
    });
    ctf::LedgerEntry entry;
    entry.loss = ctf::Loss::missing_stream;
    entry.count = 1;
    entry.file = trace->trace->path;
    entry.message = fmt::format("{}: no scheduler events of CPU {} are in the trace, although {}", entry.file, cpu, evidence);
    keep(entry, nullptr);
  }

  void lose_everything(std::int32_t host, std::optional<std::int32_t> cpu) {
    constexpr std::int64_t kFar = std::int64_t{1} << 62U;
    view_->scheduler_.lost(host, cpu, -kFar, kFar);
  }

  // When events of user space were lost, what threads had half done is not joined with what comes after.
  void find_breaks() {
    for (const TraceFacts& trace : traces_) {
      for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        if (!trace.streams[i].user_space) continue;
        const auto& files = trace.trace->streams[i].files;
        for (const auto& entry : set_.ledger()) {
          if (std::find(files.begin(), files.end(), entry.file) == files.end()) continue;
          // An event at the begin of a loss precedes it; one at its end follows it.
          if (entry.begin_ns) breaks_.emplace_back(plus(*entry.begin_ns, trace.shift_ns), trace.host);
          if (entry.end_ns) breaks_.emplace_back(plus(*entry.end_ns - 1, trace.shift_ns), trace.host);
        }
      }
    }
    std::sort(breaks_.begin(), breaks_.end());
  }

  static std::int64_t first_packet_ns(const ctf::Trace& trace, const ctf::Stream& stream) {
    const bool known = !stream.packets.empty() && stream.packets.front().begin_cycles;
    return known ? trace.to_ns(*stream.packets.front().begin_cycles) : std::numeric_limits<std::int64_t>::max();
  }
  static std::int64_t last_packet_ns(const ctf::Trace& trace, const ctf::Stream& stream) {
    const bool known = !stream.packets.empty() && stream.packets.back().end_cycles;
    return known ? trace.to_ns(*stream.packets.back().end_cycles) : std::numeric_limits<std::int64_t>::min();
  }

  void run(Pass pass) {
    std::vector<ctf::MergeInput> inputs;
    for (std::size_t t = 0; t < traces_.size(); ++t) {
      TraceFacts& trace = traces_[t];
      std::vector<bool> wanted(trace.bounds.size()), in_place(trace.bounds.size());
      for (std::size_t i = 0; i < wanted.size(); ++i) {
        const Kind kind = trace.bounds[i].kind;
        in_place[i] = trace.bounds[i].in_place;
        wanted[i] = pass == Pass::user_space ? is_user_space(kind) : pass == Pass::scheduler ? is_scheduler(kind) : false;
      }
      for (std::size_t i = 0; i < trace.streams.size(); ++i) {
        const StreamFacts& stream = trace.streams[i];
        const bool takes_part = pass == Pass::user_space ? stream.user_space
            : pass == Pass::scheduler                    ? stream.scheduler
                                                         : !stream.read;
        if (takes_part) inputs.push_back({trace.trace, static_cast<std::uint32_t>(t), i, trace.shift_ns, wanted, in_place});
      }
    }
    if (inputs.empty()) return;
    ctf::Merger merger(inputs, threads_);
    std::vector<Ros::Origin> origins;
    for (const TraceFacts& trace : traces_) origins.push_back({trace.bounds.data(), trace.host, trace.pid, trace.shift_ns});
    auto next_break = breaks_.begin();
    for (auto events = merger.next_ones(); !events.empty(); events = merger.next_ones()) {
      if (pass == Pass::user_space) {
        for (; next_break != breaks_.end(); ++next_break) {
          const auto later = std::ranges::find_if(
              events, [&](const ctf::Merger::Ordered& merged) { return next_break->first < merged.event->time_ns; });
          view_->ros_.add({events.begin(), later}, origins);
          events = {later, events.end()};
          if (events.empty()) break;
          view_->ros_.lost(next_break->second);
        }
        view_->ros_.add(events, origins);
      } else {
        for (const auto& merged : events) {
          const TraceFacts& trace = traces_[merged.trace_index];
          add_scheduler_event(trace, trace.bounds[merged.event->class_index], *merged.event);
        }
      }
    }
    for (std::size_t i = 0; i < inputs.size(); ++i) note_read(traces_[inputs[i].trace_index], inputs[i].stream, merger.reader(i));
  }

  void add_scheduler_event(const TraceFacts& trace, const BoundEvent& bound, const ctf::Event& event) {
    const auto normal = scheduler_event(bound, event, trace.host, trace.trace->streams[event.stream].cpu);
    if (!normal) {
      ++incomplete_scheduler_events_;
      return;
    }
    view_->scheduler_.add(*normal);
  }

  void note_read(TraceFacts& trace, std::size_t index, const ctf::StreamReader& reader) {
    StreamFacts& stream = trace.streams[index];
    if (stream.read) return;
    stream.read = true;
    for (std::size_t i = 0; i < reader.counts().size(); ++i) {
      trace.counts[i] += reader.counts()[i];
      stream.events += reader.counts()[i];
    }
    stream.first_ns = reader.first_ns();
    stream.last_ns = reader.last_ns();
    for (const auto& entry : reader.ledger()) {
      keep(entry, &trace);
      if (stream.scheduler) note_lost(trace, index, entry);
    }
  }

  void keep(const ctf::LedgerEntry& entry, const TraceFacts* trace) {
    ledger_.push_back(entry);
    if (trace == nullptr || trace->shift_ns == 0) return;
    for (auto* instant : {&ledger_.back().begin_ns, &ledger_.back().end_ns}) {
      if (*instant) **instant = plus(**instant, trace->shift_ns);
    }
  }

  [[nodiscard]] std::uint64_t total_events() const {
    std::uint64_t total = 0;
    for (const TraceFacts& trace : traces_) {
      for (const StreamFacts& stream : trace.streams) total += stream.events;
    }
    return total;
  }

  [[nodiscard]] std::string first_loss() const {
    return ledger_.empty() ? " (metadata only, or empty streams)" : fmt::format(" ({})", ledger_.front().message);
  }

  [[nodiscard]] Json facts() const {
    Json json;
    json["paths"] = Json::array();
    for (const auto& path : paths_) json["paths"].push_back(path.string());
    std::optional<std::int64_t> begin, end;
    Json traces = Json::array(), events = Json::array();
    for (std::size_t t = 0; t < traces_.size(); ++t) {
      const TraceFacts& facts = traces_[t];
      traces.push_back(trace_json(facts, begin, end));
      for (std::size_t i = 0; i < facts.counts.size(); ++i) {
        if (facts.counts[i] == 0) continue;
        const Kind kind = facts.bounds[i].kind;
        events.push_back({{"name", facts.trace->layouts[i].event_class->name},
                          {"count", facts.counts[i]},
                          {"kind", is_user_space(kind) || is_scheduler(kind) ? Json(name_of(kind)) : Json(nullptr)},
                          {"trace", t}});
      }
    }
    json["begin_ns"] = json_or_null(begin);
    json["end_ns"] = json_or_null(end);
    json["epoch_offset_ns"] = json_or_null(epoch_offset_ns_);
    json["traces"] = std::move(traces);
    json["events"] = std::move(events);
    json["ledger"] = ledger_json();
    json["counters"] = counters_json();
    json["scheduler"] = scheduler_json();
    json["tracetools_versions"] = view_->ros_.versions();
    json["warnings"] = warnings_json();
    return json;
  }

  [[nodiscard]] static Json trace_json(const TraceFacts& facts, std::optional<std::int64_t>& begin,
                                       std::optional<std::int64_t>& end) {
    const ctf::Metadata& metadata = facts.trace->metadata;
    const auto tracer_version = [&]() -> Json {
      const auto major = metadata.environment_text("tracer_major");
      if (!major) return nullptr;
      return *major + "." + metadata.environment_text("tracer_minor").value_or("?");
    };
    std::uint64_t events = 0;
    std::optional<std::int64_t> first, last;
    Json streams = Json::array();
    const auto shifted = [&facts](std::optional<std::int64_t> time) -> std::optional<std::int64_t> {
      return time ? std::optional(plus(*time, facts.shift_ns)) : std::nullopt;
    };
    for (std::size_t i = 0; i < facts.streams.size(); ++i) {
      const StreamFacts& stream = facts.streams[i];
      const ctf::Stream& source = facts.trace->streams[i];
      events += stream.events;
      if (stream.first_ns) first = std::min(first.value_or(*stream.first_ns), *stream.first_ns);
      if (stream.last_ns) last = std::max(last.value_or(*stream.last_ns), *stream.last_ns);
      streams.push_back({{"cpu", json_or_null(source.cpu)},
                         {"instance", json_or_null(source.instance)},
                         {"packets", source.packets.size()},
                         {"events", stream.events},
                         {"bytes", source.bytes},
                         {"discarded_events", source.discarded_events},
                         {"lost_packets", source.lost_packets},
                         {"lossy", stream.lossy},
                         {"first_ns", json_or_null(shifted(stream.first_ns))},
                         {"last_ns", json_or_null(shifted(stream.last_ns))}});
    }
    first = shifted(first);
    last = shifted(last);
    if (first) begin = std::min(begin.value_or(*first), *first);
    if (last) end = std::max(end.value_or(*last), *last);
    Json clock = nullptr;
    if (!metadata.clocks.empty()) {
      const ctf::Clock& c = metadata.clocks.front();
      clock = {{"name", c.name},
               {"frequency_hz", c.frequency_hz},
               {"offset_ns", json_or_null(facts.trace->clock_offset_ns())},
               {"absolute", c.absolute}};
    }
    return {{"path", facts.trace->path},
            {"uuid", metadata.uuid ? Json(uuid_text(*metadata.uuid)) : Json(nullptr)},
            {"host", json_or_null(facts.host_name)},
            {"domain", json_or_null(metadata.environment_text("domain"))},
            {"tracer", json_or_null(metadata.environment_text("tracer_name"))},
            {"tracer_version", tracer_version()},
            {"clock", std::move(clock)},
            {"shift_ns", facts.shift_ns},
            {"events", events},
            {"first_ns", json_or_null(first)},
            {"last_ns", json_or_null(last)},
            {"streams", std::move(streams)}};
  }

  [[nodiscard]] Json ledger_json() const {
    Json json = Json::array();
    // What a broken packet says may be beyond what tables can count.
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    for (const auto& entry : ledger_) {
      json.push_back({{"kind", ctf::name_of(entry.loss)},
                      {"count", std::min<std::uint64_t>(entry.count, most)},
                      {"exact", entry.count_is_exact && entry.count <= most},
                      {"file", entry.file},
                      {"offset", json_or_null(entry.offset)},
                      {"begin_ns", json_or_null(entry.begin_ns)},
                      {"end_ns", json_or_null(entry.end_ns)},
                      {"message", entry.message}});
    }
    return json;
  }

  [[nodiscard]] Json counters_json() const {
    const Ros& ros = view_->ros_;
    const RosCounters& c = ros.counters;
    const FunctionModel::Counts& f = ros.functions().counts();
    std::uint64_t without_owner = 0, without_symbol = 0;
    for (std::size_t i = 0; i < ros.callbacks.handle.size(); ++i) {
      if (!ros.callbacks.owner.valid(i) && !is_its_own(ros.callbacks.kind[i])) ++without_owner;
      if (!ros.callbacks.symbol.valid(i)) ++without_symbol;
    }
    // Objects that only run-time events or other objects name: the trace began after they did.
    const auto without_initialisation = [](const Int64& valid_from_ns) { return valid_from_ns.null_count(); };
    return {{"callback_end_without_start", c.callback_end_without_start},
            {"nodes_without_initialisation", without_initialisation(ros.nodes.valid_from_ns)},
            {"publishers_without_initialisation", without_initialisation(ros.publishers.valid_from_ns)},
            {"subscriptions_without_initialisation", without_initialisation(ros.subscriptions.valid_from_ns)},
            {"timers_without_initialisation", without_initialisation(ros.timers.valid_from_ns)},
            {"services_without_initialisation", without_initialisation(ros.services.valid_from_ns)},
            {"callback_start_without_end", c.callback_start_without_end},
            {"callbacks_without_owner", without_owner},
            {"callbacks_without_symbol", without_symbol},
            {"publications_without_publisher", c.publications_without_publisher},
            {"takes_of_unknown_subscriptions", c.takes_of_unknown_subscriptions},
            {"enqueues_into_unknown_buffers", c.enqueues_into_unknown_buffers},
            {"dequeues_without_enqueue", c.dequeues_without_enqueue},
            {"service_messages_of_unknown_clients", c.service_messages_of_unknown_clients},
            {"requests_taken_by_several_servers", c.requests_taken_by_several_servers},
            {"writes_of_the_middleware", c.writes_of_the_middleware},
            {"functions_of_unknown_binaries", f.functions_of_unknown_binaries},
            {"functions_of_absent_files", f.functions_of_absent_files},
            {"functions_of_other_builds", f.functions_of_other_builds},
            {"functions_without_symbols", f.functions_without_symbols},
            {"function_entries_without_exit", f.entries_without_exit},
            {"function_exits_without_entry", f.exits_without_entry},
            {"events_without_thread", c.events_without_thread},
            {"events_without_process", c.events_without_process},
            {"incomplete_scheduler_events", incomplete_scheduler_events_}};
  }

  [[nodiscard]] Json scheduler_json() const {
    const Scheduler::Coverage& coverage = view_->scheduler_.coverage();
    if (coverage.events == 0) return nullptr;
    return {{"begin_ns", json_or_null(coverage.begin_ns)},
            {"end_ns", json_or_null(coverage.end_ns)},
            {"events", coverage.events},
            {"has_switches", coverage.has_switches},
            {"has_wakeups", coverage.has_wakeups},
            {"has_waking", coverage.has_waking},
            {"has_migrations", coverage.has_migrations},
            {"has_locks", has_locks()},
            {"contradictions", coverage.contradictions},
            {"inferred_states", coverage.inferred_states},
            {"recovered_wakeups", coverage.recovered_wakeups},
            {"filter", json_or_null(scheduler_filter_)}};
  }

  // Whether waits for locks were recorded; there may be none.
  [[nodiscard]] bool has_locks() const {
    return std::any_of(traces_.begin(), traces_.end(), [](const TraceFacts& trace) {
      return std::any_of(trace.bounds.begin(), trace.bounds.end(),
                         [](const BoundEvent& bound) { return bound.kind == Kind::futex_wait; });
    });
  }

  [[nodiscard]] Json warnings_json() const {
    Json json = warnings_;
    for (const TraceFacts& facts : traces_) {
      for (const std::string& warning : facts.trace->metadata.warnings) json.push_back(warning);
    }
    return json;
  }

  std::span<const std::filesystem::path> paths_;
  unsigned threads_;
  std::optional<std::set<std::string, std::less<>>> wanted_;  // columns
  ctf::TraceSet set_;
  std::shared_ptr<View> view_;
  std::vector<TraceFacts> traces_;
  ctf::Ledger ledger_;
  std::vector<std::pair<std::int64_t, std::int32_t>> breaks_;  // instants and hosts
  std::optional<std::int64_t> epoch_offset_ns_;
  std::vector<std::string> warnings_;
  std::uint64_t incomplete_scheduler_events_ = 0;
  std::optional<std::string> scheduler_filter_;
  std::set<std::pair<std::int32_t, std::int32_t>> missing_cpus_;  // host, CPU: of which the ledger says that
  std::map<std::int32_t, std::set<std::int32_t>> scheduled_;  // by host: CPUs of which there are scheduler events
};

std::shared_ptr<const View> View::open(std::span<const std::filesystem::path> paths, const ViewOptions& options) {
  return ViewBuilder(paths, options).build();
}

}  // namespace perflab::traceview
