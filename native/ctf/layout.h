// Where the decoder puts what it decodes: every field has fixed places ("slots" of 64 bits) in an array.
//
// A field's slots are the same in every event of its class, although sizes in the trace vary:
//
//   integer, enumeration   1 slot: the value, sign-extended
//   float                  1 slot: the bits of a double
//   text                   2 slots: const char* into the mapped file, length without the zero
//   array, sequence        2 slots: pointer and number of elements. Elements that are 8-bit integers on whole
//                          bytes lie as bytes in the mapped file; all others lie as slots in the reader's
//                          memory, width(element) each
//   structure              the slots of its fields, one after the other
//   variant                1 slot: the index of the option, then the slots of the option (room for the
//                          widest)
//
// Pointers are good until the reader is asked for the next event (or batch) and the trace is open.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "ctf/metadata.h"

namespace perflab::ctf {

// In the order of FieldType::Kind.
enum class FieldKind { integer, floating, enumeration, text, array, sequence, structure, variant };

// A field, with the slots of all fields nested in it.
struct FieldLayout {
  std::string name;
  FieldKind kind = FieldKind::structure;
  const FieldType* type = nullptr;
  std::uint32_t slot = 0;  // first slot, from the start of the event's slots (inside an element: of the
                           // element)
  std::uint32_t width = 0;            // number of slots
  bool is_signed = false;             // integers and enumerations
  bool bytes = false;                 // arrays and sequences: the elements lie as bytes in the mapped file
  bool is_text = false;               // these bytes are text that ends at the first zero
  std::vector<FieldLayout> children;  // fields, options, or the one element (its slots count from 0)

  [[nodiscard]] const FieldLayout* child(std::string_view field) const noexcept;
};

// All scopes of one event class. Slots of the event header come first, then the contexts, then the payload.
struct EventLayout {
  const EventClass* event_class = nullptr;
  std::uint32_t slots = 0;
  std::optional<FieldLayout> header;
  std::optional<FieldLayout> stream_context;
  std::optional<FieldLayout> context;
  std::optional<FieldLayout> payload;

  // A top-level field of the payload, or of a context; null if there is none.
  [[nodiscard]] const FieldLayout* payload_field(std::string_view name) const noexcept;
  [[nodiscard]] const FieldLayout* context_field(std::string_view name) const noexcept;
};

[[nodiscard]] FieldLayout make_layout(const std::string& name, const FieldType& type,
                                      std::uint32_t first_slot);
[[nodiscard]] EventLayout make_layout(const StreamClass& stream, const EventClass& event);

}  // namespace perflab::ctf
