// The messages themselves: plain structs whose fields can be visited in wire order.
//
// Every message begins with a Header; what follows is the payload that gives the message its size.
//
// Example:
//   Stamped9Float32 message{};
//   for_each_field(message, [](auto& field) { ... });  // header fields, then data
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perflab::message {

// Times are CLOCK_MONOTONIC nanoseconds of the machine that publishes.
struct Header {
  std::int64_t intended_ns = 0;   // when the message was due by its schedule
  std::int64_t published_ns = 0;  // stamped last, right before the write
  std::uint64_t sequence = 0;     // from 0, per writer; above it its source, see below
  std::uint32_t size_bytes = 0;   // payload without header
  float frequency_hz = 0.0F;      // of the publisher; 0 where it has no period
};

// The upper bits of `sequence` say which of its topic's publishers sent the message, counted from 0 in the order
// of the graph: not every middleware tells a receiver who wrote.
inline constexpr unsigned kSourceShift = 48;
inline constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << kSourceShift) - 1;

constexpr std::uint64_t with_source(std::uint64_t sequence, std::uint64_t source) noexcept {
  return sequence | source << kSourceShift;
}
constexpr std::uint64_t sequence_of(const Header& header) noexcept { return header.sequence & kSequenceMask; }
constexpr std::size_t source_of(const Header& header) noexcept { return header.sequence >> kSourceShift; }

template <typename Element, std::size_t N>
struct StampedArray {
  Header header;
  std::array<Element, N> data{};
};

struct Stamped10b : StampedArray<std::uint8_t, 10> {};
struct Stamped100b : StampedArray<std::uint8_t, 100> {};
struct Stamped250b : StampedArray<std::uint8_t, 250> {};
struct Stamped1kb : StampedArray<std::uint8_t, 1024> {};
struct Stamped10kb : StampedArray<std::uint8_t, 10240> {};
struct Stamped50kb : StampedArray<std::uint8_t, 51200> {};
struct Stamped100kb : StampedArray<std::uint8_t, 102400> {};
struct Stamped250kb : StampedArray<std::uint8_t, 256000> {};
struct Stamped500kb : StampedArray<std::uint8_t, 512000> {};
struct Stamped600kb : StampedArray<std::uint8_t, 614400> {};
struct Stamped1mb : StampedArray<std::uint8_t, 1048576> {};
struct Stamped4mb : StampedArray<std::uint8_t, 4194304> {};
struct Stamped5mb : StampedArray<std::uint8_t, 5120000> {};
struct Stamped8mb : StampedArray<std::uint8_t, 8388608> {};
struct Stamped3Float32 : StampedArray<float, 3> {};
struct Stamped4Float32 : StampedArray<float, 4> {};
struct Stamped9Float32 : StampedArray<float, 9> {};
struct Stamped12Float32 : StampedArray<float, 12> {};
struct Stamped4Int32 : StampedArray<std::int32_t, 4> {};

struct StampedInt64 {
  Header header;
  std::int64_t data = 0;
};

struct StampedVector {
  Header header;
  std::vector<std::uint8_t> data;
};

template <typename Visitor>
constexpr void for_each_field(Header& header, Visitor&& visit) {
  visit(header.intended_ns);
  visit(header.published_ns);
  visit(header.sequence);
  visit(header.size_bytes);
  visit(header.frequency_hz);
}

template <typename Message, typename Visitor>
requires requires(Message& message) {
  message.header;
  message.data;
}
constexpr void for_each_field(Message& message, Visitor&& visit) {
  for_each_field(message.header, visit);
  visit(message.data);
}

}  // namespace perflab::message
