// Prints all events of traces, merged by time, one JSON object per line, and then what was missing:
//
//   ctf_dump [--no-headers] [--threads N] DIRECTORY...
//   {"time_ns":1000,"epoch_ns":1700000000000001000,"trace":"ust","stream":"ros2_0","cpu":0,"name":"ros2:rcl_init",
//    "stream_context":{"vpid":10,...},"context":null,"payload":{...},"header":{...}}
//   {"events":52,"ledger":[{"kind":"lost_packets","count":2,"exact":true,"file":"ust/ros2_0",...}]}
//
// Numbers are in decimal, real numbers the bits of a double ("0x3ff0000000000000"), enumerations numbers, a
// variant is the value of its option, text has one character per byte. Exit 2 and a line on standard error
// where nothing could be read.
#include <fmt/format.h>

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "ctf/merge.h"
#include "ctf/stream.h"
#include "ctf/trace.h"

namespace {

using namespace perflab::ctf;

void quote(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"':
      case '\\':
        out += '\\', out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      default:
        if (byte < 0x20 || byte > 0x7e) {
          fmt::format_to(std::back_inserter(out), "\\u{:04x}", byte);
        } else {
          out += c;
        }
    }
  }
  out += '"';
}

void number(std::string& out, std::uint64_t value, bool is_signed) {
  const auto integer = is_signed ? fmt::format_int(static_cast<std::int64_t>(value)) : fmt::format_int(value);
  out.append(integer.data(), integer.size());
}

template <typename T>
void optional(std::string& out, const std::optional<T>& value) {
  if (value) {
    fmt::format_to(std::back_inserter(out), "{}", *value);
  } else {
    out += "null";
  }
}

void print(std::string& out, const FieldLayout& field, const std::uint64_t* slots);

void print_elements(std::string& out, const FieldLayout& field, const std::uint64_t* slots) {
  const auto count = slots[field.slot + 1];
  if (field.is_text) return quote(out, Event::text_at(slots[field.slot], count));
  out += '[';
  const auto& element = field.children.front();
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i > 0) out += ',';
    if (field.bytes) {
      const auto byte = reinterpret_cast<const std::uint8_t*>(slots[field.slot])[i];
      number(out, element.is_signed ? static_cast<std::uint64_t>(static_cast<std::int8_t>(byte)) : byte,
             element.is_signed);
    } else {
      print(out, element, reinterpret_cast<const std::uint64_t*>(slots[field.slot]) + i * element.width);
    }
  }
  out += ']';
}

void print(std::string& out, const FieldLayout& field, const std::uint64_t* slots) {
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::enumeration:
      return number(out, slots[field.slot], field.is_signed);
    case FieldKind::floating:
      fmt::format_to(std::back_inserter(out), "\"0x{:016x}\"", slots[field.slot]);
      return;
    case FieldKind::text:
      return quote(out, Event::text_at(slots[field.slot], slots[field.slot + 1]));
    case FieldKind::array:
    case FieldKind::sequence:
      return print_elements(out, field, slots);
    case FieldKind::structure: {
      out += '{';
      const char* separator = "";
      for (const auto& child : field.children) {
        out += separator;
        separator = ",";
        quote(out, child.name);
        out += ':';
        print(out, child, slots);
      }
      out += '}';
      return;
    }
    case FieldKind::variant:
      return print(out, field.children.at(slots[field.slot]), slots);
  }
}

void scope(std::string& out, const char* name, const std::optional<FieldLayout>& field,
           const std::uint64_t* slots) {
  out += ",\"";
  out += name;
  out += "\":";
  if (field) {
    print(out, *field, slots);
  } else {
    out += "null";
  }
}

// What of a line is the same for all events of a stream.
struct Origin {
  std::optional<std::int64_t> offset_ns;
  std::string text;  // from "trace" to "cpu"
};

Origin origin_of(const Trace& trace, const Stream& stream) {
  Origin origin{trace.clock_offset_ns(), ",\"trace\":"};
  quote(origin.text, trace.path);
  origin.text += ",\"stream\":";
  quote(origin.text,
        stream.files.empty() ? "" : std::filesystem::path(stream.files.front()).filename().string());
  origin.text += ",\"instance\":";
  optional(origin.text, stream.instance);
  origin.text += ",\"cpu\":";
  optional(origin.text, stream.cpu);
  return origin;
}

void print_event(std::string& out, const Event& event, const EventLayout& layout, const Origin& origin,
                 bool headers) {
  out += "{\"time_ns\":";
  const bool timed = origin.offset_ns.has_value();
  optional(out, timed ? std::optional(event.time_ns) : std::nullopt);
  out += ",\"epoch_ns\":";
  optional(out, timed ? std::optional(event.time_ns + *origin.offset_ns) : std::nullopt);
  out += origin.text;
  out += ",\"id\":";
  number(out, layout.event_class->id, false);
  out += ",\"name\":";
  quote(out, layout.event_class->name);
  scope(out, "stream_context", layout.stream_context, event.slots);
  scope(out, "context", layout.context, event.slots);
  scope(out, "payload", layout.payload, event.slots);
  if (headers) scope(out, "header", layout.header, event.slots);
  out += "}\n";
}

void print_ledger(std::string& out, std::uint64_t events, const Ledger& ledger) {
  fmt::format_to(std::back_inserter(out), "{{\"events\":{},\"ledger\":[", events);
  const char* separator = "";
  for (const auto& entry : ledger) {
    fmt::format_to(std::back_inserter(out),
                   "{}{{\"kind\":\"{}\",\"count\":{},\"exact\":{},\"file\":", separator, name_of(entry.loss),
                   entry.count, entry.count_is_exact);
    separator = ",";
    quote(out, entry.file);
    out += ",\"offset\":";
    optional(out, entry.offset);
    out += ",\"begin_ns\":";
    optional(out, entry.begin_ns);
    out += ",\"end_ns\":";
    optional(out, entry.end_ns);
    out += ",\"message\":";
    quote(out, entry.message);
    out += '}';
  }
  out += "]}\n";
}

void flush(std::string& out) {
  std::fwrite(out.data(), 1, out.size(), stdout);
  out.clear();
}

int dump(const std::vector<std::filesystem::path>& paths, unsigned threads, bool headers) {
  const TraceSet set = TraceSet::open(paths);
  std::vector<MergeInput> inputs;
  std::vector<Origin> origins;
  for (std::uint32_t t = 0; t < set.traces().size(); ++t) {
    const Trace& trace = *set.traces()[t];
    for (std::size_t s = 0; s < trace.streams.size(); ++s) {
      inputs.push_back({&trace, t, s, 0, {}});
      origins.push_back(origin_of(trace, trace.streams[s]));
    }
  }
  const std::size_t count = inputs.size();
  Merger merger(std::move(inputs), threads);
  std::string out;
  std::uint64_t events = 0;
  for (MergedEvent merged; merger.next(merged); ++events) {
    const Trace& trace = *set.traces()[merged.trace_index];
    print_event(out, merged.event, trace.layouts[merged.event.class_index], origins[merged.input], headers);
    if (out.size() > 1U << 20U) flush(out);
  }
  Ledger ledger = set.ledger();
  for (std::size_t i = 0; i < count; ++i) {
    const auto& more = merger.reader(i).ledger();
    ledger.insert(ledger.end(), more.begin(), more.end());
  }
  print_ledger(out, events, ledger);
  flush(out);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> paths;
  bool headers = true;
  unsigned threads = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--no-headers") {
      headers = false;
    } else if (argument == "--threads" && i + 1 < argc) {
      const std::string_view text = argv[++i];
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), threads);
      if (error != std::errc{} || end != text.data() + text.size() || threads == 0) {
        fmt::print(stderr, "ctf_dump: --threads {} is no number of 1 or more\n", text);
        return 2;
      }
    } else {
      paths.emplace_back(argument);
    }
  }
  if (paths.empty()) {
    fmt::print(stderr, "usage: ctf_dump [--no-headers] [--threads N] DIRECTORY...\n");
    return 2;
  }
  try {
    return dump(paths, threads, headers);
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 2;
  }
}
