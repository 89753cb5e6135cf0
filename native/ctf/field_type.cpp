#include "ctf/field_type.h"

#include <algorithm>

namespace perflab::ctf {

namespace {

struct Measure {
  std::uint32_t alignment = 1;
  std::uint64_t minimum_bits = 0;
};

Measure measure(const Integer& type) { return {type.alignment, type.size}; }
Measure measure(const Float& type) { return {type.alignment, type.exponent_bits + type.mantissa_bits}; }
Measure measure(const Enumeration& type) { return measure(type.integer); }
Measure measure(const Text& /*type*/) { return {8, 8}; }
Measure measure(const Sequence& type) { return {type.element->alignment, 0}; }

Measure measure(const Array& type) {
  const std::uint64_t bits = type.element->minimum_bits;
  const bool is_long = bits != 0 && type.length > kLongestArray / bits;
  return {type.element->alignment, is_long ? kLongestArray : type.length * bits};
}

Measure measure(const Structure& type) {
  Measure result{type.minimum_alignment, 0};
  for (const auto& field : type.fields) {
    result.alignment = std::max(result.alignment, field.type->alignment);
    result.minimum_bits = std::min(result.minimum_bits + field.type->minimum_bits, kLongestArray);
  }
  return result;
}

Measure measure(const Variant& type) {
  Measure result{1, type.options.empty() ? 0 : kLongestArray};
  for (const auto& option : type.options) {
    result.minimum_bits = std::min(result.minimum_bits, option.type->minimum_bits);
  }
  return result;
}

}  // namespace

FieldType::FieldType(Kind of) : kind(std::move(of)) {
  const Measure measured = std::visit([](const auto& type) { return measure(type); }, kind);
  alignment = measured.alignment;
  minimum_bits = measured.minimum_bits;
}

}  // namespace perflab::ctf
