#include "ctf/layout.h"

#include <algorithm>

namespace perflab::ctf {
namespace {

// Types are shared, so a few lines of metadata can describe a structure with more fields than any memory
// holds.
constexpr std::uint32_t kMaximumFields = 1U << 16U;
constexpr int kMaximumDepth = 100;

class Builder {
 public:
  FieldLayout build(const std::string& name, const FieldType& type, std::uint32_t slot, int depth = 0) {
    if (++fields_ > kMaximumFields || depth > kMaximumDepth) {
      throw MetadataError("a structure has more than " + std::to_string(kMaximumFields) + " fields or " +
                          std::to_string(kMaximumDepth) + " levels");
    }
    FieldLayout layout;
    layout.name = name;
    layout.type = &type;
    layout.slot = slot;
    std::visit([&](const auto& kind) { fill(layout, kind, depth); }, type.kind);
    return layout;
  }

 private:
  void fill(FieldLayout& layout, const Integer& integer, int /*depth*/) {
    layout.kind = FieldKind::integer;
    layout.width = 1;
    layout.is_signed = integer.is_signed;
  }
  void fill(FieldLayout& layout, const Float& /*real*/, int /*depth*/) {
    layout.kind = FieldKind::floating;
    layout.width = 1;
    layout.is_signed = true;
  }
  void fill(FieldLayout& layout, const Enumeration& enumeration, int /*depth*/) {
    layout.kind = FieldKind::enumeration;
    layout.width = 1;
    layout.is_signed = enumeration.integer.is_signed;
  }
  void fill(FieldLayout& layout, const Text& /*text*/, int /*depth*/) {
    layout.kind = FieldKind::text;
    layout.width = 2;
    layout.is_text = true;
  }
  void fill(FieldLayout& layout, const Array& array, int depth) {
    layout.kind = FieldKind::array;
    fill_elements(layout, array.element, depth);
  }
  void fill(FieldLayout& layout, const Sequence& sequence, int depth) {
    layout.kind = FieldKind::sequence;
    fill_elements(layout, sequence.element, depth);
  }
  void fill_elements(FieldLayout& layout, const FieldTypePtr& element, int depth) {
    if (!element) throw MetadataError("the elements of \"" + layout.name + "\" have no type");
    layout.width = 2;
    layout.children.push_back(build("", *element, 0, depth + 1));
    if (const auto* integer = std::get_if<Integer>(&element->kind)) {
      layout.bytes = integer->size == 8 && integer->alignment <= 8;
      layout.is_text = layout.bytes && integer->is_text;
    }
  }
  void fill(FieldLayout& layout, const Structure& structure, int depth) {
    layout.kind = FieldKind::structure;
    layout.children.reserve(structure.fields.size());
    for (const auto& field : structure.fields) {
      if (!field.type) throw MetadataError("the field \"" + field.name + "\" has no type");
      layout.children.push_back(build(field.name, *field.type, layout.slot + layout.width, depth + 1));
      layout.width += layout.children.back().width;
    }
  }
  void fill(FieldLayout& layout, const Variant& variant, int depth) {
    layout.kind = FieldKind::variant;
    layout.children.reserve(variant.options.size());
    std::uint32_t widest = 0;
    for (const auto& option : variant.options) {
      if (!option.type) throw MetadataError("the option \"" + option.name + "\" has no type");
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
  return Builder().build(name, type, first_slot);
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
