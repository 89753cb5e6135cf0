// The middleware "cyclonedds": Eclipse Cyclone DDS 0.10 through its C library, without generated types.
//
// Messages are carried under the ROS 2 names, so that ROS 2 nodes on the same domain and network see them.
//
// Options:
//   batching               on or off (off): small messages wait for others, and leave together when a datagram is
//                          full, when the library waits for room, when the writer ends, or after
//   batching_delay         at most (1ms); of a writer with a latency_budget after that
//   config                 an XML file, or XML itself, in Cyclone's format. Read after what perflab
//                          sets, so it wins. SharedMemory is refused.
//   lease_duration         how long a silent participant counts as alive (10s)
//   max_blocking_time      how long a reliable writer may wait for room before write() fails (1s)
//   max_message_size       largest UDP payload, 2000..65500. Default 65500, which halves the latency of
//                          a 4 MB message; but 14720, Cyclone's own, where the kernel grants socket
//                          buffers of less than 1 MiB: those hold too few large packets and lose them
//                          (with 65500 and 208 KiB, 48 of 60 messages of 4 MB arrived).
//   receive_buffer         Cyclone's unit of received packets, at least 128KiB (256KiB; of Cyclone's
//                          own 1 MiB per receive thread all becomes resident within the first megabyte
//                          received)
//   security               off, or a folder of credentials (support/security.h): DDS Security, by the plug-ins that the
//                          library brings. Not with shared_memory, nor for topics with keys.
//   shared_memory          on or off (off): messages of fixed size go through iceoryx. Their ends keep the last, are
//                          volatile, and have no deadline, partition or manual liveliness, or are refused.
//                          Needed for loans, and needs RouDi, iceoryx's daemon. What was really passed like
//                          this is counted. Who else is in the domain is served over the network.
//   socket_receive_buffer  what to ask the kernel for (4MiB, so that a 4 MB message fits; the kernel
//   socket_send_buffer     grants no more than net.core.rmem_max and wmem_max)
//
// CYCLONEDDS_URI is ignored, and describe() says so when it is set: a run must not depend on it in silence.
//
// Times. The reception time is taken when the last fragment of a message from another process has arrived,
// before the message is copied to its reader's history. Inside one process there is no reception: the
// writer's thread puts the message into the reader's history itself, and reception_ns is
// PERFLAB_TIME_UNKNOWN.
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
  // The own type reaches into the library's structures, which change between versions.
  if (std::strcmp(cyclonedds::library_version(), DDS_VERSION) != 0) {
    throw Unsupported(std::string("cyclonedds: built for libddsc " DDS_VERSION " but loaded with ") +
                      cyclonedds::library_version());
  }
  return cyclonedds::read_settings(given);
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
      kNoDurabilityService,
      supported("deadline"),
      supported("lifespan"),
      supported("liveliness"),
      supported("partition"),
      supported("ownership"),
      refused("time_based_filter", "Cyclone DDS delivers every message all the same"),
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
