// CDR written directly by its rules, one number at a time and in either byte order, as the reference for the
// compiled codec.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "message/type.h"

namespace perflab::message {

class PlainCdr {
 public:
  static std::vector<std::uint8_t> encode(const Type& type, const void* object, bool little_endian) {
    PlainCdr cdr(little_endian);
    cdr.structure(type, static_cast<const std::byte*>(object));
    std::vector<std::uint8_t> bytes{0, static_cast<std::uint8_t>(little_endian ? 1 : 0), 0, 0};
    bytes.insert(bytes.end(), cdr.body_.begin(), cdr.body_.end());
    return bytes;
  }

 private:
  explicit PlainCdr(bool little_endian) : little_endian_(little_endian) {}

  void structure(const Type& type, const std::byte* object) {
    for (const Member& member : type.members) {
      const std::byte* first = object + member.offset;
      std::size_t count = member.in_place();
      if (member.is_sequence()) {
        Sequence sequence;
        std::memcpy(&sequence, first, sizeof sequence);
        number(sequence.size, 4);
        count = sequence.size;
        first = static_cast<const std::byte*>(sequence.data);
      }
      for (std::size_t i = 0; i < count; ++i) one(member.element, first + i * member.element.stride());
    }
  }

  void one(const Element& element, const std::byte* at) {
    if (element.type != nullptr) {
      structure(*element.type, at);
    } else if (element.is_text()) {
      text(element, at);
    } else {
      const std::size_t width = size_of(element.primitive);
      std::uint64_t value = 0;
      for (std::size_t i = 0; i < width; ++i) value |= std::uint64_t{static_cast<std::uint8_t>(at[i])} << 8 * i;
      number(value, width);
    }
  }

  void text(const Element& element, const std::byte* at) {
    Sequence text;
    std::memcpy(&text, at, sizeof text);
    if (element.primitive == Primitive::kString) {
      number(text.size + 1, 4);
      for (std::size_t i = 0; i <= text.size; ++i) number(static_cast<const std::uint8_t*>(text.data)[i], 1);
    } else {
      number(text.size, 4);
      for (std::size_t i = 0; i < text.size; ++i) number(static_cast<const char16_t*>(text.data)[i], 4);
    }
  }

  void number(std::uint64_t value, std::size_t width) {
    while (body_.size() % width != 0) body_.push_back(0);
    for (std::size_t i = 0; i < width; ++i)
      body_.push_back(static_cast<std::uint8_t>(value >> 8 * (little_endian_ ? i : width - 1 - i)));
  }

  bool little_endian_;
  std::vector<std::uint8_t> body_;
};

}  // namespace perflab::message
