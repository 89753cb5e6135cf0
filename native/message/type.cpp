#include "message/type.h"

#include <algorithm>

namespace perflab::message {
namespace {

constexpr std::size_t round_up(std::size_t value, std::size_t alignment) noexcept {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace

std::size_t Element::stride() const noexcept {
  if (type != nullptr) return type->size;
  return is_text() ? sizeof(Sequence) : size_of(primitive);
}

std::size_t Element::alignment() const noexcept {
  if (type != nullptr) return type->alignment;
  return is_text() ? alignof(Sequence) : size_of(primitive);
}

bool Element::plain() const noexcept { return type != nullptr ? type->plain : !is_text(); }

const Member* Type::member(std::string_view member_name) const noexcept {
  const auto found = std::ranges::find(members, member_name, &Member::name);
  return found == members.end() ? nullptr : &*found;
}

const Type& Types::find(const std::string& full_name) {
  if (const auto known = types_.find(full_name); known != types_.end()) return *known->second;
  const Definition& definition = library_.find(full_name);
  auto type = std::make_unique<Type>();
  type->name = definition.name;
  for (const Field& field : definition.fields) {
    Member member;
    member.name = field.name;
    if (const auto* const nested = std::get_if<std::string>(&field.type.element)) {
      member.element.type = &find(*nested);
    } else {
      member.element.primitive = std::get<Primitive>(field.type.element);
    }
    member.element.text_bound = field.type.text_bound;
    member.plurality = field.type.plurality;
    member.count = field.type.count;
    member.defaults = field.defaults;
    member.has_default = field.has_default;
    member.key = field.key;
    const bool sequence = member.is_sequence();
    const std::size_t alignment = sequence ? alignof(Sequence) : member.element.alignment();
    member.offset = round_up(type->size, alignment);
    type->size = member.offset + (sequence ? sizeof(Sequence) : member.element.stride() * member.in_place());
    type->alignment = std::max(type->alignment, alignment);
    type->plain = type->plain && !sequence && member.element.plain();
    type->keyed = type->keyed || member.key;
    type->members.push_back(std::move(member));
  }
  type->size = round_up(type->size, type->alignment);
  return *types_.emplace(full_name, std::move(type)).first->second;
}

}  // namespace perflab::message
