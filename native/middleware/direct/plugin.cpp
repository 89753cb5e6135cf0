// The middleware "direct": writing is a function call. Writers and readers of one process, in all its
// participants of a domain, are connected if topic, type and QoS match; write() copies the message once, puts
// it into the queue of each reader, and calls on_data(). There is no thread, no socket and no discovery: the
// cost of a graph on it is its cost without a middleware.
//
// Options:
//   max_blocking_time  how long a reliable writer may wait for a reader with keep_all (1s)
//
// Messages are numbered per writer and stored in reused memory; with fixed size and bounded history it is
// allocated when writer and reader match, and nothing is allocated afterwards. Readers access them in place,
// and loans need no copy at all.
//
// Times. write() sets the source time stamp from the wall clock. There is no reception: the writer's thread
// puts the message into the reader's queue itself, and reception_ns is PERFLAB_TIME_UNKNOWN.
//
// Limits. `network` can only be "lo". There is no timer: deadlines, and liveliness by topic with a lease, are
// refused. A keep_all reader holds 16384 messages or 512 MiB; beyond that a reliable writer waits, and for a
// best-effort reader the message is lost and reported as PERFLAB_SAMPLE_LOST.
//
// Reading order: endpoint.h (the path of a message), packet.h (its memory), base/gate.h (callbacks), bus.h
// (matching).

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

// Undeclared policies are refused. The conformance suite tests the declared ones.
const perflab_policy* policies() {
  using namespace perflab::middleware::support;
  static constexpr perflab_policy kPolicies[] = {
      supported("history"),
      supported("reliability"),
      supported("durability"),
      kNoTransient,
      kNoPersistent,
      refused("deadline", "there is no timer"),
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
