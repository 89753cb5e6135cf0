// Metadata files of traces: whatever the bytes, they are read or refused in one line, and what is read holds
// together.
#include <cstddef>
#include <cstdint>
#include <string>

#include "ctf/metadata.h"
#include "require.h"

namespace {

using namespace perflab::ctf;
using perflab::fuzz::require;

bool is_power_of_two(std::uint32_t value) { return value != 0 && (value & (value - 1)) == 0; }

// What decoders rely on.
class Check {
 public:
  explicit Check(const Metadata& metadata) : metadata_(metadata) {}

  void scope(Scope which, const FieldTypePtr& type) {
    roots_[static_cast<std::size_t>(which)] = type;
    current_ = which;
    if (type == nullptr) return;
    require(std::holds_alternative<Structure>(type->kind), "a scope is a structure");
    require(is_power_of_two(type->alignment), "alignments are powers of two");
    (*this)(*type);
  }

  void forget_after(Scope which) {
    for (std::size_t i = static_cast<std::size_t>(which) + 1; i < kScopes; ++i) roots_[i] = nullptr;
  }

 private:
  void operator()(const FieldType& type) {
    if (++visited_ > 20'000) return;
    std::visit([this](const auto& kind) { check(kind); }, type.kind);
  }

  void check(const Integer& type) {
    require(type.size >= 1 && type.size <= 64, "integers have 1 to 64 bits");
    require(is_power_of_two(type.alignment), "alignments are powers of two");
    require(type.base == 2 || type.base == 8 || type.base == 10 || type.base == 16, "bases are known");
    require(!type.clock || *type.clock < metadata_.clocks.size(), "clocks are there");
  }
  void check(const Float& type) {
    require(type.exponent_bits + type.mantissa_bits == 32 || type.exponent_bits + type.mantissa_bits == 64,
            "floats have 32 or 64 bits");
  }
  void check(const Enumeration& type) {
    check(type.integer);
    for (const auto& mapping : type.mappings) {
      const bool ordered = type.integer.is_signed ? static_cast<std::int64_t>(mapping.lowest) <=
                                                        static_cast<std::int64_t>(mapping.highest)
                                                  : mapping.lowest <= mapping.highest;
      require(ordered, "ranges are in order");
    }
  }
  void check(const Text&) {}
  void check(const Array& type) { (*this)(*type.element); }
  void check(const Sequence& type) {
    const FieldType* length = target(type.length);
    const auto* integer = std::get_if<Integer>(&length->kind);
    const auto* enumeration = std::get_if<Enumeration>(&length->kind);
    if (enumeration != nullptr) integer = &enumeration->integer;
    require(integer != nullptr && !integer->is_signed, "lengths are unsigned integers");
    (*this)(*type.element);
  }
  void check(const Structure& type) {
    require(is_power_of_two(type.minimum_alignment), "alignments are powers of two");
    for (const auto& field : type.fields) {
      require(!field.name.empty(), "fields have names");
      (*this)(*field.type);
    }
  }
  void check(const Variant& type) {
    require(std::holds_alternative<Enumeration>(target(type.selector)->kind), "selectors are enumerations");
    require(!type.options.empty(), "variants have options");
    for (const auto& choice : type.choices)
      require(choice.option < type.options.size(), "choices are options");
    for (const auto& option : type.options) (*this)(*option.type);
  }

  const FieldType* target(const FieldPath& path) const {
    require(path.scope <= current_, "what is referred to comes before");
    const FieldType* type = roots_[static_cast<std::size_t>(path.scope)].get();
    for (const auto index : path.indices) {
      require(type != nullptr, "a path leads to a field");
      while (true) {
        if (const auto* array = std::get_if<Array>(&type->kind)) {
          type = array->element.get();
        } else if (const auto* sequence = std::get_if<Sequence>(&type->kind)) {
          type = sequence->element.get();
        } else {
          break;
        }
      }
      const auto* structure = std::get_if<Structure>(&type->kind);
      const auto* variant = std::get_if<Variant>(&type->kind);
      require(structure != nullptr || variant != nullptr, "a path leads through structures and variants");
      const auto& fields = structure != nullptr ? structure->fields : variant->options;
      require(index < fields.size(), "a path leads to a field");
      type = fields[index].type.get();
    }
    require(type != nullptr && !path.indices.empty(), "a path leads to a field");
    return type;
  }

  const Metadata& metadata_;
  std::array<FieldTypePtr, kScopes> roots_;
  Scope current_ = Scope::packet_header;
  std::size_t visited_ = 0;
};

void check(const Metadata& metadata) {
  Check checker(metadata);
  checker.scope(Scope::packet_header, metadata.packet_header);
  for (const auto& [id, stream] : metadata.streams) {
    require(stream.id == id, "streams are known by their ids");
    checker.forget_after(Scope::packet_header);
    checker.scope(Scope::packet_context, stream.packet_context);
    checker.scope(Scope::event_header, stream.event_header);
    checker.scope(Scope::stream_event_context, stream.event_context);
    for (const auto& [event_id, event] : stream.events) {
      require(event->id == event_id && event->stream_class == id, "events are known by their ids");
      checker.forget_after(Scope::stream_event_context);
      checker.scope(Scope::event_context, event->context);
      checker.scope(Scope::payload, event->payload);
    }
  }
  for (const auto& [key, value] : metadata.environment) {
    require(metadata.environment_text(key).has_value(), "every entry of env has a text");
  }
  for (const auto& warning : metadata.warnings) perflab::fuzz::require_one_line(warning);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  try {
    check(parse_metadata(metadata_text(bytes, "m"), "m"));
  } catch (const MetadataError& error) {
    perflab::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).starts_with("m:"), "a refusal begins with its place");
  }
  return 0;
}
