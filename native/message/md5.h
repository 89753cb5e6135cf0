// MD5 (RFC 1321), computed incrementally, for the key hashes of DDS.
//
// Example:
//   Md5 md5;
//   md5.add(bytes);
//   md5.finish();   // 16 bytes
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace perflab::message {

class Md5 {
 public:
  using Digest = std::array<std::uint8_t, 16>;

  void add(std::span<const std::uint8_t> bytes) noexcept;
  // No more bytes may be added afterwards.
  [[nodiscard]] Digest finish() noexcept;

 private:
  static constexpr std::size_t kBlockBytes = 64;

  void add_block() noexcept;

  std::array<std::uint32_t, 4> state_{0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  std::array<std::uint8_t, kBlockBytes> block_{};
  std::uint64_t size_ = 0;
};

}  // namespace perflab::message
