#include "ctf/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "ctf/decoder.h"
#include "ctf/mapped_file.h"
#include "ctf/packet_index.h"

namespace perflab::ctf {
namespace {

namespace fs = std::filesystem;
__extension__ using Wide = __int128;

constexpr int kDeepestFolder = 32;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;

std::optional<std::int64_t> narrow(Wide value) noexcept {
  if (value > std::numeric_limits<std::int64_t>::max() || value < std::numeric_limits<std::int64_t>::min()) {
    return std::nullopt;
  }
  return static_cast<std::int64_t>(value);
}

// A folder with a readable `metadata`.
struct Folder {
  fs::path path;
  std::string name;  // relative to what was opened
  std::string text;  // of the metadata
  Metadata metadata;
};

// ---------------------------------------------------------------------------------------------------------------------
// Whether two descriptions of one trace, from two chunks of it, agree

class Comparison {
 public:
  bool same(const FieldTypePtr& one, const FieldTypePtr& other) {
    if (one == other) return true;
    if (!one || !other || one->kind.index() != other->kind.index() || ++compared_ > kMost) return false;
    return std::visit(
        [&](const auto& kind) { return same(kind, std::get<std::decay_t<decltype(kind)>>(other->kind)); },
        one->kind);
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 22U;

  // Types without others inside.
  template <typename Kind>
  static bool same(const Kind& one, const Kind& other) {
    return one == other;
  }
  bool same(const Array& one, const Array& other) {
    return one.length == other.length && same(one.element, other.element);
  }
  bool same(const Sequence& one, const Sequence& other) {
    return one.length == other.length && same(one.element, other.element);
  }
  bool same(const std::vector<NamedField>& one, const std::vector<NamedField>& other) {
    return std::equal(one.begin(), one.end(), other.begin(), other.end(),
                      [&](const auto& a, const auto& b) { return a.name == b.name && same(a.type, b.type); });
  }
  bool same(const Structure& one, const Structure& other) {
    return one.minimum_alignment == other.minimum_alignment && same(one.fields, other.fields);
  }
  bool same(const Variant& one, const Variant& other) {
    return one.selector == other.selector && one.selector_is_signed == other.selector_is_signed &&
           one.choices == other.choices && same(one.options, other.options);
  }

  std::size_t compared_ = 0;
};

bool same_clock(const Clock& one, const Clock& other) {
  return std::tie(one.name, one.frequency_hz, one.offset_seconds, one.offset_cycles) ==
         std::tie(other.name, other.frequency_hz, other.offset_seconds, other.offset_cycles);
}

// Adds the events of `more` to `all`; false, and nothing added, where the two contradict each other.
bool unite(Metadata& all, const Metadata& more) {
  Comparison comparison;
  if (all.order != more.order || !comparison.same(all.packet_header, more.packet_header)) return false;
  if (!std::equal(all.clocks.begin(), all.clocks.end(), more.clocks.begin(), more.clocks.end(), same_clock))
    return false;
  auto streams = all.streams;
  for (const auto& [id, stream] : more.streams) {
    const auto [known, added] = streams.emplace(id, stream);
    if (added) continue;
    if (!comparison.same(known->second.packet_context, stream.packet_context) ||
        !comparison.same(known->second.event_header, stream.event_header) ||
        !comparison.same(known->second.event_context, stream.event_context)) {
      return false;
    }
    for (const auto& [event_id, event] : stream.events) {
      const auto [known_event, is_new] = known->second.events.emplace(event_id, event);
      if (is_new) continue;
      if (known_event->second->name != event->name ||
          !comparison.same(known_event->second->context, event->context) ||
          !comparison.same(known_event->second->payload, event->payload)) {
        return false;
      }
    }
  }
  all.streams = std::move(streams);
  for (const auto& [key, value] : more.environment) all.environment.emplace(key, value);
  for (const auto& warning : more.warnings) {
    if (std::find(all.warnings.begin(), all.warnings.end(), warning) == all.warnings.end()) {
      all.warnings.push_back(warning);
    }
  }
  return true;
}

// ---------------------------------------------------------------------------------------------------------------------
// Finding

class Search {
 public:
  // `several`: names begin with the path itself.
  Search(const fs::path& path, bool several, std::set<fs::path>& visited, Ledger& ledger)
      : root_(path), several_(several), visited_(visited), ledger_(ledger) {}

  std::vector<Folder> run() {
    std::error_code error;
    const auto status = fs::status(root_, error);
    if (status.type() == fs::file_type::not_found)
      throw TraceError(fmt::format("{}: does not exist", root_.string()));
    if (error) throw TraceError(fmt::format("{}: cannot be opened: {}", root_.string(), error.message()));
    if (fs::is_regular_file(status) && root_.filename() == "metadata") {
      root_ = root_.has_parent_path() ? root_.parent_path() : fs::path(".");
    } else if (!fs::is_directory(status)) {
      throw TraceError(fmt::format("{}: is no directory; give the directory of a trace", root_.string()));
    }
    walk(root_, 0);
    if (folders_.empty() && !known_before_) {
      if (!first_error_.empty()) throw TraceError(first_error_);
      throw TraceError(
          fmt::format("{}: holds no trace: there is no file \"metadata\" in it or below", root_.string()));
    }
    for (auto& entry : broken_) ledger_.push_back(std::move(entry));
    return std::move(folders_);
  }

 private:
  [[nodiscard]] std::string name_of(const fs::path& path) const {
    const auto relative = path.lexically_relative(root_);
    if (!several_) return relative.empty() ? "." : relative.string();
    return (relative.empty() || relative == "." ? root_ : root_ / relative).string();
  }

  void walk(const fs::path& folder, int depth) {
    std::error_code error;
    const fs::path canonical = fs::canonical(folder, error);
    if (error) return broken(folder, error.message());
    // Also keeps links from leading round in circles.
    if (!visited_.insert(canonical).second) {
      if (!own_.contains(canonical)) known_before_ = true;
      return;
    }
    own_.insert(canonical);
    std::vector<fs::path> inner;
    bool has_metadata = false;
    fs::directory_iterator entries(folder, error);
    if (error) return broken(folder, error.message());
    while (entries != fs::directory_iterator()) {
      const auto name = entries->path().filename().string();
      if (name == "metadata" && !entries->is_directory(error)) {
        has_metadata = true;
      } else if (entries->is_directory(error) && name.front() != '.' &&
                 (name != "index" || holds_metadata(entries->path()))) {
        inner.push_back(entries->path());
      }
      entries.increment(error);
      if (error) broken(folder, error.message());  // and it is at the end
    }
    if (has_metadata) add(folder);
    if (depth == kDeepestFolder) {
      if (!inner.empty())
        broken(folder, fmt::format("is nested too deeply; {} levels are searched", kDeepestFolder));
      return;
    }
    std::sort(inner.begin(), inner.end());
    for (const auto& path : inner) walk(path, depth + 1);
  }

  // LTTng's folder `index` holds none.
  static bool holds_metadata(const fs::path& folder) {
    std::error_code error;
    return fs::is_regular_file(folder / "metadata", error);
  }

  void add(const fs::path& folder) {
    const auto file = folder / "metadata";
    try {
      Folder found;
      found.path = folder;
      found.name = name_of(folder);
      const auto mapped = MappedFile::open(file);
      if (mapped->size() > 0 && !mapped->readable(0, mapped->size())) {
        return broken(file, "it became shorter since it was opened, or its disk fails");
      }
      const std::string_view bytes(reinterpret_cast<const char*>(mapped->data()), mapped->size());
      found.text = metadata_text(bytes, file.string());
      found.metadata = parse_metadata(found.text, file.string());
      folders_.push_back(std::move(found));
    } catch (const std::system_error& error) {
      broken(file, error.code().message());
    } catch (const MetadataError& error) {
      note(file, error.what());
    }
  }

  void broken(const fs::path& path, const std::string& why) {
    note(path, fmt::format("{}: cannot be read: {}", path.string(), why));
  }

  void note(const fs::path& path, const std::string& message) {
    if (first_error_.empty()) first_error_ = message;
    broken_.push_back(
        {.loss = Loss::unreadable_metadata, .count = 1, .file = name_of(path), .message = message});
  }

  fs::path root_;
  bool several_;
  std::set<fs::path>& visited_;  // by all searches of what is opened
  std::set<fs::path> own_;       // of these, by this one: a link that leads in a circle is not known before
  Ledger& ledger_;
  std::vector<Folder> folders_;
  std::vector<LedgerEntry> broken_;
  std::string first_error_;
  bool known_before_ = false;
};

// ---------------------------------------------------------------------------------------------------------------------
// Building

class TraceBuilder {
 public:
  TraceBuilder(Trace& trace, Ledger& ledger) : trace_(trace), ledger_(ledger) {}

  // Throws MetadataError.
  void prepare() {
    for (const auto& [id, stream] : trace_.metadata.streams) {
      for (const auto& [event_id, event] : stream.events)
        trace_.layouts.push_back(make_layout(stream, *event));
    }
    std::size_t first = 0;
    for (const auto& [id, stream] : trace_.metadata.streams) {
      const auto clock = Decoder::clock_of(stream);
      if (!trace_.clock) trace_.clock = clock;
      if (clock && clock != trace_.clock) {
        warn(fmt::format(
            "stream class {} has another clock than the others; its times are taken for those of \"{}\"", id,
            trace_.metadata.clocks.at(*trace_.clock).name));
      }
      const std::span<const EventLayout> layouts(trace_.layouts.data() + first, stream.events.size());
      auto decoder = std::make_shared<const Decoder>(trace_.metadata, stream, layouts,
                                                     static_cast<std::uint32_t>(first), clock);
      if (!decoder->has_clock())
        warn(fmt::format("events of stream class {} carry no time stamp: their time is 0", id));
      decoders_.emplace(id, std::move(decoder));
      first += stream.events.size();
    }
    if (!trace_.clock && !trace_.metadata.clocks.empty()) trace_.clock = 0;
    if (trace_.clock && *trace_.clock < trace_.metadata.clocks.size()) {
      const auto frequency = trace_.metadata.clocks[*trace_.clock].frequency_hz;
      if (frequency == 0) throw MetadataError("a clock has a frequency of 0");
      trace_.frequency_hz = frequency;
    }
  }

  void add_files(const Folder& folder) {
    std::vector<fs::path> files;
    std::error_code error;
    fs::directory_iterator entries(folder.path, error);
    while (!error && entries != fs::directory_iterator()) {
      const auto name = entries->path().filename().string();
      std::error_code unknown;
      // LTTng's index says the same as the packets.
      if (name.front() != '.' && name != "metadata" && !entries->is_directory(unknown) &&
          entries->path().extension() != ".idx") {
        files.push_back(entries->path());
      }
      entries.increment(error);
    }
    if (error) {
      note_unreadable(folder.name, 0, fmt::format("not all of its files can be found: {}", error.message()));
      ledger_.back().count_is_exact = false;
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) add_file(folder, file);
    fs::directory_iterator indices(folder.path / "index", error);
    while (!error && indices != fs::directory_iterator()) {
      if (indices->path().extension() == ".idx")
        trace_.indexed_files.push_back(name_in(folder, indices->path().stem()));
      indices.increment(error);
    }
  }

  void finish() {
    std::vector<Stream> streams;
    for (auto& [key, stream] : streams_) streams.push_back(std::move(stream));
    std::stable_sort(streams.begin(), streams.end(), [](const Stream& one, const Stream& other) {
      return std::tie(one.stream_class, one.cpu, one.instance, one.files.front()) <
             std::tie(other.stream_class, other.cpu, other.instance, other.files.front());
    });
    for (auto& stream : streams) {
      order(stream);
      find_latest(stream);
      warn_of_late_times(stream);
      note_losses(stream, to_ns(), ledger_);
      trace_.decoders.push_back(decoders_.at(stream.stream_class));
      trace_.streams.push_back(std::move(stream));
    }
  }

 private:
  // Class, instance; name and CPU where there is no instance.
  using Key =
      std::tuple<std::uint64_t, std::optional<std::uint64_t>, std::string, std::optional<std::uint32_t>>;

  std::function<std::int64_t(std::uint64_t)> to_ns() {
    return [this](std::uint64_t cycles) { return trace_.to_ns(cycles); };
  }

  void warn(std::string text) { trace_.metadata.warnings.push_back(std::move(text)); }

  static std::string name_in(const Folder& folder, const fs::path& path) {
    return folder.name == "." ? path.filename().string() : (fs::path(folder.name) / path.filename()).string();
  }

  void note_unreadable(const std::string& file, std::uint64_t count, const std::string& why) {
    ledger_.push_back({.loss = Loss::unreadable_stream,
                       .count = count,
                       .file = file,
                       .message = fmt::format("{}: {}", file, why)});
  }

  void add_file(const Folder& folder, const fs::path& path) {
    const std::string name = name_in(folder, path);
    std::shared_ptr<const MappedFile> mapped;
    try {
      mapped = MappedFile::open(path);
    } catch (const std::system_error& error) {
      return note_unreadable(name, 0, error.what());
    }
    if (decoders_.empty() && mapped->size() != 0) {
      return note_unreadable(name, mapped->size(), "the metadata describes no stream");
    }
    auto index = index_packets(trace_.metadata, decoders_, *mapped, name, to_ns(), ledger_);
    if (!index) {
      trace_.empty_files.push_back(name);
      return;
    }

    Key key{index->stream_class, index->instance, "", std::nullopt};
    if (!index->instance) {
      std::get<2>(key) = path.filename().string();
      std::get<3>(key) = index->cpu;
    }
    const auto [found, added] = streams_.try_emplace(key);
    Stream& stream = found->second;
    if (added) {
      stream.stream_class = index->stream_class;
      stream.instance = index->instance;
      stream.cpu = index->cpu;
    } else if (stream.cpu != index->cpu) {
      stream.cpu.reset();
    }
    for (auto& packet : index->packets) {
      packet.file = static_cast<std::uint32_t>(stream.files.size());
      stream.packets.push_back(packet);
    }
    stream.files.push_back(name);
    stream.mapped.push_back(static_cast<std::uint32_t>(trace_.files.size()));
    stream.bytes += mapped->size();
    trace_.files.push_back(std::move(mapped));
  }

  void warn_of_late_times(const Stream& stream) {
    const auto is_late = [&](const std::optional<std::uint64_t>& cycles) {
      return cycles && trace_.to_ns(*cycles) == std::numeric_limits<std::int64_t>::max();
    };
    const auto late = std::count_if(stream.packets.begin(), stream.packets.end(), [&](const Packet& packet) {
      return is_late(packet.begin_cycles) || is_late(packet.end_cycles);
    });
    if (late == 0) return;
    warn(fmt::format("{}: {} packets have times of 2^63 ns and more; they are taken for the largest time",
                     stream.files.front(), late));
  }

  // Where an event cannot be of its packet any more.
  void find_latest(Stream& stream) const {
    for (std::size_t i = 0; i < stream.packets.size(); ++i) {
      Packet& packet = stream.packets[i];
      if (!packet.end_cycles) continue;
      if (!ends_packets_early_) {
        packet.latest_cycles = *packet.end_cycles;
      } else if (i + 1 < stream.packets.size() && stream.packets[i + 1].begin_cycles) {
        packet.latest_cycles = std::max(*packet.end_cycles, *stream.packets[i + 1].begin_cycles);
      }
    }
  }

  // LTTng before 2.11 may stamp a packet's end before it writes the last event.
  static bool ends_packets_early(const Metadata& metadata) {
    const auto number = [&](const char* key) {
      const std::string text = metadata.environment_text(key).value_or("");
      int value = 0;
      return std::from_chars(text.data(), text.data() + text.size(), value).ec == std::errc() ? value : 0;
    };
    if (!metadata.environment_text("tracer_name").value_or("").starts_with("lttng")) return false;
    return std::pair(number("tracer_major"), number("tracer_minor")) < std::pair(2, 11);
  }

  // Snapshots of one session may hold the same packets again.
  static bool same_packet(const Packet& one, const Packet& other) {
    return one.file != other.file && one.sequence_number.has_value() &&
           std::tie(one.sequence_number, one.begin_cycles, one.end_cycles, one.content_bits) ==
               std::tie(other.sequence_number, other.begin_cycles, other.end_cycles, other.content_bits);
  }

  static void order(Stream& stream) {
    auto& packets = stream.packets;
    const bool timed =
        std::all_of(packets.begin(), packets.end(), [](const auto& p) { return p.begin_cycles.has_value(); });
    if (stream.files.size() < 2 || !timed) return;
    std::stable_sort(packets.begin(), packets.end(), [](const Packet& one, const Packet& other) {
      return std::tie(one.begin_cycles, one.sequence_number) <
             std::tie(other.begin_cycles, other.sequence_number);
    });
    packets.erase(std::unique(packets.begin(), packets.end(), same_packet), packets.end());
  }

  Trace& trace_;
  Ledger& ledger_;
  const bool ends_packets_early_ = ends_packets_early(trace_.metadata);
  Decoders decoders_;
  std::map<Key, Stream> streams_;
};

}  // namespace

std::int64_t Trace::to_ns(std::uint64_t cycles) const noexcept {
  constexpr auto kLatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (frequency_hz == static_cast<std::uint64_t>(kNsPerSecond)) {
    return static_cast<std::int64_t>(std::min(cycles, kLatest));
  }
  const Wide ns = static_cast<Wide>(cycles) * kNsPerSecond / static_cast<Wide>(frequency_hz);
  return narrow(ns).value_or(std::numeric_limits<std::int64_t>::max());
}

std::optional<std::int64_t> Trace::clock_offset_ns() const noexcept {
  if (!clock || *clock >= metadata.clocks.size()) return std::nullopt;
  const Clock& description = metadata.clocks[*clock];
  return narrow(static_cast<Wide>(description.offset_seconds) * kNsPerSecond +
                static_cast<Wide>(description.offset_cycles) * kNsPerSecond /
                    static_cast<Wide>(frequency_hz));
}

TraceSet TraceSet::open(std::span<const std::filesystem::path> paths) {
  TraceSet set;
  std::set<fs::path> visited;
  std::vector<Folder> folders;
  for (const auto& path : paths) {
    auto found = Search(path.lexically_normal(), paths.size() > 1, visited, set.ledger_).run();
    std::move(found.begin(), found.end(), std::back_inserter(folders));
  }
  if (paths.empty()) throw TraceError("no trace is given");

  // Chunks of one session have the UUID in common.
  struct Group {
    Metadata metadata;
    std::vector<const Folder*> folders;
  };
  std::vector<Group> groups;
  for (const auto& folder : folders) {
    const auto group = std::find_if(groups.begin(), groups.end(), [&](Group& candidate) {
      if (!folder.metadata.uuid || candidate.metadata.uuid != folder.metadata.uuid) return false;
      return candidate.folders.front()->text == folder.text || unite(candidate.metadata, folder.metadata);
    });
    if (group == groups.end()) {
      groups.push_back({folder.metadata, {&folder}});
    } else {
      group->folders.push_back(&folder);
    }
  }

  std::string first_error;
  for (auto& group : groups) {
    auto trace = std::make_shared<Trace>();
    trace->path = group.folders.front()->name;
    trace->metadata = std::move(group.metadata);
    TraceBuilder builder(*trace, set.ledger_);
    try {
      builder.prepare();
    } catch (const MetadataError& error) {
      const auto message =
          fmt::format("{}: {}", (group.folders.front()->path / "metadata").string(), error.what());
      if (first_error.empty()) first_error = message;
      set.ledger_.push_back(
          {.loss = Loss::unreadable_metadata, .count = 1, .file = trace->path, .message = message});
      continue;
    }
    for (const auto* folder : group.folders) builder.add_files(*folder);
    builder.finish();
    set.traces_.push_back(std::move(trace));
  }
  if (set.traces_.empty()) throw TraceError(first_error);
  return set;
}

}  // namespace perflab::ctf
