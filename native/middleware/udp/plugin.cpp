// The middleware "udp": messages between threads and processes of one machine as plain datagrams over the
// loopback. Writing is one system call, taking one another; the kernel wakes the thread that waits. That is
// the least that a network path costs, and so the floor that middlewares over UDP are compared with, as "shm"
// is the floor of one machine.
//
// A message goes to each matched reader by itself: one datagram where it fits (65,427 bytes), otherwise as
// many as it takes (datagram.h). Nothing is repeated, acknowledged or held back. What the socket of a reader
// has no room for is lost: the gap in the writer's numbers shows it, and is reported as PERFLAB_SAMPLE_LOST.
//
// Options:
//   socket_receive_buffer  what to ask the kernel for (4MiB; it grants no more than net.core.rmem_max). It is
//                          the queue of a reader, so it says how much may wait there
//   socket_send_buffer     likewise (4MiB; net.core.wmem_max)
//
// History. A reader that keeps the last few looks at all that its socket holds whenever it is taken from, and
// the oldest give way; so a full socket loses the newest, as any network does. One that keeps all keeps what
// the socket holds, and where it is called 16384 messages more.
//
// Times. Source time stamps are the wall clock's in write(). No thread looks at a clock when a datagram
// arrives; reception_ns is PERFLAB_TIME_UNKNOWN.
//
// Limits. Best effort and volatile alone; deadlines, lifespans and leases are refused. `network` can only be
// "lo". A message is refused that a socket's buffer cannot hold. At most 256 participants per domain and
// user.
//
// Read in this order: datagram.h, writer.h and reader.h (the way of a message), waitset.h, participant.h.

#include <arpa/inet.h>

#include "middleware/middleware.h"
#include "middleware/support/network.h"
#include "middleware/support/options.h"
#include "middleware/support/plugin_table.h"
#include "middleware/udp/participant.h"
#include "middleware/udp/reader.h"
#include "middleware/udp/waitset.h"
#include "middleware/udp/writer.h"

namespace udp = perflab::middleware::udp;
namespace support = perflab::middleware::support;
using perflab::middleware::support::Options;
using perflab::middleware::support::plugin_table;

PERFLAB_MIDDLEWARE_CLASSES(udp::Participant, udp::Writer, udp::Reader, udp::WaitSet)

namespace {

perflab_capabilities capabilities() {
  return {.across_processes = true,
          .data_ready_callbacks = true,
          .source_timestamps = true,
          .reception_timestamps = false,
          .reports_endpoints = true,
          .related_samples = true,
          .loans = false,
          .instances = false,
          .filters = false};
}

udp::ParticipantSettings settings(const perflab_participant_settings& given) {
  const Options options("udp", {given.options, given.option_count},
                        {"socket_receive_buffer", "socket_send_buffer"});
  const auto local = support::local_settings("udp", given, options, "connects processes of one machine");
  const auto buffer = [&](const char* key) {
    return options.bytes(key, 4096, 1u << 30, "4 KiB to 1 GiB").value_or(4u << 20);
  };
  udp::ParticipantSettings settings{
      .domain = {local.domain, local.ignore_local_endpoints, 0},
      .address = {},
      .buffers = {buffer("socket_receive_buffer"), buffer("socket_send_buffer")}};
  inet_pton(AF_INET, support::find_interface("udp", "lo").address.c_str(), &settings.address);
  return settings;
}

// What is not here is refused. The conformance suite proves what is.
const perflab_policy* policies() {
  using namespace perflab::middleware::support;
  static constexpr perflab_policy kPolicies[] = {
      supported("history"),
      refused("reliability", "datagrams are sent once"),
      refused("durability", "nothing is kept for later readers"),
      refused("deadline", "nobody watches the clock"),
      refused("lifespan", "nobody watches the clock"),
      refused("liveliness", "nobody watches the clock"),
      supported("partition"),
      supported("user_data"),
      kLastPolicy};
  return kPolicies;
}

constexpr perflab_middleware kMiddleware = plugin_table<settings>(
    {.name = "udp",
     .summary = "plain datagrams over the loopback, best effort: the floor of what a network path costs",
     .version = [] { return "1"; },
     .capabilities = capabilities,
     .policies = policies});

}  // namespace

PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
