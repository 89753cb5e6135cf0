// The disturbance as a layer over any plug-in: messages are delayed, lost, doubled, reordered and stalled as
// programmed (program.h), exactly counted, and otherwise untouched. It is absent unless asked for.
//
// It stands behind the same C interface as what it lies over, on the side of the reader: what the plug-in below
// brings is taken at once, and becomes ready when it is due. So a delay comes on top of the plug-in's own
// latency, and a lost message was delivered by the plug-in, also a reliable one. A message that is due when it
// comes is handed over by the thread that brought it, any other one by the layer's thread `disturb`.
//
// What the participant describes has, beside what the plug-in says, `disturb`, the program, and `injected`:
// for each edge (one writer, one reader) how many messages were offered, delivered, lost, reordered,
// duplicated, stalled, expired and overflowed, and the delay between arrival and delivery by the layer's own
// clock.
//
// Deadlines of a reader count from what is delivered; the lifespan of a message goes on while it is held back.
//
// Limits. More than 16384 messages or 512 MiB: with keep_all, what more there is for a reader stays with the
// plug-in below; else what more is on its way from one writer to it is dropped, counted as `overflowed` and
// reported as PERFLAB_SAMPLE_LOST.
// Refused: loaned messages, and participants that leave delivery within the process to the host, for both
// would pass by.
//
// Example:
//   const perflab_option options[] = {{"disturb.delay", "1ms"}, {"lease_duration", "10s"}};
//   ... is_asked_for(options), so:
//   open(cyclonedds, &host, &settings, &participant, &error);
//   table().describe(participant);
#pragma once

#include <span>

#include "middleware/middleware.h"

namespace perflab::middleware::disturb {

// Whether one of the options is the layer's.
[[nodiscard]] bool is_asked_for(std::span<const perflab_option> options) noexcept;

// As `open` of the plug-in `below`, which gets the options that are not the layer's.
perflab_status open(const perflab_middleware& below, const perflab_host& host,
                    const perflab_participant_settings& settings, perflab_participant** participant,
                    perflab_error* error);

// By which what open() made is used. Its `open` is null, and it cannot lend.
[[nodiscard]] const perflab_middleware& table() noexcept;

}  // namespace perflab::middleware::disturb
