// Reads the bytes of an encoded message, which may be in several pieces, field by field: numbers in either
// byte order, and skips unneeded fields by their type. Does not allocate.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "message/header.h"
#include "message/type.h"

namespace perflab::message {

// The pieces of a message, in order.
using Pieces = std::span<const std::span<const std::uint8_t>>;

// Size of the length in front of strings and sequences.
inline constexpr std::size_t kLengthBytes = sizeof(std::uint32_t);

constexpr std::size_t padding_before(std::uint64_t place, std::size_t alignment) noexcept {
  return (alignment - place % alignment) % alignment;
}

// Octets per character on the wire.
constexpr std::size_t width_of_text(Primitive text) noexcept { return text == Primitive::kString ? 1 : 4; }

class Source {
 public:
  explicit Source(Pieces pieces) noexcept : pieces_(pieces) {}

  // False if the bytes are not CDR of either byte order.
  bool open() noexcept {
    std::uint8_t header[kEncapsulationBytes];
    if (!take(kEncapsulationBytes, header) || header[0] != 0 || header[1] > 1) return false;
    swapped_ = header[1] != kNativeEncapsulation;
    big_endian_ = header[1] == 0;
    position_ = 0;
    return true;
  }

  // Advances by `count` bytes and copies them to `to`, which may be null. False if there are fewer.
  bool take(std::size_t count, std::uint8_t* to = nullptr) noexcept {
    position_ += count;
    while (count > 0) {
      if (at_ == pieces_.size()) return false;
      const auto left = pieces_[at_].subspan(within_);
      const std::size_t now = std::min(count, left.size());
      if (to != nullptr && now > 0) {
        std::memcpy(to, left.data(), now);
        to += now;
      }
      count -= now;
      within_ += now;
      if (now == left.size()) {
        ++at_;
        within_ = 0;
      }
    }
    return true;
  }
  // The position of the next byte.
  struct Place {
    std::size_t piece;
    std::size_t within;
  };
  [[nodiscard]] Place place() const noexcept { return {at_, within_}; }
  // The next bytes, at most `count`, as far as they are in one piece; empty at the end. Advances past them.
  std::span<const std::uint8_t> lend(std::size_t count) noexcept {
    while (at_ < pieces_.size() && within_ == pieces_[at_].size()) {
      ++at_;
      within_ = 0;
    }
    if (at_ == pieces_.size()) return {};
    const auto lent = pieces_[at_].subspan(within_, std::min(count, pieces_[at_].size() - within_));
    within_ += lent.size();
    position_ += lent.size();
    return lent;
  }
  bool align(std::size_t alignment) noexcept { return take(padding_before(position_, alignment)); }
  // Reads a number and stores it in big-endian order.
  bool number(std::size_t width, std::uint8_t* to) noexcept {
    if (!align(width) || !take(width, to)) return false;
    if (!big_endian_) std::reverse(to, to + width);
    return true;
  }
  // Reads a number and stores it in native order.
  bool native(std::size_t width, std::uint8_t* to) noexcept {
    if (!align(width) || !take(width, to)) return false;
    if (swapped_) std::reverse(to, to + width);
    return true;
  }
  bool length(std::uint64_t& length) noexcept {
    std::uint32_t number = 0;
    if (!align(kLengthBytes) || !take(kLengthBytes, reinterpret_cast<std::uint8_t*>(&number))) return false;
    length = swapped_ ? __builtin_bswap32(number) : number;
    return true;
  }

 private:
  Pieces pieces_;
  std::size_t at_ = 0;        // index of the piece
  std::size_t within_ = 0;    // ... and offset in it
  std::size_t position_ = 0;  // counted from the end of the encapsulation
  bool swapped_ = false;
  bool big_endian_ = false;
};

// Skips a value of this type. False if the bytes end before.
inline bool leave(const Element& element, std::uint64_t count, Source& from) noexcept;

inline bool leave(const Type& type, Source& from) noexcept {
  return std::ranges::all_of(type.members, [&](const Member& member) {
    std::uint64_t count = member.in_place();
    if (member.is_sequence() && !from.length(count)) return false;
    return leave(member.element, count, from);
  });
}

inline bool leave(const Element& element, std::uint64_t count, Source& from) noexcept {
  if (count == 0) return true;
  if (element.type == nullptr && !element.is_text()) {
    const std::size_t width = size_of(element.primitive);
    return from.align(width) && from.take(width * count);
  }
  for (std::uint64_t i = 0; i < count; ++i) {
    if (element.type != nullptr) {
      if (!leave(*element.type, from)) return false;
      continue;
    }
    std::uint64_t length = 0;
    if (!from.length(length) || !from.take(length * width_of_text(element.primitive))) return false;
  }
  return true;
}

}  // namespace perflab::message
