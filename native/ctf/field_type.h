// The types of fields, as the metadata of a trace (TSDL, CTF 1.8) declares them.
//
// A type is immutable once it is parsed and is shared by all fields that have it. Sizes and alignments are in
// bits, as in the metadata. Names are as in the metadata but without the one leading underscore that tracers
// put before names to keep them from being keywords ("_vpid" is "vpid"); this is what babeltrace2 shows, too.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace perflab::ctf {

enum class ByteOrder : std::uint8_t { little, big };

// Where a field stands. Lengths of sequences and selectors of variants refer to fields of the same or of an
// earlier scope.
enum class Scope : std::uint8_t {
  packet_header,
  packet_context,
  event_header,
  stream_event_context,
  event_context,
  payload
};
inline constexpr std::size_t kScopes = 6;

// The way to a field: a scope, and then the index of the field in each structure on the way. What a length or
// a selector names, resolved by the parser. Arrays, sequences and variants are not walked through except that
// a variant's option that holds the referring field itself may be: the index of the option then stands in the
// path.
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
  std::uint32_t base = 10;             // for showing: 2, 8, 10, 16
  bool is_text = false;                // encoding is UTF8 or ASCII: arrays of 8-bit ones are text
  std::optional<std::uint32_t> clock;  // index into Metadata::clocks, where the value is one of that clock
  bool operator==(const Integer&) const = default;
};

struct Float {
  std::uint32_t exponent_bits = 0;
  std::uint32_t mantissa_bits = 0;  // with the hidden bit: 24 for binary32, 53 for binary64
  std::uint32_t alignment = 1;
  ByteOrder order = ByteOrder::little;
  bool operator==(const Float&) const = default;
};

struct EnumerationMapping {
  std::string label;
  // Both ends are in the range; as the integer's signedness says, in two's complement.
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
  std::uint32_t minimum_alignment = 1;  // of `align(N)`; the fields may ask for more
};

struct Variant {
  FieldPath selector;               // an enumeration
  std::vector<NamedField> options;  // named as the labels of the enumeration
  // For each range of the selector the option it chooses, in the order of the enumeration's mappings.
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
  // Bits to which a field of this type is aligned, as CTF 1.8 section 4 says: of a structure the largest of
  // its own and its fields'; of an array or sequence that of its element; of a variant 1 (its option aligns
  // itself).
  std::uint32_t alignment = 1;
  std::uint64_t minimum_bits = 0;  // that it takes at the least, without alignment; at most kLongestArray
};
inline constexpr std::uint64_t kLongestArray = std::uint64_t{1} << 56U;

// The integer that a field is, or by which it is an enumeration; null for other types.
[[nodiscard]] inline const Integer* integer_of(const FieldType& type) noexcept {
  if (const auto* integer = std::get_if<Integer>(&type.kind)) return integer;
  const auto* enumeration = std::get_if<Enumeration>(&type.kind);
  return enumeration != nullptr ? &enumeration->integer : nullptr;
}

}  // namespace perflab::ctf
