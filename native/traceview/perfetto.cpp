#include "traceview/perfetto.h"

#include <algorithm>
#include <array>
#include <map>
#include <span>
#include <unordered_map>
#include <unordered_set>

#include "traceview/arrow.h"
#include "traceview/protobuf_writer.h"

namespace perflab::traceview {
namespace {

// Field numbers of Perfetto's public messages, protos/perfetto/trace/**.proto in its repository.
namespace proto {
constexpr std::uint32_t kTracePacket = 1;  // trace.proto, Trace.packet
namespace packet {                         // trace_packet.proto
constexpr std::uint32_t kFtraceEvents = 1, kClockSnapshot = 6, kTimestamp = 8, kSequence = 10,
                        kTrackEvent = 11, kInternedData = 12, kSequenceFlags = 13, kSystemInfo = 45,
                        kDefaults = 59, kTrackDescriptor = 60, kFirstOnSequence = 87, kTraceAttributes = 126;
constexpr std::uint64_t kStateCleared = 1, kNeedsState = 2;  // SequenceFlags
}  // namespace packet
namespace defaults {  // trace_packet_defaults.proto
constexpr std::uint32_t kClock = 58;
}
namespace clocks {  // clock_snapshot.proto, builtin_clock.proto
constexpr std::uint32_t kClocks = 1, kPrimary = 2, kId = 1, kTime = 2;
constexpr std::uint64_t kRealtime = 1, kMonotonic = 3, kBoottime = 6;
}  // namespace clocks
namespace system {  // system_info.proto
constexpr std::uint32_t kUtsname = 1, kSysname = 1, kRelease = 3;
}
namespace attributes {  // trace_attributes.proto
constexpr std::uint32_t kAttribute = 1, kKey = 1, kText = 3;
}
namespace track {  // track_event/track_descriptor.proto, process_descriptor.proto, thread_descriptor.proto
constexpr std::uint32_t kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kOrdering = 11,
                        kRank = 12;
constexpr std::uint32_t kProcessPid = 1, kProcessName = 6;
constexpr std::uint32_t kThreadPid = 1, kThreadTid = 2, kThreadName = 5;
constexpr std::uint64_t kExplicit = 3;  // ChildTracksOrdering
}  // namespace track
namespace event {  // track_event/track_event.proto
constexpr std::uint32_t kCategory = 3, kAnnotation = 4, kType = 9, kNameIid = 10, kTrack = 11, kName = 23,
                        kFlow = 47, kTerminatingFlow = 48;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kInstant = 3;  // Type
}  // namespace event
namespace annotation {  // track_event/debug_annotation.proto
constexpr std::uint32_t kNameIid = 1, kInt = 4, kText = 6, kPointer = 7, kTextIid = 17;
}
namespace interned {  // interned_data/interned_data.proto; in all its entries field 1 is iid and field 2 is
                      // the text
constexpr std::uint32_t kCategories = 1, kEventNames = 2, kAnnotationNames = 3, kAnnotationTexts = 29;
constexpr std::uint32_t kIid = 1, kText = 2;
}  // namespace interned
namespace ftrace {  // ftrace/ftrace_event_bundle.proto, ftrace_event.proto, sched.proto
constexpr std::uint32_t kCpu = 1, kEvent = 2, kCompactSched = 4;
constexpr std::uint32_t kEventTime = 1, kEventPid = 2, kSchedWaking = 20;
constexpr std::uint32_t kWakingComm = 1, kWakingPid = 2, kWakingPriority = 3, kWakingSuccess = 4,
                        kWakingCpu = 5;
constexpr std::uint32_t kSwitchTime = 1, kSwitchState = 2, kSwitchPid = 3, kSwitchPriority = 4, kNames = 5,
                        kSwitchName = 6;  // CompactSched
// prev_state as encoded by sched_switch since Linux 4.14.
constexpr std::uint64_t kRunnable = 0, kSleeping = 1, kUninterruptible = 2, kDead = 0x10, kPreempted = 0x100;
constexpr std::uint64_t kStopped = 0x4, kTraced = 0x8;
constexpr std::uint64_t kOther = 0x40 | 0x80;  // "PI": parked or idle
constexpr std::uint64_t kUnknown = 0x8000;     // no state: NULL in Perfetto's tables
}  // namespace ftrace
}  // namespace proto

constexpr std::uint64_t kSequence = 1;            // one writer makes all packets
constexpr std::int32_t kNextNumber = 10'000'000;  // above all pids of Linux (at most 4,194,304)
constexpr std::size_t kSwitchesPerBundle = 4096;
constexpr std::size_t kFlush = std::size_t{1} << 20;

// Rows of a table, grouped by the row of another table that they refer to; stable.
class Groups {
 public:
  Groups(const Int32& keys, std::size_t groups) : first_(groups + 1) {
    const auto known = [&](std::size_t row) {
      return keys.valid(row) && keys[row] >= 0 && at(keys[row]) < groups;
    };
    for (std::size_t row = 0; row < keys.size(); ++row) {
      if (known(row)) ++first_[at(keys[row]) + 1];
    }
    for (std::size_t i = 1; i < first_.size(); ++i) first_[i] += first_[i - 1];
    rows_.resize(first_.back());
    std::vector<std::uint32_t> place(first_.begin(), first_.end() - 1);
    for (std::size_t row = 0; row < keys.size(); ++row) {
      if (known(row)) rows_[place[at(keys[row])]++] = static_cast<std::uint32_t>(row);
    }
  }
  [[nodiscard]] std::span<const std::uint32_t> of(std::size_t group) const {
    return std::span(rows_).subspan(first_[group], first_[group + 1] - first_[group]);
  }

 private:
  std::vector<std::uint32_t> first_, rows_;
};

// Slices of all kinds on one track nest.
struct Slice {
  enum class Kind : std::uint8_t { callback, publication, phase, function, loss };
  std::int64_t begin_ns = 0, end_ns = kNotSeen;
  std::uint32_t row = 0;
  Kind kind = Kind::callback;
};

// Numbers are unique in Perfetto: if several objects share a number, the first keeps it.
class Numbers {
 public:
  Numbers(const Processes& processes, const Threads& threads) {
    for (std::size_t i = 0; i < processes.pid.size(); ++i) {
      std::int32_t number = processes.pid[i];
      while (!owner_.try_emplace(number, static_cast<std::int32_t>(i)).second) number = next(number);
      pids_.push_back(number);
    }
    for (std::size_t i = 0; i < threads.tid.size(); ++i) {
      const std::int32_t process = threads.process.valid(i) ? threads.process[i] : kNone;
      const auto place = at(process);
      std::int32_t number = threads.tid[i];
      if (process != kNone) number += pids_[place] - processes.pid[place];
      while (!is_free(number, process)) number = next(number);
      used_.insert(number);
      tids_.push_back(number);
      renumbered_ += number != threads.tid[i];
    }
  }
  [[nodiscard]] std::int32_t pid(std::size_t row) const { return pids_[row]; }
  [[nodiscard]] std::int32_t tid(std::size_t row) const { return tids_[row]; }
  [[nodiscard]] std::uint64_t renumbered() const { return renumbered_; }

 private:
  static std::int32_t next(std::int32_t number) {
    const bool is_last = number > std::numeric_limits<std::int32_t>::max() - kNextNumber;
    return is_last ? number % kNextNumber + 1 : number + kNextNumber;
  }
  // A process number is shared only by its main thread; 0 is the idle task.
  [[nodiscard]] bool is_free(std::int32_t number, std::int32_t process) const {
    const auto owner = owner_.find(number);
    return number != 0 && (owner == owner_.end() || owner->second == process) && !used_.contains(number);
  }

  std::unordered_map<std::int32_t, std::int32_t> owner_;  // number -> row of processes
  std::unordered_set<std::int32_t> used_;
  std::vector<std::int32_t> pids_, tids_;
  std::uint64_t renumbered_ = 0;
};

class PerfettoWriter {
 public:
  PerfettoWriter(const ExportTables& tables, const ExportOptions& options, const ExportSink& sink)
      : t_(tables), options_(options), sink_(sink), numbers_(*tables.processes, *tables.threads) {}

  ExportCounts write() {
    write_preamble();
    write_quality();
    write_threads();
    write_scheduler();
    flush();
    counts_.emplace_back("callbacks", callbacks_), counts_.emplace_back("publications", publications_);
    counts_.emplace_back("phases", phases_), counts_.emplace_back("function_calls", functions_);
    counts_.emplace_back("flows", flows_), counts_.emplace_back("lost_messages", lost_messages_);
    counts_.emplace_back("losses", losses_), counts_.emplace_back("switches", switches_);
    counts_.emplace_back("wake_ups", wakings_), counts_.emplace_back("without_end", without_end_);
    counts_.emplace_back("crossing", crossing_), counts_.emplace_back("without_thread", without_thread_);
    counts_.emplace_back("renumbered_threads", numbers_.renumbered());
    counts_.emplace_back("bytes", bytes_);
    return std::move(counts_);
  }

 private:
  using Message = ProtobufWriter::Message;
  enum Child : std::uint64_t { kThread, kExecutor, kFunctions, kLost, kChildren };

  // Packets
  // ------------------------------------------------------------------------------------------------------

  template <typename F>
  void packet(F&& fill, std::uint64_t flags = proto::packet::kNeedsState) {
    const std::size_t begun = out_.begin(proto::kTracePacket);
    out_.varint(proto::packet::kSequence, kSequence);
    out_.varint(proto::packet::kSequenceFlags, flags);
    fill();
    if (!interned_.empty()) {
      out_.text(proto::packet::kInternedData, interned_.bytes());
      interned_.clear();
    }
    out_.end(begun);
    if (out_.bytes().size() >= kFlush) flush();
  }

  void flush() {
    bytes_ += out_.bytes().size();
    if (!out_.empty()) sink_(out_.bytes());
    out_.clear();
  }

  // Number of a text that this packet or an earlier one defines.
  std::uint64_t intern(std::uint32_t kind, std::string_view text) {
    auto& texts = texts_[kind];
    const auto [found, is_new] = texts.try_emplace(std::string(text), texts.size() + 1);
    if (is_new) {
      const Message message(interned_, kind);
      interned_.varint(proto::interned::kIid, found->second);
      interned_.text(proto::interned::kText, text);
    }
    return found->second;
  }
  std::uint64_t event_name(std::string_view text) { return intern(proto::interned::kEventNames, text); }

  template <typename F>
  void annotate(const char* name, F&& value) {
    const std::uint64_t iid = intern(proto::interned::kAnnotationNames, name);
    const Message message(out_, proto::event::kAnnotation);
    out_.varint(proto::annotation::kNameIid, iid);
    value();
  }
  void annotate(const char* name, std::int64_t value) {
    annotate(name, [&] { out_.integer(proto::annotation::kInt, value); });
  }
  // Omitted if it does not fit 64 bits: damaged packets may have any time.
  void annotate_difference(const char* name, std::int64_t later, std::int64_t earlier) {
    std::int64_t value = 0;
    if (!__builtin_sub_overflow(later, earlier, &value)) annotate(name, value);
  }
  void annotate_text(const char* name, std::string_view value) {
    const std::uint64_t iid = intern(proto::interned::kAnnotationTexts, value);
    annotate(name, [&] { out_.varint(proto::annotation::kTextIid, iid); });
  }

  template <typename F>
  void track_event(std::uint64_t track, std::int64_t time_ns, std::uint64_t type, F&& fill) {
    packet([&] {
      out_.integer(proto::packet::kTimestamp, time_ns);
      const Message message(out_, proto::packet::kTrackEvent);
      out_.varint(proto::event::kType, type);
      out_.varint(proto::event::kTrack, track);
      fill();
    });
  }

  template <typename F>
  void track(std::uint64_t uuid, std::optional<std::uint64_t> parent, F&& fill) {
    packet([&] {
      const Message message(out_, proto::packet::kTrackDescriptor);
      out_.varint(proto::track::kUuid, uuid);
      if (parent) out_.varint(proto::track::kParent, *parent);
      fill();
    });
  }

  [[nodiscard]] std::uint64_t process_track(std::size_t row) const { return 1 + row; }
  [[nodiscard]] std::uint64_t thread_track(std::size_t row, Child child = kThread) const {
    return 1 + t_.processes->pid.size() + row * kChildren + child;
  }
  [[nodiscard]] std::uint64_t quality_track() const { return thread_track(t_.threads->tid.size()); }

  // Preamble
  // ------------------------------------------------------------------------------------------------------

  [[nodiscard]] std::int64_t begin_ns() const { return options_.begin_ns.value_or(0); }

  void write_preamble() {
    packet(
        [&] {
          out_.varint(proto::packet::kFirstOnSequence, 1);
          const Message message(out_, proto::packet::kDefaults);
          out_.varint(proto::defaults::kClock, proto::clocks::kBoottime);
        },
        proto::packet::kStateCleared);
    // Perfetto takes ftrace times as boot clock and the boot clock as its own. The trace's clock gets that
    // name here; only its offset to the time of day matters.
    packet([&] {
      const Message message(out_, proto::packet::kClockSnapshot);
      const auto clock = [&](std::uint64_t id, std::int64_t time_ns) {
        const Message clock_message(out_, proto::clocks::kClocks);
        out_.varint(proto::clocks::kId, id);
        out_.integer(proto::clocks::kTime, time_ns);
      };
      clock(proto::clocks::kBoottime, begin_ns());
      clock(proto::clocks::kMonotonic, begin_ns());
      std::int64_t day_ns = 0;
      if (options_.epoch_offset_ns &&
          !__builtin_add_overflow(begin_ns(), *options_.epoch_offset_ns, &day_ns)) {
        clock(proto::clocks::kRealtime, day_ns);
      }
      out_.varint(proto::clocks::kPrimary, proto::clocks::kBoottime);
    });
    // Perfetto decodes prev_state as the kernel of this release encodes it.
    packet([&] {
      const Message message(out_, proto::packet::kSystemInfo);
      const Message uts_name(out_, proto::system::kUtsname);
      out_.text(proto::system::kSysname, "Linux");
      out_.text(proto::system::kRelease,
                "4.15.0 (how states are encoded here; the kernel that was traced may be another)");
    });
    for (std::size_t i = 0; i < t_.processes->pid.size(); ++i) {
      track(process_track(i), std::nullopt, [&] {
        const Message message(out_, proto::track::kProcess);
        out_.integer(proto::track::kProcessPid, numbers_.pid(i));
        out_.text(proto::track::kProcessName, export_name(options_.processes, static_cast<std::int32_t>(i)));
      });
    }
  }

  void write_quality() {
    packet([&] {
      const Message message(out_, proto::packet::kTraceAttributes);
      for (const std::string& line : options_.quality) {
        const Message attribute(out_, proto::attributes::kAttribute);
        out_.text(proto::attributes::kKey,
                  "perflab_quality_" + std::to_string(&line - options_.quality.data() + 1));
        out_.text(proto::attributes::kText, line);
      }
    });
    const std::uint64_t root = quality_track();
    track(root, std::nullopt, [&] { out_.text(proto::track::kName, "Data quality"); });
    for (const std::string& line : options_.quality) instant(root, begin_ns(), "quality", line, [] {});
    for (const ExportMark& mark : options_.marks) instant(root, mark.time_ns, "quality", mark.text, [] {});
    std::map<std::string, std::vector<std::size_t>> by_track;
    for (std::size_t i = 0; i < options_.losses.size(); ++i) by_track[options_.losses[i].track].push_back(i);
    std::uint64_t uuid = root;
    for (const auto& [name, rows] : by_track) {
      track(++uuid, root, [&, &text = name] { out_.text(proto::track::kName, text); });
      std::vector<Slice> slices;
      for (const std::size_t row : rows) {
        const ExportLoss& loss = options_.losses[row];
        ++losses_;
        if (loss.span.begin_ns && loss.span.end_ns && *loss.span.begin_ns < *loss.span.end_ns) {
          slices.push_back(
              {*loss.span.begin_ns, *loss.span.end_ns, static_cast<std::uint32_t>(row), Slice::Kind::loss});
          continue;
        }
        const bool is_instant = loss.span.begin_ns && loss.span.end_ns;
        const char* when = is_instant           ? "at this time"
                           : loss.span.begin_ns ? "at this time or later"
                           : loss.span.end_ns   ? "at this time or earlier"
                                                : "time unknown";
        const std::int64_t time = loss.span.end_ns.value_or(loss.span.begin_ns.value_or(begin_ns()));
        instant(uuid, time, "loss", loss.text, [&] { annotate_text("when", when); });
      }
      write_nested(uuid, slices);
    }
  }

  template <typename F>
  void instant(std::uint64_t on, std::int64_t time_ns, const char* category, std::string_view name,
               F&& fill) {
    const std::uint64_t kind = intern(proto::interned::kCategories, category), iid = event_name(name);
    track_event(on, time_ns, proto::event::kInstant, [&] {
      out_.varint(proto::event::kCategory, kind);
      out_.varint(proto::event::kNameIid, iid);
      fill();
    });
  }

  // Threads
  // ----------------------------------------------------------------------------------------------------------

  void write_threads() {
    const std::size_t threads = t_.threads->tid.size();
    const Groups callbacks(t_.callback_instances->thread, threads),
        publications(t_.publications->thread, threads);
    const Groups phases(t_.phases->thread, threads), calls(t_.function_calls->thread, threads);
    for (const Int32* column : {&t_.callback_instances->thread, &t_.publications->thread, &t_.phases->thread,
                                &t_.function_calls->thread}) {
      without_thread_ += column->null_count();
    }
    find_flows();
    find_lost_messages(threads);
    const Groups lost(lost_thread_, threads);
    callback_iids_.resize(t_.callbacks->handle.size());
    function_iids_.resize(options_.functions.size());
    for (std::size_t i = 0; i < threads; ++i) {
      if (!t_.threads->process.valid(i)) continue;  // a thread with scheduler events only
      describe(i);
      std::vector<Slice> slices;
      for (const std::uint32_t row : callbacks.of(i)) {
        const auto& table = *t_.callback_instances;
        slices.push_back({table.start_ns[row], end_of(table.end_ns, row), row, Slice::Kind::callback});
      }
      for (const std::uint32_t row : publications.of(i)) add_publication(row, slices);
      write_nested(thread_track(i), slices);

      slices.clear();
      for (const std::uint32_t row : phases.of(i)) {
        slices.push_back({t_.phases->start_ns[row], end_of(t_.phases->end_ns, row), row, Slice::Kind::phase});
      }
      write_child(i, kExecutor, "executor", slices);

      slices.clear();
      for (const std::uint32_t row : calls.of(i)) {
        const auto& table = *t_.function_calls;
        slices.push_back({table.start_ns[row], end_of(table.end_ns, row), row, Slice::Kind::function});
      }
      write_child(i, kFunctions, "functions", slices);
      write_lost_messages(i, lost.of(i));
    }
  }

  static std::int64_t end_of(const Int64& ends, std::size_t row) {
    return ends.valid(row) ? ends[row] : kNotSeen;
  }

  void describe(std::size_t row) {
    const std::int32_t process = t_.threads->process[row];
    track(thread_track(row), process_track(at(process)), [&] {
      const std::size_t begun = out_.begin(proto::track::kThread);
      out_.integer(proto::track::kThreadPid, numbers_.pid(at(process)));
      out_.integer(proto::track::kThreadTid, numbers_.tid(row));
      out_.text(proto::track::kThreadName, export_name(options_.threads, static_cast<std::int32_t>(row)));
      out_.end(begun);
      out_.varint(proto::track::kOrdering, proto::track::kExplicit);
    });
  }

  void child_track(std::size_t thread, Child child, const char* name) {
    track(thread_track(thread, child), thread_track(thread), [&] {
      out_.text(proto::track::kName, name);
      out_.varint(proto::track::kRank, child);
    });
  }

  void write_child(std::size_t thread, Child child, const char* name, std::vector<Slice>& slices) {
    if (slices.empty()) return;
    child_track(thread, child, name);
    write_nested(thread_track(thread, child), slices);
  }

  // The slice of a publication spans from the first to the last layer that recorded it.
  void add_publication(std::uint32_t row, std::vector<Slice>& slices) {
    const Publications& table = *t_.publications;
    const auto first = published_ns(table, row);
    if (!first) return;
    std::int64_t last = *first;
    for (const Int64* layer :
         {&table.intra_ns, &table.rclcpp_ns, &table.rcl_ns, &table.rmw_ns, &table.dds_ns}) {
      if (layer->valid(row)) last = std::max(last, (*layer)[row]);
    }
    slices.push_back({*first, last, row, Slice::Kind::publication});
  }

  // Slices of a track must nest, and a slice without an end must not contain what follows it.
  void write_nested(std::uint64_t on, std::vector<Slice>& slices) {
    std::stable_sort(slices.begin(), slices.end(), [](const Slice& a, const Slice& b) {
      if (a.begin_ns != b.begin_ns) return a.begin_ns < b.begin_ns;
      if ((a.end_ns == kNotSeen) != (b.end_ns == kNotSeen)) return a.end_ns == kNotSeen;
      return a.end_ns > b.end_ns;
    });
    std::vector<std::int64_t> open;  // ends of the open slices
    const auto close_until = [&](std::int64_t time_ns) {
      for (; !open.empty() && open.back() <= time_ns; open.pop_back()) {
        track_event(on, open.back(), proto::event::kEnd, [] {});
      }
    };
    for (const Slice& slice : slices) {
      close_until(slice.begin_ns);
      if (slice.end_ns == kNotSeen) {
        ++without_end_;
        const bool goes_on = &slice == &slices.back() && open.empty();
        write_slice(on, slice, goes_on ? proto::event::kBegin : proto::event::kInstant, "end", "not seen");
        continue;
      }
      if (!open.empty() && slice.end_ns > open.back()) {
        ++crossing_;
        write_slice(on, slice, proto::event::kInstant, "end", "after that of the slice around it");
        continue;
      }
      write_slice(on, slice, proto::event::kBegin, nullptr, nullptr);
      open.push_back(slice.end_ns);
    }
    close_until(std::numeric_limits<std::int64_t>::max());
  }

  void write_slice(std::uint64_t on, const Slice& slice, std::uint64_t type, const char* remark,
                   const char* text) {
    const auto [category, name] = title(slice);
    const std::uint64_t kind = intern(proto::interned::kCategories, category);
    track_event(on, slice.begin_ns, type, [&, name = name] {
      out_.varint(proto::event::kCategory, kind);
      out_.varint(proto::event::kNameIid, name);
      if (remark != nullptr) annotate_text(remark, text);
      if (slice.kind == Slice::Kind::callback) fill_callback(slice);
      if (slice.kind == Slice::Kind::publication) fill_publication(slice);
      if (slice.kind == Slice::Kind::phase) fill_phase(slice);
    });
  }

  std::pair<const char*, std::uint64_t> title(const Slice& slice) {
    switch (slice.kind) {
      case Slice::Kind::callback: {
        ++callbacks_;
        return {"callback", callback_name(t_.callback_instances->callback, slice.row)};
      }
      case Slice::Kind::publication: {
        ++publications_;
        const bool known = t_.publications->publisher.valid(slice.row);
        const std::int32_t publisher = known ? t_.publications->publisher[slice.row] : kNone;
        auto [found, is_new] = publisher_iids_.try_emplace(publisher, 0);
        if (is_new) {
          found->second = event_name("publish " + (known ? export_name(options_.publishers, publisher)
                                                         : std::string("by a publisher that is not known")));
        }
        return {"publication", found->second};
      }
      case Slice::Kind::phase:
        ++phases_;
        return {"executor",
                event_name(names(PhaseKind{})[static_cast<std::size_t>(t_.phases->phase[slice.row])])};
      case Slice::Kind::function: {
        ++functions_;
        const std::int32_t row = t_.function_calls->function[slice.row];
        if (row < 0 || at(row) >= function_iids_.size()) {
          return {"function", event_name(export_name(options_.functions, row))};
        }
        std::uint64_t& iid = function_iids_[at(row)];
        if (iid == 0) iid = event_name(export_name(options_.functions, row));
        return {"function", iid};
      }
      case Slice::Kind::loss:
        break;
    }
    return {"loss", event_name(options_.losses[slice.row].text)};
  }

  std::uint64_t callback_name(const Int32& column, std::size_t row) {
    if (!column.valid(row)) return event_name("a callback that is not known");
    std::uint64_t& iid = callback_iids_[at(column[row])];
    if (iid == 0) iid = event_name(export_name(options_.callbacks, column[row]));
    return iid;
  }

  void fill_callback(const Slice& slice) {
    const CallbackInstances& table = *t_.callback_instances;
    const std::size_t row = slice.row;
    if (table.callback.valid(row)) {
      const auto callback = at(table.callback[row]);
      annotate("handle", [&] { out_.varint(proto::annotation::kPointer, t_.callbacks->handle[callback]); });
      annotate_text("kind", names(CallbackKind{})[static_cast<std::size_t>(t_.callbacks->kind[callback])]);
      if (t_.callbacks->symbol.valid(callback))
        annotate_text("symbol", as_utf8(t_.callbacks->symbol[callback]));
    }
    if (const auto due = table.due_ns.at(row)) {
      annotate("due_ns", *due);
      annotate_difference("late_ns", slice.begin_ns, *due);
    }
    const Handled& handled = handled_[row];
    if (handled.publication == kNone) return;
    if (!is_in_gap(handled.published_ns, slice.begin_ns))
      annotate_difference("latency_ns", slice.begin_ns, handled.published_ns);
    if (handled.published_ns < slice.begin_ns) out_.fixed64(proto::event::kTerminatingFlow, row + 1);
  }

  void fill_publication(const Slice& slice) {
    if (t_.publications->source_timestamp.valid(slice.row)) {
      annotate("source_timestamp", t_.publications->source_timestamp[slice.row]);
    }
    for (const std::uint32_t instance : flows_from_->of(slice.row)) {
      if (handled_[instance].published_ns >= t_.callback_instances->start_ns[instance]) continue;
      out_.fixed64(proto::event::kFlow, instance + 1);
      ++flows_;
    }
  }

  void fill_phase(const Slice& slice) {
    if (!t_.phases->callback.valid(slice.row)) return;
    annotate_text("callback", export_name(options_.callbacks, t_.phases->callback[slice.row]));
  }

  // Finds the publication that each callback instance handles: by its take, or its delivery within the
  // process.
  void find_flows() {
    const CallbackInstances& table = *t_.callback_instances;
    handled_.resize(table.callback.size());
    Int32 publication;
    for (std::size_t row = 0; row < handled_.size(); ++row) {
      std::optional<std::int32_t> found;
      if (table.take.valid(row)) found = t_.takes->publication.at(at(table.take[row]));
      if (table.delivery.valid(row)) {
        found = t_.intra_deliveries->publication.at(at(table.delivery[row]));
      }
      std::optional<std::int64_t> published;
      if (found) published = published_ns(*t_.publications, at(*found));
      publication.push(published ? found : std::nullopt);
      if (published) handled_[row] = {*found, *published};
    }
    flows_from_.emplace(publication, t_.publications->publisher.size());
  }

  [[nodiscard]] bool is_in_gap(std::int64_t begin_ns, std::int64_t end_ns) const {
    const auto after = std::upper_bound(options_.gaps.begin(), options_.gaps.end(), end_ns,
                                        [](std::int64_t time, const auto& gap) { return time < gap.first; });
    return after != options_.gaps.begin() && std::prev(after)->second >= begin_ns;
  }

  // Finds messages that were overwritten in a ring buffer or not taken from the middleware.
  void find_lost_messages(std::size_t threads) {
    const auto add = [&](std::optional<std::int32_t> thread, std::int64_t time_ns, std::string text) {
      if (!thread || at(*thread) >= threads) {
        ++without_thread_;
        return;
      }
      lost_thread_.push(*thread);
      lost_.push_back({time_ns, std::move(text)});
    };
    const IntraDeliveries& table = *t_.intra_deliveries;
    for (std::size_t row = 0; row < table.lost.size(); ++row) {
      if (!table.lost.valid(row) || table.lost[row] == 0 || !table.enqueue_ns.valid(row)) continue;
      const std::string name = table.subscription.valid(row)
                                   ? export_name(options_.subscriptions, table.subscription[row])
                                   : "a subscription that is not known";
      add(table.enqueue_thread.at(row), table.enqueue_ns[row], "overwritten: " + name);
    }
    for (const auto& [publication, subscription] : options_.not_taken) {
      const auto row = at(publication);
      if (publication < 0 || row >= t_.publications->publisher.size()) continue;
      const auto published = published_ns(*t_.publications, row);
      if (!published) continue;
      add(t_.publications->thread.at(row), *published,
          "not taken: " + export_name(options_.subscriptions, subscription));
    }
  }

  void write_lost_messages(std::size_t thread, std::span<const std::uint32_t> rows) {
    if (rows.empty()) return;
    child_track(thread, kLost, "lost messages");
    for (const std::uint32_t row : rows) {
      ++lost_messages_;
      instant(thread_track(thread, kLost), lost_[row].time_ns, "lost message", lost_[row].text, [] {});
    }
  }

  // Scheduler
  // ----------------------------------------------------------------------------------------------------------

  // Perfetto derives its tables from events: a switch to each stretch of running, a switch away if nothing
  // follows on the CPU, and a waking where a thread begins to wait for a CPU.
  void write_scheduler() {
    const ThreadStates& states = *t_.thread_states;
    const std::size_t n = states.thread.size();
    if (n == 0) return;
    find_first_cpus();
    find_states_after();
    std::map<std::uint32_t, std::vector<std::uint32_t>> running;
    for (std::size_t row = 0; row < n; ++row) {
      if (states.state[row] == ThreadState::running && states.cpu.valid(row)) {
        running[cpu_of(row)].push_back(static_cast<std::uint32_t>(row));
      }
    }
    for (auto& [cpu, rows] : running) write_cpu(cpu, rows);
    write_wakings();
  }

  [[nodiscard]] std::size_t host_of(std::size_t state) const {
    return at(t_.threads->host[static_cast<std::size_t>(t_.thread_states->thread[state])]);
  }
  [[nodiscard]] std::uint32_t cpu_of(std::size_t state) const {
    return first_cpu_[host_of(state)] + static_cast<std::uint32_t>(t_.thread_states->cpu[state]);
  }

  void find_first_cpus() {
    const ThreadStates& states = *t_.thread_states;
    std::size_t hosts = 1;
    for (std::size_t i = 0; i < t_.threads->host.size(); ++i) {
      hosts = std::max(hosts, at(t_.threads->host[i]) + 1);
    }
    std::vector<std::uint32_t> cpus(hosts);
    last_state_ns_.assign(hosts, std::numeric_limits<std::int64_t>::min());
    for (std::size_t row = 0; row < states.thread.size(); ++row) {
      const std::size_t host = host_of(row);
      last_state_ns_[host] = std::max(last_state_ns_[host], states.end_ns[row]);
      if (states.cpu.valid(row))
        cpus[host] = std::max(cpus[host], static_cast<std::uint32_t>(states.cpu[row]) + 1);
    }
    first_cpu_.assign(hosts, 0);
    for (std::size_t host = 1; host < hosts; ++host) first_cpu_[host] = first_cpu_[host - 1] + cpus[host - 1];
  }

  // For each stretch of running: the state after it, if it is known until the thread runs again or to the
  // end. Otherwise Perfetto would show one state for the whole time.
  void find_states_after() {
    const ThreadStates& states = *t_.thread_states;
    const std::size_t n = states.thread.size();
    state_after_.assign(n, proto::ftrace::kUnknown);
    is_waking_.assign(n, false);
    for (std::size_t row = 0; row < n;) {
      const bool runs = states.state[row] == ThreadState::running;
      std::size_t next = runs ? row + 1 : row;
      std::int64_t time_ns = runs ? states.end_ns[row] : states.start_ns[row];
      bool is_known = true;
      const auto is_same = [&] { return next < n && states.thread[next] == states.thread[row]; };
      for (; is_same() && states.state[next] != ThreadState::running; ++next) {
        is_known &= states.start_ns[next] == time_ns;
        time_ns = states.end_ns[next];
      }
      const bool ended = runs && states.end_state.valid(row) && states.end_state[row] == EndState::ended;
      if (is_same()) {
        is_known &= states.start_ns[next] == time_ns;
      } else {
        is_known &= ended || time_ns >= last_state_ns_[host_of(row)];
      }
      if (is_known) {
        if (runs) state_after_[row] = encoded(states, row);
        for (std::size_t i = runs ? row + 1 : row; i < next; ++i) {
          // A thread that moves to another CPU while waiting continues to wait.
          const bool waits_on = i > row && states.state[i - 1] == ThreadState::woken;
          is_waking_[i] = states.state[i] == ThreadState::woken && !waits_on;
        }
      }
      row = std::max(next, row + 1);
    }
  }

  static std::uint64_t encoded(const ThreadStates& states, std::size_t row) {
    if (!states.end_state.valid(row)) return proto::ftrace::kUnknown;
    constexpr std::array kStates{
        proto::ftrace::kPreempted, proto::ftrace::kSleeping, proto::ftrace::kUninterruptible,
        proto::ftrace::kStopped,   proto::ftrace::kTraced,   proto::ftrace::kDead,
        proto::ftrace::kOther};
    return kStates[static_cast<std::size_t>(states.end_state[row])];
  }

  [[nodiscard]] std::int32_t number_of(std::size_t state) const {
    return numbers_.tid(at(t_.thread_states->thread[state]));
  }
  [[nodiscard]] std::string comm_of(std::size_t state) const {
    return export_name(options_.threads, t_.thread_states->thread[state]);
  }

  // Switches of a bundle, column by column.
  struct Switches {
    ProtobufWriter times, states, pids, priorities, names;
    std::vector<std::string> comms;
    std::unordered_map<std::int32_t, std::uint64_t> comm_by_thread;
    std::int64_t last_ns = 0;
    std::size_t n = 0;
  };

  void write_cpu(std::uint32_t cpu, std::vector<std::uint32_t>& rows) {
    const ThreadStates& states = *t_.thread_states;
    std::sort(rows.begin(), rows.end(), [&](std::uint32_t a, std::uint32_t b) {
      return states.start_ns[a] != states.start_ns[b] ? states.start_ns[a] < states.start_ns[b] : a < b;
    });
    Switches bundle;
    const auto idle = [&](std::int64_t time_ns, std::uint64_t state) {
      add_switch(cpu, bundle, time_ns, state, kNone);
    };
    // Perfetto only registers the CPU at its first switch.
    idle(states.start_ns[rows.front()], proto::ftrace::kRunnable);
    std::optional<std::uint32_t> before;
    for (const std::uint32_t row : rows) {
      std::uint64_t state = proto::ftrace::kRunnable;  // of the idle task
      if (before && states.end_ns[*before] < states.start_ns[row]) {
        idle(states.end_ns[*before], state_after_[*before]);
      } else if (before) {
        const bool is_exact = states.end_ns[*before] == states.start_ns[row];
        state = is_exact ? state_after_[*before] : proto::ftrace::kUnknown;
      }
      add_switch(cpu, bundle, states.start_ns[row], state, static_cast<std::int32_t>(row));
      before = row;
    }
    // A thread that runs at the last scheduler event is shown as running from then on.
    const bool goes_on =
        !states.end_state.valid(*before) && states.end_ns[*before] >= last_state_ns_[host_of(*before)];
    if (!goes_on) idle(states.end_ns[*before], state_after_[*before]);
    write_switches(cpu, bundle);
  }

  // Switches to the thread of that row of states, or to the idle task if there is none.
  void add_switch(std::uint32_t cpu, Switches& bundle, std::int64_t time_ns, std::uint64_t state,
                  std::int32_t row) {
    const auto place = at(row);
    const bool is_idle = row == kNone;
    const std::int32_t thread = is_idle ? kNone : t_.thread_states->thread[place];
    bundle.times.append_varint(static_cast<std::uint64_t>(time_ns) -
                               static_cast<std::uint64_t>(bundle.last_ns));
    bundle.last_ns = time_ns;
    bundle.states.append_varint(state);
    bundle.pids.append_varint(is_idle ? 0 : static_cast<std::uint64_t>(number_of(place)));
    const std::int64_t priority = is_idle ? 120
                                  : t_.thread_states->priority.valid(place)
                                      ? t_.thread_states->priority[place]
                                      : -1;  // unknown
    bundle.priorities.append_varint(static_cast<std::uint64_t>(priority));
    const auto [comm, is_new] = bundle.comm_by_thread.try_emplace(thread, bundle.comms.size());
    if (is_new) bundle.comms.push_back(is_idle ? "swapper" : comm_of(place));
    bundle.names.append_varint(comm->second);
    ++switches_;
    if (++bundle.n == kSwitchesPerBundle) {
      write_switches(cpu, bundle);
      bundle = Switches{};
    }
  }

  void write_switches(std::uint32_t cpu, const Switches& bundle) {
    if (bundle.n == 0) return;
    ftrace(cpu, [&] {
      const Message message(out_, proto::ftrace::kCompactSched);
      out_.text(proto::ftrace::kSwitchTime, bundle.times.bytes());
      out_.text(proto::ftrace::kSwitchState, bundle.states.bytes());
      out_.text(proto::ftrace::kSwitchPid, bundle.pids.bytes());
      out_.text(proto::ftrace::kSwitchPriority, bundle.priorities.bytes());
      for (const std::string& comm : bundle.comms) out_.text(proto::ftrace::kNames, comm);
      out_.text(proto::ftrace::kSwitchName, bundle.names.bytes());
    });
  }

  template <typename F>
  void ftrace(std::uint32_t cpu, F&& fill) {
    packet([&] {
      const Message message(out_, proto::packet::kFtraceEvents);
      out_.varint(proto::ftrace::kCpu, cpu);
      fill();
    });
  }

  // sched_wakeup at the begin of each wait for a CPU; Perfetto calls it waking. Written after all switches:
  // of two events at the same instant Perfetto takes the first in the file first, and a thread is switched
  // away before it wakes up.
  void write_wakings() {
    const ThreadStates& states = *t_.thread_states;
    const Groups wake_ups(t_.wake_ups->thread, t_.threads->tid.size());
    std::map<std::uint32_t, std::vector<std::uint32_t>> by_cpu;
    for (std::size_t row = 0; row < states.thread.size(); ++row) {
      if (is_waking_[row])
        by_cpu[states.cpu.valid(row) ? cpu_of(row) : 0].push_back(static_cast<std::uint32_t>(row));
    }
    for (const auto& [cpu, rows] : by_cpu) {
      for (std::size_t first = 0; first < rows.size(); first += kSwitchesPerBundle) {
        const auto some = std::span(rows).subspan(first, std::min(kSwitchesPerBundle, rows.size() - first));
        ftrace(cpu, [&, cpu = cpu] {
          for (const std::uint32_t row : some) write_waking(row, cpu, wake_ups);
        });
      }
    }
  }

  void write_waking(std::uint32_t row, std::uint32_t cpu, const Groups& wake_ups) {
    const ThreadStates& states = *t_.thread_states;
    const auto of_thread = wake_ups.of(at(states.thread[row]));
    const auto found = std::lower_bound(
        of_thread.begin(), of_thread.end(), states.start_ns[row],
        [&](std::uint32_t i, std::int64_t time) { return t_.wake_ups->wakeup_ns[i] < time; });
    std::int32_t waker = 0;  // idle task: unknown waker, or an interrupt
    if (found != of_thread.end() && t_.wake_ups->wakeup_ns[*found] == states.start_ns[row] &&
        t_.wake_ups->by_thread.valid(*found)) {
      waker = numbers_.tid(at(t_.wake_ups->by_thread[*found]));
    }
    ++wakings_;
    const Message message(out_, proto::ftrace::kEvent);
    out_.integer(proto::ftrace::kEventTime, states.start_ns[row]);
    out_.integer(proto::ftrace::kEventPid, waker);
    const Message waking(out_, proto::ftrace::kSchedWaking);
    out_.text(proto::ftrace::kWakingComm, comm_of(row));
    out_.integer(proto::ftrace::kWakingPid, number_of(row));
    if (states.priority.valid(row)) out_.integer(proto::ftrace::kWakingPriority, states.priority[row]);
    out_.varint(proto::ftrace::kWakingSuccess, 1);
    out_.varint(proto::ftrace::kWakingCpu, cpu);
  }

  struct Handled {
    std::int32_t publication = kNone;
    std::int64_t published_ns = 0;
  };
  struct Lost {
    std::int64_t time_ns;
    std::string text;
  };

  const ExportTables& t_;
  const ExportOptions& options_;
  const ExportSink& sink_;
  Numbers numbers_;
  ProtobufWriter out_, interned_;
  std::map<std::uint32_t, std::unordered_map<std::string, std::uint64_t>> texts_;  // by field of InternedData
  std::vector<std::uint64_t> callback_iids_, function_iids_;
  std::unordered_map<std::int32_t, std::uint64_t> publisher_iids_;
  std::vector<Handled> handled_;  // by row of callback_instances
  std::optional<Groups> flows_from_;
  Int32 lost_thread_;
  std::vector<Lost> lost_;
  std::vector<std::uint32_t> first_cpu_;     // by host
  std::vector<std::int64_t> last_state_ns_;  // by host
  std::vector<std::uint64_t> state_after_;   // by row of thread_states
  std::vector<bool> is_waking_;
  ExportCounts counts_;
  std::uint64_t callbacks_ = 0, publications_ = 0, phases_ = 0, functions_ = 0, flows_ = 0,
                lost_messages_ = 0, losses_ = 0, switches_ = 0, wakings_ = 0, without_end_ = 0, crossing_ = 0,
                without_thread_ = 0, bytes_ = 0;
};

}  // namespace

ExportCounts write_perfetto(const ExportTables& tables, const ExportOptions& options,
                            const ExportSink& sink) {
  return PerfettoWriter(tables, options, sink).write();
}

}  // namespace perflab::traceview
