// SHA-256 (FIPS 180-4).
//
// Example:
//   to_hex(sha256("abc"));  // "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace perflab::message {

using Digest = std::array<std::uint8_t, 32>;

[[nodiscard]] Digest sha256(std::string_view bytes) noexcept;

}  // namespace perflab::message
