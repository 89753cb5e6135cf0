// What a trace says about itself: clocks, streams and events, from its `metadata` file.
//
// Example:
//   const Metadata metadata = read_metadata("trace/ust/uid/1000/64-bit/metadata");
//   for (const auto& event : metadata.event_classes) puts(event->name.c_str());
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "ctf/field_type.h"

namespace perflab::ctf {

using Uuid = std::array<std::uint8_t, 16>;

// One line: "FILE:LINE:COLUMN: what is wrong, and what would be right".
class MetadataError : public BadInput {
 public:
  using BadInput::BadInput;
};

struct Clock {
  std::string name;
  std::string description;
  std::optional<Uuid> uuid;
  std::uint64_t frequency_hz = 1'000'000'000;
  std::uint64_t precision = 0;  // in cycles
  // The origin of its cycles, since the epoch where known: offset_seconds + offset_cycles / frequency_hz.
  std::int64_t offset_seconds = 0;
  std::int64_t offset_cycles = 0;
  bool absolute = false;
};

struct EventClass {
  std::uint64_t id = 0;
  std::uint64_t stream_class = 0;  // its id
  std::string name;                // "" where the metadata gives none
  std::optional<std::int64_t> log_level;
  FieldTypePtr context;  // null or a structure
  FieldTypePtr payload;  // null or a structure
};

struct StreamClass {
  std::uint64_t id = 0;
  FieldTypePtr packet_context;  // each null or a structure
  FieldTypePtr event_header;
  FieldTypePtr event_context;
  std::map<std::uint64_t, std::shared_ptr<const EventClass>> events;  // by id
};

// A value of the `env` block.
using EnvironmentValue = std::variant<std::int64_t, std::string>;

struct Metadata {
  std::uint32_t major = 1;
  std::uint32_t minor = 8;
  std::optional<Uuid> uuid;
  ByteOrder order = ByteOrder::little;
  FieldTypePtr packet_header;  // null or a structure
  std::vector<Clock> clocks;
  std::map<std::string, EnvironmentValue> environment;
  std::map<std::uint64_t, StreamClass> streams;  // by id
  // What is unusual but readable, each one line with its place: an unknown attribute, a duplicate of an env
  // key.
  std::vector<std::string> warnings;

  // Text of an entry of `env`; numbers as decimal text; nothing where there is none.
  [[nodiscard]] std::optional<std::string> environment_text(std::string_view key) const;
};

// Parses TSDL text. `name` stands in error messages where a file name would. Throws MetadataError. Nesting is
// bounded (an error beyond 100 levels), and so are sizes; time and memory are linear in the text.
[[nodiscard]] Metadata parse_metadata(std::string_view text, const std::string& name);

// The TSDL text of a metadata file that may be in packets (magic 0x75D11D57, either byte order, no
// compression or encryption) or plain. Throws MetadataError: not metadata, a broken packet, CTF 2 (JSON; says
// that it is not read).
[[nodiscard]] std::string metadata_text(std::string_view bytes, const std::string& name);

// Reads and parses the file. Throws MetadataError, also where the file cannot be read.
[[nodiscard]] Metadata read_metadata(const std::filesystem::path& file);

}  // namespace perflab::ctf
