// The middleware "direct": writing is a function call. Writers and readers of one process, of all its
// participants in a domain, are joined where topic, type and QoS fit; write() copies the message once and
// puts it into the queue of each reader, and calls on_data(). There is no thread, no socket and no discovery:
// what a graph costs on it is what it costs without a middleware.
//
// Options:
//   max_blocking_time  how long a reliable writer may wait for a reader that keeps all (1s)
//
// Messages are numbered per writer. They lie in memory that is used again; where their size is fixed and
// histories are bounded, it is made when writer and reader meet, and nothing is allocated afterwards. Readers
// see them in place, and loans cost no copy at all.
//
// Times. Source time stamps are the wall clock's in write(). There is no reception: the writer's thread puts
// the message into the reader's queue itself, and reception_ns is PERFLAB_TIME_UNKNOWN.
//
// Limits. `network` can only be "lo". Nobody watches the clock while nothing is called: a deadline, and
// liveliness by topic with a lease, are refused. A reader that keeps all holds 16384 messages or 512 MiB; a
// reliable writer waits beyond, and for a best effort reader the message is lost and reported as
// PERFLAB_SAMPLE_LOST.
//
// Read in this order: endpoint.h (the way of a message), packet.h (where it is), base/gate.h (callbacks),
// bus.h (who meets whom).
#include <cstring>
#include <string>

#include "middleware/direct/bus.h"
#include "middleware/direct/endpoint.h"
#include "middleware/middleware.h"
#include "middleware/support/options.h"
#include "middleware/support/plugin_table.h"
#include "middleware/support/status.h"
#include "middleware/support/waitset.h"

namespace direct = perflab::middleware::direct;
using perflab::Unsupported;
using perflab::middleware::support::guarded;
using perflab::middleware::support::plugin_table;

struct perflab_participant final : direct::Participant {
  using Participant::Participant;
};
struct perflab_writer final : direct::Writer {
  using Writer::Writer;
};
struct perflab_reader final : direct::Reader {
  using Reader::Reader;
};
struct perflab_waitset final : perflab::middleware::support::WaitSet<direct::Reader> {
  using WaitSet::WaitSet;
};

namespace {

perflab_capabilities capabilities() {
  return {.across_processes = false,
          .data_ready_callbacks = true,
          .source_timestamps = true,
          .reception_timestamps = false,
          .reports_endpoints = false,
          .related_samples = true,
          .loans = true};
}

perflab_status open(const perflab_host* host, const perflab_participant_settings* settings,
                    perflab_participant** participant, perflab_error* error) {
  return guarded(error, [&] {
    const perflab::middleware::support::Options options("direct", {settings->options, settings->option_count},
                                                        {"max_blocking_time"});
    perflab::middleware::support::check_domain("direct", settings->domain);
    if (settings->network != nullptr && std::strcmp(settings->network, "lo") != 0) {
      throw Unsupported(std::string("direct: network '") + settings->network +
                        "'; it leaves no process, right would be 'lo'");
    }
    *participant = new perflab_participant(
        *host, direct::ParticipantSettings{
                   .domain = settings->domain,
                   .ignore_local_endpoints = settings->ignore_local_endpoints,
                   .max_blocking_time_ns = options.duration_ns("max_blocking_time").value_or(1'000'000'000)});
    return PERFLAB_OK;
  });
}

constexpr perflab_middleware kMiddleware =
    plugin_table<perflab_participant, perflab_writer, perflab_reader, perflab_waitset>(
        {.name = "direct",
         .summary = "function calls within one process: what a graph costs without a middleware",
         .version = [] { return "1"; },
         .capabilities = capabilities,
         .open = open});

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
