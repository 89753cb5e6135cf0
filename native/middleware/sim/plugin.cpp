// The middleware "sim": real messages between threads and processes of one machine, with a programmed
// disturbance. It proves the instrument: what perflab measures must equal what was injected here.
//
// It is also the tutorial for a new plug-in. Read in this order:
//
//   1. middleware/middleware.h   the interface and its contracts, which this plug-in fulfils
//   2. support/plugin_table.h    how C++ stands behind the C interface, and this file, which uses it
//   3. program.h                 options, read with errors that name what is wrong
//   4. endpoint.h                what a writer and a reader must be able to do
//   5. waitset.h                 waiting that is level-triggered, and wake() that is sticky
//   6. participant.h, edge.h     who is there, who matches, and the way of a message
//   7. the simulator's own parts, which another plug-in leaves to its library: disturbance.h (what happens
//      to a message), scheduler.h (when), wire.h (how it reaches another process), packet.h (where it is)
//   8. tests/conformance/middleware   what every plug-in must pass; add one line for a new one
//
// Options (applied by the participant that receives; durations need a unit):
//   delay              every message arrives that much after it was sent (0ns)
//   jitter             and a uniform extra of 0..jitter later, without overtaking (0ns)
//   loss               probability with which a message is lost (0)
//   loss_every         every n-th message of a writer to a reader is lost
//   reorder_every      every n-th message (n >= 2) arrives right after its successor, or 50 ms late if
//                      none follows
//   duplicate_every    every n-th message arrives twice
//   seed               of jitter and loss (1)
//   match_delay        a writer and a reader match only that long after they know each other (0ns)
//   max_blocking_time  how long a reliable writer may wait for room before write() fails (1s)
//   topic              disturb this topic only, e.g. rt/amazon; match_delay concerns every topic
//
// Limits. `network` can only be "lo". A reliable writer waits when 16384 messages or 512 MiB are under way to
// one reader (with keep_all: or have not been taken by it); a best effort message beyond that is dropped,
// counted as `overflowed` and reported as PERFLAB_SAMPLE_LOST. At most 256 participants per domain and user.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "middleware/middleware.h"
#include "middleware/sim/endpoint.h"
#include "middleware/sim/participant.h"
#include "middleware/sim/program.h"
#include "middleware/sim/qos.h"
#include "middleware/sim/waitset.h"
#include "middleware/support/plugin_table.h"
#include "middleware/support/status.h"

namespace sim = perflab::middleware::sim;
using perflab::middleware::support::guarded;
using perflab::middleware::support::plugin_table;
using perflab::middleware::support::StatusError;

namespace {

// What peers learn of a writer or reader; `user_data` has no meaning here.
sim::Announcement announcement(const perflab_endpoint_settings& settings) {
  sim::check_names(settings.topic, settings.type);
  if (settings.loans) {
    throw StatusError(PERFLAB_UNSUPPORTED,
                      std::string("sim: topic '") + settings.topic +
                          "' shall pass loaned messages; right would be unique or shared");
  }
  return {settings.qos, settings.topic, settings.type};
}

}  // namespace

// These four stand behind the C interface (support/plugin_table.h).
struct perflab_participant final : sim::Participant {
  using Participant::Participant;
};
struct perflab_writer final : sim::Writer {
  perflab_writer(sim::Participant& participant, const perflab_endpoint_settings& settings,
                 const perflab_listener* listener)
      : Writer(participant, announcement(settings), listener) {}
};
struct perflab_reader final : sim::Reader {
  perflab_reader(sim::Participant& participant, const perflab_endpoint_settings& settings,
                 const perflab_listener* listener)
      : Reader(participant, announcement(settings), listener) {}
};
struct perflab_waitset final : sim::WaitSet {
  using WaitSet::WaitSet;
};

namespace {

const char* version() { return "1"; }

// Say here what is true; the conformance suite holds a plug-in to it.
perflab_capabilities capabilities() {
  return {.across_processes = true,
          .data_ready_callbacks = true,
          .source_timestamps = true,
          .reception_timestamps = true,
          .reports_endpoints = true,
          .related_samples = false,
          .loans = false};
}

// No exception may leave through the C interface: guarded() turns one into a status and a line of text. Check
// everything that can be wrong before anything is begun; what cannot be done is refused, never ignored.
perflab_status open(const perflab_host* host, const perflab_participant_settings* settings,
                    perflab_participant** participant, perflab_error* error) {
  return guarded(error, [&] {
    sim::Program program = sim::read_program(*settings);
    if (settings->network != nullptr && std::strcmp(settings->network, "lo") != 0) {
      throw StatusError(PERFLAB_UNSUPPORTED,
                        std::string("sim: network '") + settings->network +
                            "'; it connects processes of one machine, right would be 'lo'");
    }
    *participant = new perflab_participant(*host, std::move(program), settings->domain,
                                           settings->ignore_local_endpoints);
    return PERFLAB_OK;
  });
}

constexpr perflab_middleware kMiddleware =
    plugin_table<perflab_participant, perflab_writer, perflab_reader, perflab_waitset>(
        {.name = "sim",
         .summary =
             "simulated transport in real time, with programmed delay, loss, reordering and duplication",
         .version = version,
         .capabilities = capabilities,
         .open = open});

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
