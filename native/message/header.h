// The measurement data in a message, and the encapsulation in front of it.
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
  std::int64_t intended_ns = 0;   // when the message was due
  std::int64_t published_ns = 0;  // stamped last, right before the write
  std::uint64_t sequence = 0;     // from 0, per writer; its upper bits are the source, see below
  std::uint32_t size_bytes = 0;   // payload without header
  float frequency_hz = 0.0F;      // of the publisher; 0 if it has no period
};
inline constexpr std::size_t kHeaderBytes = 32;
static_assert(sizeof(Header) == kHeaderBytes, "its memory is its CDR encoding in native byte order");

// The upper bits of `sequence` identify the sender among its topic's publishers, counted from 0 in graph
// order, because not every middleware reports the writer.
inline constexpr unsigned kSourceShift = 48;
inline constexpr std::uint64_t kSequenceMask = (std::uint64_t{1} << kSourceShift) - 1;

// Warm-up and measured messages are numbered separately. This bit marks warm-up messages if nothing else in
// the message does.
inline constexpr std::uint64_t kWarmUpBit = std::uint64_t{1} << (kSourceShift - 1);

constexpr std::uint64_t with_source(std::uint64_t sequence, std::uint64_t source) noexcept {
  return sequence | source << kSourceShift;
}
constexpr std::uint64_t sequence_of(const Header& header) noexcept { return header.sequence & kSequenceMask; }
constexpr std::size_t source_of(const Header& header) noexcept { return header.sequence >> kSourceShift; }

}  // namespace perflab::message
