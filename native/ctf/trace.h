// Traces on disk: found, mapped into memory and indexed.
//
// A directory may hold several traces (user space and kernel, several processes, rotated chunks): every
// directory below it with a file `metadata` is one. Traces with the same UUID are chunks of one session and
// are read as one. Files of one stream that were rotated belong together by stream instance (or by name and
// CPU where there is none) and are read in the order of time.
//
// Example:
//   const TraceSet set = TraceSet::open({"traces/session"});
//   for (const auto& trace : set.traces())
//     for (std::size_t i = 0; i < trace->streams.size(); ++i) {
//       StreamReader reader(*trace, i);
//       for (Event event; reader.next(event);) count(event);
//     }
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "ctf/event.h"
#include "ctf/layout.h"
#include "ctf/ledger.h"
#include "ctf/metadata.h"

namespace perflab::ctf {

class Decoder;     // decoder.h: the compiled way to decode all events of a stream class
class MappedFile;  // a file in memory

struct Packet {
  const std::uint8_t* data = nullptr;  // the packet's first byte, in the mapped file
  std::uint64_t file_offset = 0;
  std::uint32_t file = 0;                     // into Stream::files
  std::uint64_t content_bits = 0;             // header, context and events; never beyond the mapped bytes
  std::uint64_t events_offset_bits = 0;       // where the first event begins
  std::optional<std::uint64_t> begin_cycles;  // time stamps of the packet's context, where it has them
  std::optional<std::uint64_t> end_cycles;
  std::uint64_t latest_cycles = std::numeric_limits<std::uint64_t>::max();  // later events are not its
  std::optional<std::uint64_t> sequence_number;
  std::optional<std::uint64_t> events_discarded;  // the tracer's running count at the end of this packet
  bool truncated = false;                         // by the end of the file
  bool after_gap = false;                         // what stands before it in the file could not be read
};

// Packets of one stream of events: of one CPU's buffer, say.
struct Stream {
  std::uint64_t stream_class = 0;
  std::optional<std::uint64_t> instance;
  std::optional<std::uint32_t> cpu;   // the packet context's cpu_id, which is the same in all packets
  std::vector<std::string> files;     // relative to the directory that was opened
  std::vector<std::uint32_t> mapped;  // for each of the files: into Trace::files
  std::vector<Packet> packets;        // in the order of time
  std::uint64_t bytes = 0;
  std::uint64_t discarded_events = 0;  // sums of the ledger's entries for this stream
  std::uint64_t lost_packets = 0;
};

struct Trace {
  std::string path;  // relative to the directory that was opened; "." for that itself
  Metadata metadata;
  std::vector<EventLayout> layouts;  // of all event classes of all stream classes
  std::vector<Stream> streams;
  std::vector<std::shared_ptr<const Decoder>> decoders;  // one per stream, shared within a stream class
  std::vector<std::shared_ptr<const MappedFile>> files;  // kept open
  std::vector<std::string>
      empty_files;  // of streams without a packet; relative to the directory that was opened
  std::vector<std::string>
      indexed_files;  // for which the tracer wrote an index, whether they are there or not

  // Of clock values: ns without the offset, and the offset itself (to the epoch) in ns; nothing where a trace
  // has no clock.
  [[nodiscard]] std::int64_t to_ns(std::uint64_t cycles) const noexcept;
  [[nodiscard]] std::optional<std::int64_t> clock_offset_ns() const noexcept;
  std::uint64_t frequency_hz = 1'000'000'000;
  std::optional<std::uint32_t> clock;  // into metadata.clocks: the one of the events' time stamps
};

// Nothing could be opened: "PATH: what is wrong". One line.
class TraceError : public BadInput {
 public:
  using BadInput::BadInput;
};

class TraceSet {
 public:
  // Finds, maps and indexes. Throws TraceError where a path does not exist, is no directory (a file
  // `metadata` inside a trace is taken for its directory), cannot be read, or holds no trace whose metadata
  // can be parsed. Everything else that is wrong is in the ledger.
  [[nodiscard]] static TraceSet open(std::span<const std::filesystem::path> paths);

  [[nodiscard]] const std::vector<std::shared_ptr<const Trace>>& traces() const noexcept { return traces_; }
  // What was found while indexing; readers add what they find while decoding (StreamReader::ledger).
  [[nodiscard]] const Ledger& ledger() const noexcept { return ledger_; }

 private:
  std::vector<std::shared_ptr<const Trace>> traces_;
  Ledger ledger_;
};

}  // namespace perflab::ctf
