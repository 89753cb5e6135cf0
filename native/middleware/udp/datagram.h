// The wire format: a header and a piece of one message per datagram.
//
// A message that fits is one datagram. A larger one is split into pieces of kLargestPiece bytes and a shorter
// last one; each says which message it belongs to, and its offset. Nothing is retransmitted or acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "middleware/middleware.h"

namespace perflab::middleware::udp {

// Changes whenever the meaning of a datagram changes.
inline constexpr std::uint32_t kMagic = 0x504c5531;  // "PLU1"

// The wire format, between processes of one machine: in native byte order.
struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t size = 0;    // of the whole message
  std::uint32_t offset = 0;  // of this piece in it
  std::uint32_t unused = 0;
  std::uint64_t key = 0;  // of the reader, so that a later owner of its port drops datagrams meant for it
  perflab_identity writer{};
  std::int64_t sequence = 0;   // of the message, starting at 1
  std::int64_t source_ns = 0;  // wall clock
  perflab_sample_identity related{};
};
static_assert(sizeof(Head) == 80);

// UDP over IPv4 carries 65507 bytes; with both headers that is the most the loopback sends without
// fragmentation.
inline constexpr std::size_t kLargestPiece = 65507 - sizeof(Head);

// Space that a message may take in a socket's buffer: the kernel counts its own memory per packet (Linux: up
// to 66,576 bytes for a packet of 65,507, up to 4.3 kB for one of 1000).
constexpr std::uint64_t room_for(std::uint64_t size) noexcept { return size + size / 16 + 8192; }

}  // namespace perflab::middleware::udp
