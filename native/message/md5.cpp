#include "message/md5.h"

#include <algorithm>
#include <bit>

namespace perflab::message {
namespace {

constexpr std::size_t kMd5LengthBytes = 8;

// The integer parts of 2^32 times |sin(i)|, i = 1 ... 64.
constexpr std::array<std::uint32_t, 64> kMd5Rounds{
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501,
    0x698098d8, 0x8b44f7af, 0xffff5bb1, 0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821,
    0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453, 0xd8a1e681, 0xe7d3fbc8,
    0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a,
    0xfffa3942, 0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70,
    0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05, 0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665,
    0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d, 0x85845dd1,
    0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391};

// The shift amounts of each step, four per round.
constexpr int kMd5Turns[4][4] = {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};

}  // namespace

void Md5::add(std::span<const std::uint8_t> bytes) noexcept {
  while (!bytes.empty()) {
    const std::size_t at = size_ % kBlockBytes;
    const std::size_t now = std::min(bytes.size(), kBlockBytes - at);
    std::ranges::copy(bytes.first(now), block_.begin() + static_cast<std::ptrdiff_t>(at));
    size_ += now;
    bytes = bytes.subspan(now);
    if (size_ % kBlockBytes == 0) add_block();
  }
}

void Md5::add_block() noexcept {
  std::array<std::uint32_t, 16> words{};
  for (std::size_t i = 0; i < kBlockBytes; ++i) words[i / 4] |= std::uint32_t{block_[i]} << 8 * (i % 4);
  auto [a, b, c, d] = state_;
  for (std::size_t i = 0; i < kMd5Rounds.size(); ++i) {
    const std::size_t round = i / 16;
    const std::uint32_t mixed[] = {(b & c) | (~b & d), (d & b) | (~d & c), b ^ c ^ d, c ^ (b | ~d)};
    const std::size_t word[] = {i, 5 * i + 1, 3 * i + 5, 7 * i};
    const std::uint32_t turned = a + mixed[round] + kMd5Rounds[i] + words[word[round] % words.size()];
    a = d;
    d = c;
    c = b;
    b += std::rotl(turned, kMd5Turns[round][i % 4]);
  }
  state_ = {state_[0] + a, state_[1] + b, state_[2] + c, state_[3] + d};
}

Md5::Digest Md5::finish() noexcept {
  const std::uint64_t bits = size_ * 8;
  static constexpr std::array<std::uint8_t, kBlockBytes> kPadding{0x80};
  // A one bit, zeros, and the length in bits, little-endian, at the end of a block.
  const std::size_t end = kBlockBytes - kMd5LengthBytes, at = size_ % kBlockBytes;
  add(std::span(kPadding).first(at < end ? end - at : kBlockBytes + end - at));
  std::array<std::uint8_t, kMd5LengthBytes> length{};
  for (std::size_t i = 0; i < kMd5LengthBytes; ++i) length[i] = static_cast<std::uint8_t>(bits >> 8 * i);
  add(length);
  Digest digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state_[i / 4] >> 8 * (i % 4));
  return digest;
}

}  // namespace perflab::message
