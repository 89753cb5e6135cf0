// Traces made by the tests: bits written one by one, and folders that vanish with the test.
#pragma once

#include <stdlib.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "ctf/stream.h"
#include "ctf/trace.h"

namespace perflab::ctf::test {

// Little-endian, low bits first, as LTTng writes on x86.
class Bits {
 public:
  Bits& put(std::uint64_t value, std::uint32_t bits) {
    for (std::uint32_t i = 0; i < bits; ++i) bit((value >> i & 1U) != 0);
    return *this;
  }
  Bits& put_big(std::uint64_t value, std::uint32_t bits) {  // on whole bytes
    for (std::uint32_t i = bits; i > 0; i -= 8) put(value >> (i - 8), 8);
    return *this;
  }
  Bits& text(const std::string& value) {
    for (const char c : value) put(static_cast<std::uint8_t>(c), 8);
    return put(0, 8);
  }
  Bits& align(std::uint32_t bits) {
    while (size_ % bits != 0) bit(false);
    return *this;
  }
  void set(std::size_t at, std::uint64_t value, std::uint32_t bits) {
    for (std::uint32_t i = 0; i < bits; ++i) {
      const std::size_t place = at + i;
      const auto mask = static_cast<std::uint8_t>(1U << (place % 8));
      bytes_[place / 8] =
          static_cast<std::uint8_t>((bytes_[place / 8] & ~mask) | ((value >> i & 1U) != 0 ? mask : 0));
    }
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] const std::vector<std::uint8_t>& bytes() const { return bytes_; }

 private:
  void bit(bool value) {
    if (size_ % 8 == 0) bytes_.push_back(0);
    if (value) bytes_.back() = static_cast<std::uint8_t>(bytes_.back() | 1U << (size_ % 8));
    ++size_;
  }
  std::vector<std::uint8_t> bytes_;
  std::size_t size_ = 0;
};

class Folder {
 public:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "perflab-ctf-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    std::ofstream(path_ / name, std::ios::binary) << text;
  }
  void write(const std::string& name, const std::vector<std::uint8_t>& bytes) const {
    write(name, std::string(bytes.begin(), bytes.end()));
  }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

inline TraceSet open(const std::filesystem::path& path) { return TraceSet::open(std::span(&path, 1)); }

// A trace, written and opened; its streams by the names of their files.
class OneTrace {
 public:
  OneTrace(const std::string& metadata, const std::map<std::string, std::vector<std::uint8_t>>& streams) {
    folder.write("metadata", metadata);
    for (const auto& [name, bytes] : streams) folder.write(name, bytes);
    set = open(folder.path());
  }
  const Trace& operator*() const { return *set.traces().at(0); }
  const Trace* operator->() const { return &**this; }

  Folder folder;
  TraceSet set;
};

inline const std::string kUuid = "2a6422d0-6cee-11e0-8c08-cb07d7b3a564";

// TSDL: integers of the usual sizes, a trace with or without UUID, a clock of `frequency`, an LTTng packet
// header.
inline std::string prologue(const std::string& uuid = kUuid, std::uint64_t frequency = 1'000'000'000) {
  return "/* CTF 1.8 */\n"
         "typealias integer { size = 8; align = 8; signed = false; } := u8;\n"
         "typealias integer { size = 16; align = 8; signed = false; } := u16;\n"
         "typealias integer { size = 32; align = 8; signed = false; } := u32;\n"
         "typealias integer { size = 64; align = 8; signed = false; } := u64;\n"
         "typealias integer { size = 32; align = 8; signed = true; } := s32;\n"
         "trace { major = 1; minor = 8; uuid = \"" +
         uuid +
         "\"; byte_order = le;\n"
         "  packet.header := struct { u32 magic; u8 uuid[16]; u32 stream_id; u64 stream_instance_id; }; };\n"
         "clock { name = mono; freq = " +
         std::to_string(frequency) +
         "; offset_s = 5; };\n"
         "typealias integer { size = 27; align = 1; signed = false; map = clock.mono.value; } := t27;\n"
         "typealias integer { size = 32; align = 8; signed = false; map = clock.mono.value; } := t32;\n"
         "typealias integer { size = 64; align = 8; signed = false; map = clock.mono.value; } := t64;\n";
}

inline const std::string kPacketContext =
    "packet.context := struct { t64 timestamp_begin; t64 timestamp_end; u64 content_size; u64 packet_size;"
    " u64 packet_seq_num; u64 events_discarded; u32 cpu_id; };\n";

inline const std::string kLargeHeader =
    "event.header := struct { enum : u16 { compact = 0 ... 65534, extended = 65535 } id;\n"
    "  variant <id> { struct { t32 timestamp; } compact; struct { u32 id; t64 timestamp; } extended; } v; } "
    "align(8);\n";

inline const std::string kCompactHeader =
    "event.header := struct { enum : integer { size = 5; align = 1; signed = false; } { compact = 0 ... 30, "
    "extended = 31 }"
    " id;\n  variant <id> { struct { t27 timestamp; } compact; struct { u32 id; t64 timestamp; } extended; } "
    "v; } align(8);\n";

inline const std::string kPlainHeader = "event.header := struct { u16 id; t64 timestamp; };\n";

// One stream class with id 0 and its events: "name" -> fields of the payload.
inline std::string stream(const std::string& header,
                          const std::vector<std::pair<std::string, std::string>>& events,
                          const std::string& more = "") {
  std::string text = "stream { id = 0; " + header + kPacketContext + more + "};\n";
  std::uint32_t id = 0;
  for (const auto& [name, fields] : events) {
    text += "event { name = \"" + name + "\"; id = " + std::to_string(id++) +
            "; stream_id = 0; fields := struct { " + fields + " }; };\n";
  }
  return text;
}

// Packets of that header and context.
struct MadePacket {
  std::uint64_t begin = 0, end = 0;
  std::uint64_t sequence_number = 0, discarded = 0;
  std::uint64_t instance = 0;
  std::uint32_t cpu = 0;
  Bits bits;

  MadePacket(std::uint64_t from, std::uint64_t to, std::uint64_t number = 0, std::uint64_t lost = 0,
             std::uint64_t of_instance = 0, std::uint32_t of_cpu = 0)
      : begin(from), end(to), sequence_number(number), discarded(lost), instance(of_instance), cpu(of_cpu) {
    bits.put(0xC1FC1FC1, 32);
    for (std::size_t i = 0; i < kUuid.size(); i += 2) {
      if (kUuid[i] == '-') ++i;
      bits.put(std::stoul(kUuid.substr(i, 2), nullptr, 16), 8);
    }
    bits.put(0, 32)
        .put(instance, 64)
        .put(begin, 64)
        .put(end, 64)
        .put(0, 64)
        .put(0, 64)
        .put(sequence_number, 64);
    bits.put(discarded, 64).put(cpu, 32);
  }
  static constexpr std::size_t kContentSizeAt = 8 * (4 + 16 + 4 + 8 + 16);
  static constexpr std::size_t kEventsAt = kContentSizeAt + 8 * (16 + 8 + 8 + 4);

  MadePacket& event(std::uint16_t id, std::uint64_t time) {  // with kPlainHeader
    bits.align(8).put(id, 16).put(time, 64);
    return *this;
  }
  [[nodiscard]] std::vector<std::uint8_t> bytes(std::size_t padding = 0) const {
    Bits finished = bits;
    const std::size_t content = finished.size();
    finished.align(8);
    for (std::size_t i = 0; i < padding; ++i) finished.put(0, 8);
    finished.set(kContentSizeAt, content, 64);
    finished.set(kContentSizeAt + 64, finished.size(), 64);
    return finished.bytes();
  }
};

inline std::vector<std::uint8_t> operator+(std::vector<std::uint8_t> one,
                                           const std::vector<std::uint8_t>& other) {
  one.insert(one.end(), other.begin(), other.end());
  return one;
}

// What a reader hands out: time, class, and the first slots of the payload (numbers).
struct Seen {
  std::int64_t time_ns = 0;
  std::string name;
  std::vector<std::uint64_t> values;
  bool operator==(const Seen&) const = default;
};

inline void PrintTo(const Seen& seen, std::ostream* out) {
  *out << seen.time_ns << " " << seen.name;
  for (const auto value : seen.values) *out << " " << value;
}

inline Seen look_at(const Trace& trace, const Event& event) {
  const EventLayout& layout = trace.layouts[event.class_index];
  Seen seen{event.time_ns, layout.event_class->name, {}};
  if (!layout.payload) return seen;
  for (const auto& field : layout.payload->children) {
    switch (field.kind) {
      case FieldKind::integer:
      case FieldKind::enumeration:
        seen.values.push_back(event.value(field));
        break;
      case FieldKind::text:
        for (const char c : event.text(field)) seen.values.push_back(static_cast<std::uint8_t>(c));
        break;
      case FieldKind::array:
      case FieldKind::sequence:
        for (std::uint64_t i = 0; i < event.count(field); ++i) {
          seen.values.push_back(field.bytes ? event.bytes(field)[i] : event.elements(field)[i]);
        }
        break;
      default:
        break;
    }
  }
  return seen;
}

struct ReadStream {
  std::vector<Seen> events;
  Ledger ledger;
};

inline ReadStream read(const Trace& trace, std::size_t stream = 0, std::vector<bool> wanted = {}) {
  StreamReader reader(trace, stream, std::move(wanted));
  ReadStream result;
  for (Event event; reader.next(event);) result.events.push_back(look_at(trace, event));
  result.ledger = reader.ledger();
  return result;
}

inline std::vector<std::int64_t> times(const std::vector<Seen>& events) {
  std::vector<std::int64_t> result;
  for (const auto& event : events) result.push_back(event.time_ns);
  return result;
}

}  // namespace perflab::ctf::test
