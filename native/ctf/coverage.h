// Which parts of a trace are not there, although nothing in it is damaged: streams that begin late, end
// early, or are missing.
//
// A stream is known from its first packet's begin to its last packet's end. LTTng stamps both when it makes
// and when it flushes a buffer: before the first event of all streams and after the last. Tracers that write
// the times of their first and last event there (perf) cannot say more than these.
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

// Packets before the stream's first one: its number is not 0, or it begins after `begin_ns`, the first event
// of all streams. `own` is when the stream's first event was. Nothing where none are missing.
[[nodiscard]] std::optional<LedgerEntry> missing_begin(const Trace& trace, const Stream& stream,
                                                       const EventTimes& own, std::int64_t begin_ns);
// Packets after its last one, which ends before `end_ns`, the last event of all streams. Where it ends with
// `own`'s last event, that tells nothing, unless the metadata say that streams end with the recording
// (stream_end).
[[nodiscard]] std::optional<LedgerEntry> missing_end(const Trace& trace, const Stream& stream,
                                                     const EventTimes& own, std::int64_t end_ns);

// The time of the stream's first event; nothing where it has none.
[[nodiscard]] std::optional<std::int64_t> first_event_ns(const Trace& trace, std::size_t stream);

// CPUs with a stream in the trace, also one that holds no packet.
[[nodiscard]] std::set<std::uint32_t> cpus_of(const Trace& trace);
// The CPU that the name of such a file ends with.
[[nodiscard]] std::optional<std::uint32_t> cpu_in_name(const std::string& file);
// Files of streams that were there: LTTng numbers those of user space by CPU without a gap, and writes an
// index for each.
[[nodiscard]] std::vector<LedgerEntry> missing_streams(const Trace& trace);

}  // namespace perflab::ctf
