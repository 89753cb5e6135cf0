// Constants and default values in interface files, by the rules of rosidl_adapter (Jazzy): integers as in
// Python (-1, 0x1F, 0o17, 0b101, 1_000), floats, true, false, 0 and 1, quoted or bare strings.
//
// Values that ROS 2 accepts but that cannot work (a float32 of 1e50, a string that exceeds its bound in
// bytes) are refused.
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
  std::string problem;  // if there is no value: what is wrong, what would be right
};

// Parses `text`, ignoring blanks around it. `text_bound` as in FieldType.
[[nodiscard]] Literal read_literal(Primitive type, std::uint64_t text_bound, std::string_view text);

struct Elements {
  std::vector<std::string_view> texts;  // parts of the input, without surrounding blanks
  std::string problem;                  // empty, or what is wrong, what would be right
  std::size_t at = 0;                   // position of the problem, in bytes
};

// The elements of "[1, 2]"; those of strings may be quoted and contain commas.
[[nodiscard]] Elements split_elements(std::string_view text, bool are_texts);

// For ASCII letters.
[[nodiscard]] std::string lower_case(std::string_view text);

[[nodiscard]] constexpr bool is_blank(char c) noexcept { return c == ' ' || c == '\t'; }

// Removes blanks at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view text) noexcept;

}  // namespace perflab::message
