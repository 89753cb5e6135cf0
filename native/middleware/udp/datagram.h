// What goes over the wire: a head and a piece of one message, in one datagram.
//
// A message that fits is one datagram. A larger one goes in pieces of kLargestPiece bytes, the last of which
// is what is left; each says of which message it is, and where in it it lies. Nothing is sent twice and
// nothing is acknowledged.
#pragma once

#include <cstddef>
#include <cstdint>

#include "middleware/middleware.h"

namespace perflab::middleware::udp {

// Changes whenever the meaning of a datagram does.
inline constexpr std::uint32_t kMagic = 0x504c5531;  // "PLU1"

// As it travels, between processes of one machine: in the order of bytes of that machine.
struct Head {
  std::uint32_t magic = kMagic;
  std::uint32_t size = 0;    // of the whole message
  std::uint32_t offset = 0;  // of this piece in it
  std::uint32_t unused = 0;
  std::uint64_t key = 0;  // of the reader, so that a later owner of its port drops what was meant for it
  perflab_identity writer{};
  std::int64_t sequence = 0;   // of the message, from 1 on
  std::int64_t source_ns = 0;  // wall clock
  perflab_sample_identity related{};
};
static_assert(sizeof(Head) == 80);

// UDP over IPv4 carries 65507 bytes; with the headers of both that is just what the loopback takes whole.
inline constexpr std::size_t kLargestPiece = 65507 - sizeof(Head);

// How much of a socket's buffer a message may take there: the kernel counts its own memory for each packet
// (Linux: up to 66,576 bytes for one of 65,507, up to 4.3 kB for one of 1000).
constexpr std::uint64_t room_for(std::uint64_t size) noexcept { return size + size / 16 + 8192; }

}  // namespace perflab::middleware::udp
