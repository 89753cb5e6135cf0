// A disturbance layer over any plug-in: messages are delayed, lost, duplicated, reordered and stalled as
// programmed (program.h), exactly counted, and otherwise unchanged. It is absent unless requested.
//
// The layer has the same C interface as the plug-in below it and acts on the reader's side: it takes messages
// from the plug-in at once and makes them ready when they are due. So a delay adds to the plug-in's own
// latency, and a lost message was delivered by the plug-in, even a reliable one. A message that is due on
// arrival is passed on by the thread that brought it, others by the layer's thread `disturb`.
//
// The participant's description contains, besides that of the plug-in, `disturb`, the program, and
// `injected`: for each edge (one writer, one reader) how many messages were offered, delivered, lost,
// reordered, duplicated, stalled, expired and overflowed, and the delay between arrival and delivery by the
// layer's own clock.
//
// A reader's deadline counts from deliveries; a message's lifespan continues while the message is held back.
//
// Limits. 16384 messages or 512 MiB: with keep_all, further messages for a reader stay in the plug-in below;
// otherwise further messages in flight from one writer to it are dropped, counted as `overflowed` and
// reported as PERFLAB_SAMPLE_LOST. Refused: loaned messages, and participants that leave local delivery to
// the host, because both would bypass the layer.
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

// True if one of the options belongs to the layer.
[[nodiscard]] bool is_asked_for(std::span<const perflab_option> options) noexcept;

// Like `open` of the plug-in `below`, which gets only its own options.
perflab_status open(const perflab_middleware& below, const perflab_host& host,
                    const perflab_participant_settings& settings, perflab_participant** participant,
                    perflab_error* error);

// The function table for participants made by open(). Its `open` is null, and it does not support loans.
[[nodiscard]] const perflab_middleware& table() noexcept;

}  // namespace perflab::middleware::disturb
