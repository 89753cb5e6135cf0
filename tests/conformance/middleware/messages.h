// Messages that can be recognised: a CDR header, the number of the message, and bytes that depend on both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace perflab::conformance {

inline constexpr std::size_t kSmallest = 12;

inline std::uint8_t pattern(std::uint64_t number, std::size_t at) {
  return static_cast<std::uint8_t>(number * 31 + at * 7 + (at >> 8) * 13);
}

// `size` of at least kSmallest bytes.
inline std::vector<std::uint8_t> make_message(std::uint64_t number, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  bytes[1] = 1;  // little endian CDR
  std::memcpy(bytes.data() + 4, &number, sizeof number);
  for (std::size_t at = kSmallest; at < size; ++at) bytes[at] = pattern(number, at);
  return bytes;
}

inline std::uint64_t number_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t number = UINT64_MAX;
  if (bytes.size() >= kSmallest) std::memcpy(&number, bytes.data() + 4, sizeof number);
  return number;
}

// Whether every byte is as make_message() made it, and nothing but padding to 4 bytes follows.
inline bool intact(std::span<const std::uint8_t> bytes, std::size_t size) {
  if (bytes.size() < size || bytes.size() > (size + 3) / 4 * 4) return false;
  for (std::size_t at = kSmallest; at < size; ++at) {
    if (bytes[at] != pattern(number_of(bytes), at)) return false;
  }
  return bytes[0] == 0 && bytes[1] == 1 && bytes[2] == 0 && bytes[3] == 0;
}

}  // namespace perflab::conformance
