#include "ctf/layout.h"

#include <algorithm>

namespace perflab::ctf {
namespace {

// Types are shared, so a few lines of metadata can describe a structure with more fields than fit in memory.
constexpr std::uint32_t kMaximumFields = 1U << 16U;
constexpr int kMaximumDepth = 100;

class LayoutBuilder {
 public:
  FieldLayout build(const std::string& name, const FieldType& type, std::uint32_t slot, int depth = 0) {
    if (++fields_ > kMaximumFields || depth > kMaximumDepth) {
      throw MetadataError("a structure has more than " + std::to_string(kMaximumFields) + " fields or " +
                          std::to_string(kMaximumDepth) + " levels");
    }
    FieldLayout layout;
    layout.name = name;
    layout.kind = static_cast<FieldKind>(type.kind.index());
    layout.type = &type;
    layout.slot = slot;
    layout.width = 1;
    const Integer* const integer = integer_of(type);
    layout.is_signed = layout.kind == FieldKind::floating || (integer != nullptr && integer->is_signed);
    layout.is_text = layout.kind == FieldKind::text;
    if (layout.is_text) layout.width = 2;
    if (const auto* array = std::get_if<Array>(&type.kind)) add_element(layout, *array->element, depth);
    if (const auto* sequence = std::get_if<Sequence>(&type.kind))
      add_element(layout, *sequence->element, depth);
    if (const auto* structure = std::get_if<Structure>(&type.kind)) add_fields(layout, *structure, depth);
    if (const auto* variant = std::get_if<Variant>(&type.kind)) add_options(layout, *variant, depth);
    return layout;
  }

 private:
  void add_element(FieldLayout& layout, const FieldType& element, int depth) {
    layout.width = 2;
    layout.children.push_back(build("", element, 0, depth + 1));
    const auto* integer = std::get_if<Integer>(&element.kind);
    layout.bytes = integer != nullptr && integer->size == 8 && integer->alignment <= 8;
    layout.is_text = layout.bytes && integer->is_text;
  }
  void add_fields(FieldLayout& layout, const Structure& structure, int depth) {
    layout.width = 0;
    layout.children.reserve(structure.fields.size());
    for (const auto& field : structure.fields) {
      layout.children.push_back(build(field.name, *field.type, layout.slot + layout.width, depth + 1));
      layout.width += layout.children.back().width;
    }
  }
  void add_options(FieldLayout& layout, const Variant& variant, int depth) {
    layout.children.reserve(variant.options.size());
    std::uint32_t widest = 0;
    for (const auto& option : variant.options) {
      layout.children.push_back(build(option.name, *option.type, layout.slot + 1, depth + 1));
      widest = std::max(widest, layout.children.back().width);
    }
    layout.width = 1 + widest;
  }

  std::uint32_t fields_ = 0;
};

const FieldLayout* child_of(const std::optional<FieldLayout>& scope, std::string_view name) noexcept {
  return scope ? scope->child(name) : nullptr;
}

}  // namespace

const FieldLayout* FieldLayout::child(std::string_view field) const noexcept {
  const auto found = std::find_if(children.begin(), children.end(),
                                  [&](const FieldLayout& child) { return child.name == field; });
  return found == children.end() ? nullptr : &*found;
}

const FieldLayout* EventLayout::payload_field(std::string_view name) const noexcept {
  return child_of(payload, name);
}

const FieldLayout* EventLayout::context_field(std::string_view name) const noexcept {
  const auto* field = child_of(context, name);
  return field != nullptr ? field : child_of(stream_context, name);
}

FieldLayout make_layout(const std::string& name, const FieldType& type, std::uint32_t first_slot) {
  return LayoutBuilder().build(name, type, first_slot);
}

EventLayout make_layout(const StreamClass& stream, const EventClass& event) {
  EventLayout layout;
  layout.event_class = &event;
  const auto add = [&](std::optional<FieldLayout>& scope, const char* name, const FieldTypePtr& type) {
    if (!type) return;
    scope = make_layout(name, *type, layout.slots);
    layout.slots += scope->width;
  };
  add(layout.header, "header", stream.event_header);
  add(layout.stream_context, "stream_context", stream.event_context);
  add(layout.context, "context", event.context);
  add(layout.payload, "payload", event.payload);
  return layout;
}

}  // namespace perflab::ctf
