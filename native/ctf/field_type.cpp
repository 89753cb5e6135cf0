#include "ctf/field_type.h"

#include <algorithm>

namespace perflab::ctf {

namespace {

struct AlignmentOf {
  std::uint32_t operator()(const Integer& type) const { return type.alignment; }
  std::uint32_t operator()(const Float& type) const { return type.alignment; }
  std::uint32_t operator()(const Enumeration& type) const { return type.integer.alignment; }
  std::uint32_t operator()(const Text&) const { return 8; }
  std::uint32_t operator()(const Array& type) const { return type.element->alignment(); }
  std::uint32_t operator()(const Sequence& type) const { return type.element->alignment(); }
  std::uint32_t operator()(const Structure& type) const {
    std::uint32_t result = type.minimum_alignment;
    for (const auto& field : type.fields) result = std::max(result, field.type->alignment());
    return result;
  }
  std::uint32_t operator()(const Variant&) const { return 1; }
};

}  // namespace

std::uint32_t FieldType::alignment() const { return std::visit(AlignmentOf{}, kind); }

}  // namespace perflab::ctf
