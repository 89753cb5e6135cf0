// How far the events of a packet can be believed: of packets that are cut off, or in which a file system left
// zeros.
#pragma once

#include <cstdint>
#include <optional>

#include "ctf/decoder.h"
#include "ctf/trace.h"

namespace perflab::ctf {

struct Probe {
  std::uint64_t good_bits = 0;               // from the packet's start: behind the last good event
  std::optional<std::uint64_t> last_cycles;  // of that event; nothing where there is none
  bool meets_zeros = false;                  // zeros follow where the next event should begin
};

// Decodes the packet's events one by one. Its content must be readable.
[[nodiscard]] Probe probe(const Decoder& decoder, const Packet& packet);

// Whether a block of zeros lies in the packet's content, as a file system leaves it where data never reached
// the disk. An event may hold such a block, too: probe() tells. Looks at a few bytes of each block.
[[nodiscard]] bool has_block_of_zeros(const Packet& packet) noexcept;

}  // namespace perflab::ctf
