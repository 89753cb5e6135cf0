// The middleware "cyclonedds": Eclipse Cyclone DDS 0.10 through its C library, without generated types.
//
// Messages use the ROS 2 names, so that ROS 2 nodes in the same domain and network see them.
//
// Options:
//   batching               on or off (off): small messages wait for others, and leave together when a datagram is
//                          full, when the library waits for room, when the writer ends, or after ...
//   batching_delay         ... at most this time (1ms); for a writer with a latency_budget after that
//   config                 an XML file, or XML text, in Cyclone's format. Read after perflab's settings, so
//                          it takes precedence. SharedMemory is refused.
//   lease_duration         how long a silent participant counts as alive (10s)
//   max_blocking_time      how long a reliable writer may wait for room before write() fails (1s)
//   max_message_size       largest UDP payload, 2000..65500. Default 65500, which halves the latency of
//                          a 4 MB message; but Cyclone's default 14720 if the kernel grants socket buffers
//                          of less than 1 MiB: those hold too few large packets and lose them
//                          (with 65500 and 208 KiB, 48 of 60 messages of 4 MB arrived).
//   receive_buffer         Cyclone's unit of received packets, at least 128KiB (256KiB; Cyclone's default
//                          of 1 MiB per receive thread becomes fully resident within the first megabyte
//                          received)
//   security               off, or a folder with credentials (support/security.h): DDS Security, by the plug-ins of
//                          the library. Not with shared_memory, nor for keyed topics.
//   shared_memory          on or off (off): messages of fixed size go through iceoryx. Their endpoints must be
//                          keep_last and volatile, without deadline, partition or manual liveliness; others are
//                          refused. Required for loans; requires RouDi, iceoryx's daemon. Messages that really
//                          went this way are counted. Other participants of the domain use the network.
//   socket_receive_buffer  size requested from the kernel (4MiB, so that a 4 MB message fits; the kernel
//   socket_send_buffer     grants no more than net.core.rmem_max and wmem_max)
//
// CYCLONEDDS_URI is ignored, and describe() says so if it is set: a run must not silently depend on it.
//
// Times. The reception time is taken when the last fragment of a message from another process has arrived,
// before the message is put into its reader's history. Inside one process there is no reception: the writer's
// thread puts the message into the reader's history itself, and reception_ns is PERFLAB_TIME_UNKNOWN.
//
// Threads: gc, dq.builtins, dq.user, tev, recv (discovery), recvUC (data, on_data), and recvMC with
// multicast; batch, with batching.
#include <dds/version.h>

#include <cstring>
#include <string>

#include "middleware/cyclonedds/endpoint.h"
#include "middleware/cyclonedds/library.h"
#include "middleware/cyclonedds/participant.h"
#include "middleware/cyclonedds/settings.h"
#include "middleware/cyclonedds/waitset.h"
#include "middleware/middleware.h"
#include "middleware/support/plugin_table.h"

namespace cyclonedds = perflab::middleware::cyclonedds;
using perflab::Unsupported;
using perflab::middleware::support::plugin_table;

PERFLAB_MIDDLEWARE_CLASSES(cyclonedds::Participant, cyclonedds::Writer, cyclonedds::Reader,
                           cyclonedds::WaitSet)

namespace {

perflab_capabilities capabilities() {
  return {.across_processes = true,
          .data_ready_callbacks = true,
          .source_timestamps = true,
          .reception_timestamps = true,
          .reports_endpoints = true,
          .related_samples = false,  // the library gives no access to inline QoS
          .loans = true,
          .instances = true,
          .filters = true};
}

cyclonedds::Settings settings(const perflab_participant_settings& given) {
  // The custom type uses the library's internal structures, which change between versions.
  if (std::strcmp(cyclonedds::library_version(), DDS_VERSION) != 0) {
    throw Unsupported(std::string("cyclonedds: built for libddsc " DDS_VERSION " but loaded with ") +
                      cyclonedds::library_version());
  }
  return cyclonedds::read_settings(given);
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
      kNoDurabilityService,
      supported("deadline"),
      supported("lifespan"),
      supported("liveliness"),
      supported("partition"),
      supported("ownership"),
      refused("time_based_filter", "Cyclone DDS delivers every message nevertheless"),
      refused("presentation", "Cyclone DDS has neither coherent sets nor order across instances"),
      supported("destination_order"),
      supported("resource_limits", "of readers"),
      supported("user_data"),
      supported("topic_data"),
      supported("group_data"),
      hint("transport_priority"),
      hint("latency_budget"),
      kLastPolicy};
  return kPolicies;
}

constexpr perflab_middleware kMiddleware =
    plugin_table<settings>({.name = "cyclonedds",
                            .summary = "Eclipse Cyclone DDS, serialized messages over UDP",
                            .version = cyclonedds::library_version,
                            .capabilities = capabilities,
                            .policies = policies});

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
