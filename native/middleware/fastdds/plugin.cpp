// The middleware "fastdds": eProsima Fast DDS 2.9 or later, also 3, without generated types.
//
// Messages use the ROS 2 names, so that ROS 2 nodes in the same domain and network see them.
//
// Options:
//   transport              udp, shm or udp+shm (the library's default). With udp+shm, discovery uses UDP on a
//                          network without multicast, and data to participants of this machine use shared
//                          memory; with shm only participants that use it too are discovered.
//   data_sharing           on or off (off, as in rmw_fastrtps): types of fixed size are written and read in
//                          a shared-memory file of the writer. Required for loans.
//   intraprocess           on or off (on, as in the library): delivery within the process without a
//                          transport. One setting for all participants of a process.
//   publish_mode           sync (as in rmw_fastrtps since Galactic): write() itself sends; or async: a
//                          thread does
//   security               off, or a folder with credentials (support/security.h): DDS Security, by the library's own
//                          plug-ins. Not with data_sharing.
//   socket_receive_buffer  size requested from the kernel (4MiB, so that a 4 MB message fits; the kernel
//   socket_send_buffer     grants no more than net.core.rmem_max and wmem_max)
//   max_message_size       largest datagram, 2000..65500 (65500, the library's default), also of the
//                          shared-memory transport
//   shm_segment_size       of the shared-memory transport (512KiB, the library's default)
//   lease_duration         how long a silent participant counts as alive (10s)
//   max_blocking_time      how long a reliable writer may wait for room before write() fails (1s)
//   config                 an XML file, or XML text, with a participant profile marked
//                          is_default_profile. Each of its parts (transport, wire_protocol, allocation,
//                          properties, user_data, name) that differs from the library's default replaces that
//                          part of perflab's settings; library_settings too.
//
// The environment (FASTRTPS_DEFAULT_PROFILES_FILE, ROS_DISCOVERY_SERVER and the like) and profile files in
// the working directory are ignored, and describe() lists those present: a run must not silently depend on
// them.
//
// Histories. A writer's keep-all history holds 5000 messages, the library's default; a reliable writer waits
// beyond that, for at most max_blocking_time. In shared memory it holds what fits into 64 MiB, at least 16. A
// reader's keep-all history has no limit and takes memory for untaken messages: the library's default is 5000
// there, too, and messages rejected within a process for lack of room are never delivered again, reliable or
// not.
//
// Times. The reception time is the library's: wall-clock time in the receive thread when a message is put
// into its reader's history; take() converts it to the host's clock by the message's age at that moment. The
// library stamps the first fragment of a fragmented message, so for these the host's clock is read when the
// last fragment has arrived; if several such messages become available at once, the time is known for only
// one of them. Within one process with intraprocess=on there is no reception: the writer's thread puts the
// message into the reader's history itself, and reception_ns is PERFLAB_TIME_UNKNOWN. With data sharing it is
// the time at which the reader's thread noticed the message.
//
// Loans with data sharing. A writer reuses the memory of a message when its history has moved on, even while
// a reader still accesses it; spare messages in shared memory (16, or 4 of more than 1 MiB) delay that. A
// reader without loans copies and then checks that the copy is intact; one with loans checks when the message
// is returned. describe() counts `overwritten` for both.
//
// Threads: fdds.udp.disc, fdds.udp.user, fdds.shm.disc, fdds.shm.user (receiving; on_data comes on a user
// one), fdds.sharing (one per reader with data sharing), fdds (timers, the log, shared-memory watchdogs,
// sending with async).
#include <string>
#include <string_view>

#include "middleware/fastdds/endpoint.h"
#include "middleware/fastdds/library.h"
#include "middleware/fastdds/participant.h"
#include "middleware/fastdds/settings.h"
#include "middleware/middleware.h"
#include "middleware/support/plugin_table.h"
#include "middleware/support/waitset.h"

namespace fastdds = perflab::middleware::fastdds;
using perflab::Unsupported;
using perflab::middleware::support::plugin_table;

PERFLAB_MIDDLEWARE_CLASSES(fastdds::Participant, fastdds::Writer, fastdds::Reader,
                           perflab::middleware::support::WaitSet<fastdds::Reader>)

namespace {

perflab_capabilities capabilities() {
  return {.across_processes = true,
          .data_ready_callbacks = true,
          .source_timestamps = true,
          .reception_timestamps = true,
          .reports_endpoints = true,
          .related_samples = true,
          .loans = true,
          .instances = true,
          .filters = true};
}

fastdds::Settings settings(const perflab_participant_settings& given) {
  // Derives from library classes, whose layout changes between minor versions.
  const std::string built =
      std::to_string(FASTDDS_VERSION_MAJOR) + "." + std::to_string(FASTDDS_VERSION_MINOR) + ".";
  if (!std::string_view(fastdds::library_version()).starts_with(built)) {
    throw Unsupported("fastdds: built for Fast DDS " + built + "x but loaded with " +
                      fastdds::library_version());
  }
  return fastdds::read_settings(given);
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
      supported("resource_limits"),
      refused("time_based_filter", "Fast DDS delivers every message nevertheless"),
      refused("destination_order", "Fast DDS itself refuses by_source"),
      refused("presentation", "Fast DDS has neither coherent sets nor order across instances"),
      supported("user_data"),
      supported("topic_data"),
      supported("group_data"),
      hint("transport_priority"),
      hint("latency_budget"),
      kLastPolicy};
  return kPolicies;
}

constexpr perflab_middleware kMiddleware =
    plugin_table<settings>({.name = "fastdds",
                            .summary = "eProsima Fast DDS, serialized messages over UDP and shared memory",
                            .version = fastdds::library_version,
                            .capabilities = capabilities,
                            .policies = policies});

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
