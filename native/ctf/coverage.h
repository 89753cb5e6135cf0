// Finds missing parts of an undamaged trace: streams that begin late, end early, or are absent.
//
// A stream covers the time from its first packet's begin to its last packet's end. LTTng stamps both when it
// creates and when it flushes a buffer: before the first event of all streams and after the last. Tracers
// that write the times of the first and last event there (perf) provide no more information.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ctf/ledger.h"
#include "ctf/trace.h"

namespace perflab::ctf {

// Instants in ns of the trace's clock, as in the ledger.
struct EventTimes {
  std::optional<std::int64_t> first_ns, last_ns;
};

// Packets before the stream's first one are missing: its number is not 0, or it begins after `begin_ns`, the
// first event of all streams. `own` has the time of the stream's first event. Nothing if no packet is
// missing.
[[nodiscard]] std::optional<LedgerEntry> missing_begin(const Trace& trace, const Stream& stream,
                                                       const EventTimes& own, std::int64_t begin_ns);
// Packets after the stream's last one are missing: it ends before `end_ns`, the last event of all streams. A
// packet that ends with `own`'s last event proves nothing, unless the metadata states that streams end with
// the recording (stream_end).
[[nodiscard]] std::optional<LedgerEntry> missing_end(const Trace& trace, const Stream& stream,
                                                     const EventTimes& own, std::int64_t end_ns);

// Time of the stream's first event; nothing if it has none.
[[nodiscard]] std::optional<std::int64_t> first_event_ns(const Trace& trace, std::size_t stream);

// CPUs with a stream in the trace, including empty streams.
[[nodiscard]] std::set<std::uint32_t> cpus_of(const Trace& trace);
// The CPU at the end of such a file name.
[[nodiscard]] std::optional<std::uint32_t> cpu_in_name(const std::string& file);
// Files of absent streams: LTTng numbers user-space streams by CPU without gaps, and writes an index for
// each.
[[nodiscard]] std::vector<LedgerEntry> missing_streams(const Trace& trace);

}  // namespace perflab::ctf
