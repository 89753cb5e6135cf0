// The ledger lists the parts of a trace that are missing or unreadable. Reading continues wherever possible.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace perflab::ctf {

enum class Loss : std::uint8_t {
  discarded_events,  // the tracer's buffers were full: `count` events were never written
  missing_begin,  // `count` packets before the first of a stream are not in the trace (snapshot, overwritten,
                  // deleted)
  missing_end,    // a stream ends before the others of its trace: packets after its last are not in the trace
  missing_stream,     // a stream is not in the trace
  lost_packets,       // sequence numbers of packets are missing: `count` packets
  truncated_packet,   // a packet is cut off by the end of its file; `count` bytes are missing
  corrupt_packet,     // a packet's header or context or size makes no sense: `count` bytes up to the next one
                      // are not read
  undecodable_event,  // an event cannot be decoded; the rest of its packet is not read (`count` bytes)
  backwards_time,     // an event is older than the one before it in its stream
  unreadable_stream,  // a file of the trace cannot be opened, or belongs to another trace
  unreadable_metadata,  // a directory with a metadata file that cannot be parsed
  foreign_uuid,  // `count` packets of a file have the UUID of another trace; they are read nevertheless
};

// Name in tables and JSON.
[[nodiscard]] constexpr const char* name_of(Loss loss) noexcept {
  constexpr std::array kNames{"discarded_events",  "missing_begin",       "missing_end",
                              "missing_stream",    "lost_packets",        "truncated_packet",
                              "corrupt_packet",    "undecodable_event",   "backwards_time",
                              "unreadable_stream", "unreadable_metadata", "foreign_uuid"};
  return kNames[static_cast<std::size_t>(loss)];
}

struct LedgerEntry {
  Loss loss = Loss::corrupt_packet;
  std::uint64_t count = 0;                // events, packets or bytes, see Loss
  bool count_is_exact = true;             // false: at least one, number unknown
  std::string file{};                     // relative to the directory that was opened
  std::optional<std::uint64_t> offset{};  // byte in the file
  // The loss lies between these instants (ns of the trace's clock without its offset); nothing if unknown.
  std::optional<std::int64_t> begin_ns{};
  std::optional<std::int64_t> end_ns{};
  std::string message{};  // one line: what, where
};

using Ledger = std::vector<LedgerEntry>;

}  // namespace perflab::ctf
