// Values of constants and defaults as they stand in interface files, with the rules of rosidl_adapter
// (Jazzy): integers as Python reads them (-1, 0x1F, 0o17, 0b101, 1_000), floats, true, false, 0 and 1, texts
// quoted or bare.
//
// Where ROS 2 takes what cannot work (a float32 of 1e50, a text above its bound in bytes) it is refused here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "message/definition.h"

namespace perflab::message {

// "uint8"
[[nodiscard]] std::string_view name_of(Primitive primitive) noexcept;
[[nodiscard]] std::optional<Primitive> primitive_of(std::string_view name) noexcept;
[[nodiscard]] std::vector<std::string_view> primitive_names();

struct Literal {
  std::optional<Value> value;
  std::string problem;  // where there is no value: what is wrong, what would be right
};

// `text` without blanks around it. `text_bound` as in FieldType.
[[nodiscard]] Literal read_literal(Primitive type, std::uint64_t text_bound, std::string_view text);

struct Elements {
  std::vector<std::string_view> texts;  // parts of what was given, without blanks around them
  std::string problem;                  // empty, or what is wrong, what would be right
  std::size_t at = 0;                   // and where, in bytes
};

// The elements of "[1, 2]"; those of texts may be quoted, with commas within.
[[nodiscard]] Elements split_elements(std::string_view text, bool are_texts);

// Of ASCII letters.
[[nodiscard]] std::string lower_case(std::string_view text);

[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

// Without blanks at its ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

}  // namespace perflab::message
