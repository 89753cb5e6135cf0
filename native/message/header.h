// What a message carries for its measurement, and what is on the wire in front of it.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace perflab::message {

inline constexpr std::size_t kEncapsulationBytes = 4;
// Identifiers CDR_BE = {0, 0}, CDR_LE = {0, 1}; the two option bytes are 0.
inline constexpr std::uint8_t kNativeEncapsulation = std::endian::native == std::endian::little ? 1 : 0;

// perflab_msgs/msg/Header. Times are CLOCK_MONOTONIC nanoseconds of the machine that publishes.
struct Header {
  std::int64_t intended_ns = 0;   // when the message was due by its schedule
  std::int64_t published_ns = 0;  // stamped last, right before the write
  std::uint64_t sequence = 0;     // from 0, per writer; above it its source, see below
  std::uint32_t size_bytes = 0;   // payload without header
  float frequency_hz = 0.0F;      // of the publisher; 0 where it has no period
};
inline constexpr std::size_t kHeaderBytes = 32;
static_assert(sizeof(Header) == kHeaderBytes, "its memory is its CDR encoding in native byte order");

// The upper bits of `sequence` say which of its topic's publishers sent the message, counted from 0 in the order
// of the graph: not every middleware tells a receiver who wrote.
inline constexpr unsigned kSourceShift = 48;
inline constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << kSourceShift) - 1;

// Warm-up and measured messages are numbered apart. Where a message says nothing else of it, this bit tells the warm-up's.
inline constexpr std::uint64_t kWarmUpBit = std::uint64_t{1} << (kSourceShift - 1);

constexpr std::uint64_t with_source(std::uint64_t sequence, std::uint64_t source) noexcept {
  return sequence | source << kSourceShift;
}
constexpr std::uint64_t sequence_of(const Header& header) noexcept { return header.sequence & kSequenceMask; }
constexpr std::size_t source_of(const Header& header) noexcept { return header.sequence >> kSourceShift; }

}  // namespace perflab::message
