// The middleware "shm": messages between threads and processes of one machine through shared memory. Writing
// is a copy into a ring, taking a copy out of it; the writer itself wakes waiting threads with a futex. No
// middleware on one machine can do less, so this is the baseline for others.
//
// It is also the tutorial for a new plug-in (docs/new-middleware.md). Reading order:
//
//   1. middleware/middleware.h   the interface and its contracts, which this plug-in fulfils
//   2. support/plugin_table.h    C++ behind the C interface, used by this file
//   3. ring.h, board.h           the path of a message: where it is stored, who is woken
//   4. writer.h, reader.h        what a writer and a reader must do
//   5. waitset.h                 level-triggered waiting, and a sticky wake()
//   6. support/local_domain.h    discovery and matching, which a plug-in over a library leaves
//      and participant.h         to the library
//
// Options (durations need a unit):
//   match_delay        a writer and a reader match this long after they have discovered each other (0ns)
//   max_blocking_time  how long a reliable writer may wait for room before write() fails (1s)
//
// Times. write() sets the source time stamp from the wall clock. A message is received when its writer has
// published it: from then on readers can see it. reception_ns is that instant by the clock of the writer's
// host, which all processes of one machine share.
//
// Limits. `network` can only be "lo". A reliable writer waits while a keep_all reader has 16384 untaken
// messages or 1 GiB; for a best-effort reader the oldest message is then lost, counted, and reported as
// PERFLAB_SAMPLE_LOST. A message has at most 1 GiB, a history 16384 messages. At most 256 participants per
// domain and user.

#include "middleware/middleware.h"
#include "middleware/shm/participant.h"
#include "middleware/shm/reader.h"
#include "middleware/shm/waitset.h"
#include "middleware/shm/writer.h"
#include "middleware/support/options.h"
#include "middleware/support/plugin_table.h"

namespace shm = perflab::middleware::shm;
using perflab::middleware::support::local_settings;
using perflab::middleware::support::Options;
using perflab::middleware::support::plugin_table;

// The types behind the C interface (support/plugin_table.h).
PERFLAB_MIDDLEWARE_CLASSES(shm::Participant, shm::Writer, shm::Reader, shm::WaitSet)

namespace {

// Declare what is true; the conformance suite checks it.
perflab_capabilities capabilities() {
  return {.across_processes = true,
          .data_ready_callbacks = true,
          .source_timestamps = true,
          .reception_timestamps = true,
          .reports_endpoints = true,
          .related_samples = true,
          .loans = false,
          .instances = false,
          .filters = false};
}

// Check everything here that can be wrong, before anything starts; refuse what is unsupported, never ignore
// it. An exception becomes a status and a line of text.
shm::ParticipantSettings settings(const perflab_participant_settings& given) {
  const Options options("shm", {given.options, given.option_count}, {"match_delay", "max_blocking_time"});
  return {local_settings("shm", given, options, "connects processes of one machine"),
          options.duration_ns("match_delay").value_or(0)};
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
      supported("deadline"),
      supported("lifespan"),
      supported("liveliness"),
      supported("partition"),
      supported("user_data"),
      kLastPolicy};
  return kPolicies;
}

constexpr perflab_middleware kMiddleware = plugin_table<settings>(
    {.name = "shm",
     .summary =
         "shared memory and futexes between processes of one machine: the floor of what a message costs",
     .version = [] { return "1"; },
     .capabilities = capabilities,
     .policies = policies});

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
