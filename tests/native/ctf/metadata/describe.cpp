#include "describe.h"

#include <fmt/format.h>

#include <array>

namespace perflab::ctf::testing {

namespace {

constexpr std::array<const char*, kScopes> kScopeNames = {
    "packet_header", "packet_context", "event_header", "stream_event_context", "event_context", "payload"};

std::string path_text(const FieldPath& path) {
  std::string text = kScopeNames.at(static_cast<std::size_t>(path.scope));
  for (const auto index : path.indices) text += fmt::format(".{}", index);
  return text;
}

std::string order_text(ByteOrder order) { return order == ByteOrder::little ? "le" : "be"; }

std::string value_text(std::uint64_t value, bool is_signed) {
  return is_signed ? std::to_string(static_cast<std::int64_t>(value)) : std::to_string(value);
}

std::string uuid_text(const Uuid& uuid) {
  std::string text;
  for (const auto byte : uuid) text += fmt::format("{:02x}", byte);
  return text;
}

std::string integer_text(const Integer& type) {
  std::string text = fmt::format("{}{} align {} {} base {}", type.is_signed ? "int" : "uint", type.size,
                                 type.alignment, order_text(type.order), type.base);
  if (type.is_text) text += " text";
  if (type.clock) text += fmt::format(" clock {}", *type.clock);
  return text;
}

void describe_type(std::string& out, const FieldType& type, int level);

void describe_field(std::string& out, const NamedField& field, int level) {
  out += fmt::format("{:{}}{}: ", "", level * 2, field.name);
  describe_type(out, *field.type, level);
}

struct Describer {
  std::string& out;
  const FieldType& type;
  int level;

  void operator()(const Integer& integer) const { out += integer_text(integer) + "\n"; }
  void operator()(const Float& real) const {
    out += fmt::format("float {}+{} align {} {}\n", real.exponent_bits, real.mantissa_bits, real.alignment,
                       order_text(real.order));
  }
  void operator()(const Enumeration& enumeration) const {
    out += "enum " + integer_text(enumeration.integer) + "\n";
    for (const auto& mapping : enumeration.mappings) {
      const bool is_signed = enumeration.integer.is_signed;
      out += fmt::format("{:{}}\"{}\" = {} ... {}\n", "", (level + 1) * 2, mapping.label,
                         value_text(mapping.lowest, is_signed), value_text(mapping.highest, is_signed));
    }
  }
  void operator()(const Text&) const { out += "string\n"; }
  void operator()(const Array& array) const {
    out += fmt::format("array [{}] align {} of ", array.length, type.alignment);
    describe_type(out, *array.element, level);
  }
  void operator()(const Sequence& sequence) const {
    out += fmt::format("sequence [{}] align {} of ", path_text(sequence.length), type.alignment);
    describe_type(out, *sequence.element, level);
  }
  void operator()(const Structure& structure) const {
    out += fmt::format("struct align {}\n", type.alignment);
    for (const auto& field : structure.fields) describe_field(out, field, level + 1);
  }
  void operator()(const Variant& variant) const {
    out += fmt::format("variant <{}> align {}\n", path_text(variant.selector), type.alignment);
    for (const auto& choice : variant.choices) {
      out += fmt::format("{:{}}{} ... {} -> {}\n", "", (level + 1) * 2,
                         value_text(choice.lowest, variant.selector_is_signed),
                         value_text(choice.highest, variant.selector_is_signed), choice.option);
    }
    for (const auto& option : variant.options) describe_field(out, option, level + 1);
  }
};

void describe_type(std::string& out, const FieldType& type, int level) {
  std::visit(Describer{out, type, level}, type.kind);
}

void describe_scope(std::string& out, const char* name, const FieldTypePtr& type, int level) {
  if (type == nullptr) return;
  describe_field(out, {name, type}, level);
}

void describe_event(std::string& out, const EventClass& event) {
  out += fmt::format("  event {} of {} \"{}\"", event.id, event.stream_class, event.name);
  if (event.log_level) out += fmt::format(" loglevel {}", *event.log_level);
  out += "\n";
  describe_scope(out, "context", event.context, 2);
  describe_scope(out, "payload", event.payload, 2);
}

}  // namespace

std::string describe(const Metadata& metadata) {
  std::string out = fmt::format("trace {}.{} {}", metadata.major, metadata.minor, order_text(metadata.order));
  if (metadata.uuid) out += " uuid " + uuid_text(*metadata.uuid);
  out += "\n";
  describe_scope(out, "packet header", metadata.packet_header, 1);
  for (const auto& clock : metadata.clocks) {
    out += fmt::format("clock \"{}\" {} Hz precision {} offset {} s {} cycles{}", clock.name,
                       clock.frequency_hz, clock.precision, clock.offset_seconds, clock.offset_cycles,
                       clock.absolute ? " absolute" : "");
    if (clock.uuid) out += " uuid " + uuid_text(*clock.uuid);
    if (!clock.description.empty()) out += fmt::format(" \"{}\"", clock.description);
    out += "\n";
  }
  for (const auto& [key, value] : metadata.environment) {
    const bool is_number = std::holds_alternative<std::int64_t>(value);
    const std::string text = metadata.environment_text(key).value();
    out += fmt::format("env {} = {}\n", key, is_number ? text : "\"" + text + "\"");
  }
  for (const auto& [id, stream] : metadata.streams) {
    out += fmt::format("stream {}\n", id);
    describe_scope(out, "packet context", stream.packet_context, 1);
    describe_scope(out, "event header", stream.event_header, 1);
    describe_scope(out, "event context", stream.event_context, 1);
    for (const auto& event : stream.events) describe_event(out, *event.second);
  }
  for (const auto& warning : metadata.warnings) out += "warning " + warning + "\n";
  return out;
}

}  // namespace perflab::ctf::testing
