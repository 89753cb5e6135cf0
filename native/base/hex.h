// Bytes as lower-case hexadecimal text, two digits per byte.
#pragma once

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace perflab {

[[nodiscard]] inline std::string to_hex(std::span<const std::uint8_t> bytes) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

// "2a6422d0-6cee-11e0-8c08-cb07d7b3a564"
[[nodiscard]] inline std::string uuid_text(std::span<const std::uint8_t, 16> uuid) {
  std::string text = to_hex(uuid);
  for (const std::size_t at : {20, 16, 12, 8}) text.insert(at, 1, '-');
  return text;
}

// The inverse of to_hex(). False if the text is not exactly that many bytes; `bytes` are then unspecified.
[[nodiscard]] inline bool from_hex(std::string_view text, std::span<std::uint8_t> bytes) noexcept {
  if (text.size() != 2 * bytes.size()) return false;
  if (std::ranges::any_of(text, [](char c) { return c >= 'A' && c <= 'F'; })) return false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const begin = text.data() + 2 * i;
    const auto [end, code] = std::from_chars(begin, begin + 2, bytes[i], 16);
    if (code != std::errc{} || end != begin + 2) return false;
  }
  return true;
}

}  // namespace perflab
