#include "ctf/coverage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "ctf/stream.h"

namespace perflab::ctf {
namespace {

std::optional<std::int64_t> to_ns(const Trace& trace, const std::optional<std::uint64_t>& cycles) {
  if (!cycles) return std::nullopt;
  return trace.to_ns(*cycles);
}

LedgerEntry entry_of(Loss loss, const Stream& stream, const Packet& packet) {
  return {.loss = loss, .file = stream.files[packet.file], .offset = packet.file_offset};
}

constexpr std::size_t kMostMissing = 4096;  // a damaged number may be huge

// "ros2_3" is ("ros2", 3).
std::optional<std::pair<std::string_view, std::uint32_t>> number_of(std::string_view name) {
  const auto line = name.rfind('_');
  if (line == std::string_view::npos || line + 1 == name.size()) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + line + 1, end, number);
  if (error != std::errc() || rest != end) return std::nullopt;
  return std::pair(name.substr(0, line), number);
}

struct Numbered {
  std::set<std::uint32_t> numbers;
  bool are_cpus = true;  // false if a stream has another CPU, or none
};

// Files of all streams by folder and name without the number, if the number is the CPU.
std::map<std::string, Numbered> by_channel(const Trace& trace) {
  std::map<std::string, Numbered> channels;
  const auto add = [&](const std::string& file, const Stream* stream) {
    const auto name = number_of(file);
    if (!name) return;
    Numbered& channel = channels[std::string(name->first)];
    channel.numbers.insert(name->second);
    channel.are_cpus &= stream == nullptr || stream->cpu == name->second;
  };
  for (const Stream& stream : trace.streams) {
    for (const std::string& file : stream.files) add(file, &stream);
  }
  for (const std::string& file : trace.empty_files) add(file, nullptr);
  return channels;
}

// In perflab's own traces, the last packet of a stream ends when the recording ended, regardless of its last
// event.
bool ends_with_recording(const Trace& trace) {
  return trace.metadata.environment_text("stream_end") == "recording";
}

LedgerEntry missing_file(const std::string& file) {
  return {.loss = Loss::missing_stream,
          .count = 1,
          .file = file,
          .message = fmt::format("{}: this stream was recorded, and its file is not in the trace", file)};
}

}  // namespace

std::optional<LedgerEntry> missing_begin(const Trace& trace, const Stream& stream, const EventTimes& own,
                                         std::int64_t begin_ns) {
  if (stream.packets.empty()) return std::nullopt;
  const Packet& first = stream.packets.front();
  const auto known_from = first.begin_cycles ? to_ns(trace, first.begin_cycles) : own.first_ns;
  const std::uint64_t before = first.sequence_number.value_or(0);
  const bool is_late = known_from && *known_from > begin_ns;
  // If the packet only states its first event, the stream may have been silent before.
  if (before == 0 && (!is_late || known_from == own.first_ns)) return std::nullopt;
  LedgerEntry entry = entry_of(Loss::missing_begin, stream, first);
  entry.count = std::max<std::uint64_t>(before, 1);
  entry.count_is_exact = before != 0;
  entry.end_ns = known_from;
  entry.message =
      before != 0
          ? fmt::format("{}: its first packet has number {}: what was recorded before it is not in the trace",
                        entry.file, before)
          : fmt::format("{}: begins after other streams of the trace: what was recorded before is not in it",
                        entry.file);
  return entry;
}

std::optional<LedgerEntry> missing_end(const Trace& trace, const Stream& stream, const EventTimes& own,
                                       std::int64_t end_ns) {
  if (stream.packets.empty()) return std::nullopt;
  const Packet& last = stream.packets.back();
  const auto known_to = last.end_cycles ? to_ns(trace, last.end_cycles) : own.last_ns;
  // If the packet only states its last event, the stream may have been silent afterwards.
  if (!known_to || *known_to >= end_ns || (known_to == own.last_ns && !ends_with_recording(trace)))
    return std::nullopt;
  LedgerEntry entry = entry_of(Loss::missing_end, stream, last);
  entry.count = 1;
  entry.count_is_exact = false;
  entry.begin_ns = known_to;
  entry.message = fmt::format(
      "{}: ends before other streams of the trace: what was recorded after is not in it", entry.file);
  return entry;
}

std::optional<std::int64_t> first_event_ns(const Trace& trace, std::size_t stream) {
  StreamReader reader(trace, stream);
  Event event;
  if (!reader.next(event)) return std::nullopt;
  return event.time_ns;
}

std::set<std::uint32_t> cpus_of(const Trace& trace) {
  std::set<std::uint32_t> cpus;
  for (const Stream& stream : trace.streams) {
    if (stream.cpu) cpus.insert(*stream.cpu);
  }
  for (const auto& [name, channel] : by_channel(trace)) {
    if (channel.are_cpus) cpus.insert(channel.numbers.begin(), channel.numbers.end());
  }
  return cpus;
}

std::optional<std::uint32_t> cpu_in_name(const std::string& file) {
  const auto name = number_of(file);
  if (!name) return std::nullopt;
  return name->second;
}

std::vector<LedgerEntry> missing_streams(const Trace& trace) {
  std::vector<LedgerEntry> found;
  std::set<std::string> files(trace.empty_files.begin(), trace.empty_files.end());
  for (const Stream& stream : trace.streams) files.insert(stream.files.begin(), stream.files.end());
  std::set<std::string> missing;
  for (const std::string& file : trace.indexed_files) {
    if (!files.contains(file)) missing.insert(file);
  }
  const auto environment = [&](const char* key) { return trace.metadata.environment_text(key).value_or(""); };
  // CPUs that are offline have no kernel stream. Every LTTng version that numbers streams this way writes
  // indices.
  if (!trace.indexed_files.empty() && environment("tracer_name").starts_with("lttng") &&
      environment("domain") == "ust") {
    for (const auto& [name, channel] : by_channel(trace)) {
      if (!channel.are_cpus) continue;
      for (std::uint32_t cpu = 0; cpu < *channel.numbers.rbegin() && missing.size() < kMostMissing; ++cpu) {
        if (!channel.numbers.contains(cpu)) missing.insert(fmt::format("{}_{}", name, cpu));
      }
    }
  }
  for (const std::string& file : missing) found.push_back(missing_file(file));
  return found;
}

}  // namespace perflab::ctf
