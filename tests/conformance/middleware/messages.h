// Messages that can be recognised: a CDR header, the number of the message, and bytes that depend on both.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "middleware/middleware.h"

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

// Where a topic has keys, the low half of the number is the instance, a key of type uint32.
inline std::uint64_t number_in(std::uint32_t instance, std::uint32_t round) {
  return std::uint64_t{round} << 32 | instance;
}

inline const perflab_key* key_of_messages() {
  constexpr std::size_t kBytes = 4;
  using Bytes = std::uint8_t[2 * kBytes];
  // The encapsulation header and the instance, which is made big-endian.
  static constexpr auto read = [](const perflab_bytes* parts, std::size_t count, Bytes& bytes) {
    std::size_t have = 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t at = 0; at < parts[i].size && have < sizeof bytes; ++at)
        bytes[have++] = static_cast<const std::uint8_t*>(parts[i].data)[at];
    }
    if (have < sizeof bytes) return false;
    if (bytes[1] == 1) std::reverse(bytes + kBytes, bytes + sizeof bytes);
    bytes[1] = 0;
    return true;
  };
  static constexpr perflab_key kKey{
      .extract = [](const void*, perflab_form, const perflab_bytes* parts, std::size_t count, std::uint8_t* key,
                    std::size_t capacity) -> std::size_t {
        Bytes bytes;
        if (!read(parts, count, bytes)) return 0;
        if (capacity >= sizeof bytes) std::memcpy(key, bytes, sizeof bytes);
        return sizeof bytes;
      },
      .hash = [](const void*, perflab_form, const perflab_bytes* parts, std::size_t count, std::uint8_t hash[16]) {
        Bytes bytes;
        std::memset(hash, 0, 16);
        if (!read(parts, count, bytes)) return false;
        std::memcpy(hash, bytes + kBytes, kBytes);
        return true;
      },
      .context = nullptr};
  return &kKey;
}

// Wants messages whose number is even.
inline perflab_filter even_messages() {
  static constexpr auto wants = [](const void*, const perflab_bytes* parts, std::size_t count) {
    std::size_t before = 0;
    for (std::size_t i = 0; i < count; before += parts[i++].size) {
      if (before <= 4 && 4 < before + parts[i].size)
        return static_cast<const std::uint8_t*>(parts[i].data)[4 - before] % 2 == 0;
    }
    return true;
  };
  return {.wants = wants, .context = nullptr, .expression = "number is even"};
}

}  // namespace perflab::conformance
