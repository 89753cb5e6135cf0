// An event as returned by the decoder: a view that is valid until the next event is requested.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

#include "ctf/layout.h"

namespace perflab::ctf {

// Position of a field in an event class all of whose fields have fixed offsets; `byte` counts from the end of the
// event header. Arrays of bytes have a `length`; all other fields are integers.
struct FieldPlace {
  std::uint32_t byte = 0;
  std::uint32_t length = 0;
  std::uint64_t mask = 0;
  std::uint64_t sign = 0;

  [[nodiscard]] std::uint64_t integer(const std::uint8_t* body) const noexcept {
    std::uint64_t word = 0;
    std::memcpy(&word, body + byte, sizeof word);
    if constexpr (std::endian::native == std::endian::big) word = __builtin_bswap64(word);
    return ((word & mask) ^ sign) - sign;
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes(const std::uint8_t* body) const noexcept {
    return {body + byte, length};
  }
};

struct Event {
  std::int64_t time_ns = 0;  // by its stream class's clock, without the clock's offset (LTTng: CLOCK_MONOTONIC)
  std::uint32_t class_index = 0;  // into Trace::layouts
  std::uint32_t stream = 0;       // into Trace::streams
  const std::uint64_t* slots = nullptr;
  const std::uint8_t* body = nullptr;  // only for events read in place (StreamReader), which have no slots

  [[nodiscard]] std::uint64_t value(const FieldLayout& field) const noexcept { return slots[field.slot]; }
  [[nodiscard]] std::int64_t signed_value(const FieldLayout& field) const noexcept {
    return static_cast<std::int64_t>(slots[field.slot]);
  }
  [[nodiscard]] double real(const FieldLayout& field) const noexcept {
    return std::bit_cast<double>(slots[field.slot]);
  }
  // For strings, and for arrays and sequences of characters (up to the first zero).
  [[nodiscard]] std::string_view text(const FieldLayout& field) const noexcept {
    return text_at(slots[field.slot], slots[field.slot + 1]);
  }
  // For arrays and sequences of bytes.
  [[nodiscard]] std::span<const std::uint8_t> bytes(const FieldLayout& field) const noexcept {
    return {reinterpret_cast<const std::uint8_t*>(slots[field.slot]),
            static_cast<std::size_t>(slots[field.slot + 1])};
  }
  // For other arrays and sequences: the slots of all elements, and the number of elements.
  [[nodiscard]] const std::uint64_t* elements(const FieldLayout& field) const noexcept {
    return reinterpret_cast<const std::uint64_t*>(slots[field.slot]);
  }
  [[nodiscard]] std::uint64_t count(const FieldLayout& field) const noexcept { return slots[field.slot + 1]; }

  [[nodiscard]] static std::string_view text_at(std::uint64_t pointer, std::uint64_t length) noexcept {
    const auto* data = reinterpret_cast<const char*>(pointer);
    return {data, data == nullptr ? 0 : strnlen(data, static_cast<std::size_t>(length))};
  }
};

}  // namespace perflab::ctf
