// Makes text of unknown origin fit for one line of an error message.
//
// Example:
//   one_line("a\nb");        // a\x0ab
//   quote("a very long...")  // 'a very lo...'
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace perflab {

[[nodiscard]] constexpr bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

// Escapes control characters and invalid UTF-8 as \xNN.
std::string one_line(std::string_view text);

// One line in single quotes; long texts are shortened in the middle.
std::string quote(std::string_view text);

// "a, b or c"
std::string list_of(const std::vector<std::string_view>& words);

// The offset of the first byte that is not well-formed UTF-8, or npos.
std::size_t find_invalid_utf8(std::string_view text) noexcept;

// The candidate that `word` probably stands for, or "" if none is close.
std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace perflab
