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

#include "middleware/direct/bus.h"
#include "middleware/direct/endpoint.h"
#include "middleware/middleware.h"
#include "middleware/support/options.h"
#include "middleware/support/plugin_table.h"
#include "middleware/support/waitset.h"

namespace direct = perflab::middleware::direct;
using perflab::middleware::support::local_settings;
using perflab::middleware::support::LocalSettings;
using perflab::middleware::support::Options;
using perflab::middleware::support::plugin_table;

PERFLAB_MIDDLEWARE_CLASSES(direct::Participant, direct::Writer, direct::Reader,
                           perflab::middleware::support::WaitSet<direct::Reader>)

namespace {

perflab_capabilities capabilities() {
  return {.across_processes = false,
          .data_ready_callbacks = true,
          .source_timestamps = true,
          .reception_timestamps = false,
          .reports_endpoints = false,
          .related_samples = true,
          .loans = true,
          .instances = false,
          .filters = false};
}

LocalSettings settings(const perflab_participant_settings& given) {
  const Options options("direct", {given.options, given.option_count}, {"max_blocking_time"});
  return local_settings("direct", given, options, "leaves no process");
}

// What is not here is refused. The conformance suite proves what is.
const perflab_policy* policies() {
  using namespace perflab::middleware::support;
  static constexpr perflab_policy kPolicies[] = {
      supported("history"),
      supported("reliability"),
      supported("durability"),
      kNoTransient,
      kNoPersistent,
      refused("deadline", "nobody watches the clock"),
      supported("lifespan"),
      supported("liveliness", "not manual_by_topic with a lease"),
      supported("partition"),
      kLastPolicy};
  return kPolicies;
}

constexpr perflab_middleware kMiddleware = plugin_table<settings>(
    {.name = "direct",
     .summary = "function calls within one process: what a graph costs without a middleware",
     .version = [] { return "1"; },
     .capabilities = capabilities,
     .policies = policies});

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
