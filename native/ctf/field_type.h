// Types of fields as the metadata of a trace declares them (TSDL, CTF 1.8).
//
// A type is immutable after parsing and shared by all fields that have it. Sizes and alignments are in bits,
// as in the metadata. Names are as in the metadata, without the single leading underscore by which tracers
// keep names from being keywords ("_vpid" becomes "vpid", as in babeltrace2).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace perflab::ctf {

enum class ByteOrder : std::uint8_t { little, big };

// Scope of a field. Lengths of sequences and selectors of variants refer to fields of the same or an earlier
// scope.
enum class Scope : std::uint8_t {
  packet_header,
  packet_context,
  event_header,
  stream_event_context,
  event_context,
  payload
};
inline constexpr std::size_t kScopes = 6;

// Path to a field: a scope, then the index of the field in each structure on the way. The parser resolves the
// names of lengths and selectors to paths. A path does not lead through arrays or sequences, and through a
// variant only if its option contains the referring field; the path then has the option's index.
struct FieldPath {
  Scope scope = Scope::payload;
  std::vector<std::uint32_t> indices;
  bool operator==(const FieldPath&) const = default;
};

struct FieldType;
using FieldTypePtr = std::shared_ptr<const FieldType>;

struct Integer {
  std::uint32_t size = 0;       // 1 to 64 bits
  std::uint32_t alignment = 1;  // a power of two
  bool is_signed = false;
  ByteOrder order = ByteOrder::little;
  std::uint32_t base = 10;             // for display: 2, 8, 10, 16
  bool is_text = false;                // encoding is UTF8 or ASCII: arrays of 8-bit ones are text
  std::optional<std::uint32_t> clock;  // index into Metadata::clocks if the value is a time of that clock
  bool operator==(const Integer&) const = default;
};

struct Float {
  std::uint32_t exponent_bits = 0;
  std::uint32_t mantissa_bits = 0;  // including the hidden bit: 24 for binary32, 53 for binary64
  std::uint32_t alignment = 1;
  ByteOrder order = ByteOrder::little;
  bool operator==(const Float&) const = default;
};

struct EnumerationMapping {
  std::string label;
  // Inclusive limits of the range; two's complement if the integer is signed.
  std::uint64_t lowest = 0;
  std::uint64_t highest = 0;
  bool operator==(const EnumerationMapping&) const = default;
};

struct Enumeration {
  Integer integer;
  std::vector<EnumerationMapping> mappings;
  bool operator==(const Enumeration&) const = default;
};

struct Text {  // a string that ends with a zero byte; aligned to 8 bits
  bool operator==(const Text&) const = default;
};

struct Array {
  FieldTypePtr element;
  std::uint64_t length = 0;
};

struct Sequence {
  FieldTypePtr element;
  FieldPath length;
};

struct NamedField {
  std::string name;
  FieldTypePtr type;
};

struct Structure {
  std::vector<NamedField> fields;
  std::uint32_t minimum_alignment = 1;  // from `align(N)`; fields may require more
};

struct Variant {
  FieldPath selector;               // an enumeration
  std::vector<NamedField> options;  // named like the labels of the enumeration
  // The option that each range of the selector chooses, in the order of the enumeration's mappings.
  struct Choice {
    std::uint64_t lowest = 0;
    std::uint64_t highest = 0;
    std::uint32_t option = 0;
    bool operator==(const Choice&) const = default;
  };
  std::vector<Choice> choices;
  bool selector_is_signed = false;
};

struct FieldType {
  using Kind = std::variant<Integer, Float, Enumeration, Text, Array, Sequence, Structure, Variant>;

  FieldType(Kind of);  // NOLINT: a type is its kind

  Kind kind;
  // Alignment of a field of this type in bits (CTF 1.8, section 4): of a structure, the largest of its own
  // and its fields'; of an array or sequence, its element's; of a variant 1 (its option aligns itself).
  std::uint32_t alignment = 1;
  std::uint64_t minimum_bits = 0;  // minimum size without alignment; at most kLongestArray
};
inline constexpr std::uint64_t kLongestArray = std::uint64_t{1} << 56U;

// The integer type of an integer or enumeration; null for other types.
[[nodiscard]] inline const Integer* integer_of(const FieldType& type) noexcept {
  if (const auto* integer = std::get_if<Integer>(&type.kind)) return integer;
  const auto* enumeration = std::get_if<Enumeration>(&type.kind);
  return enumeration != nullptr ? &enumeration->integer : nullptr;
}

}  // namespace perflab::ctf
