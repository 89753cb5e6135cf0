// The middleware "udp": messages between threads and processes of one machine as plain datagrams over the
// loopback. Writing is one system call, taking another; the kernel wakes the waiting thread. No network path
// can cost less, so this is the baseline for middlewares over UDP, as "shm" is for a single machine.
//
// A message is sent to each matched reader separately: as one datagram if it fits (65,427 bytes), otherwise
// as several (datagram.h). Nothing is retransmitted, acknowledged or held back. Datagrams that do not fit
// into a reader's socket are lost: the gap in the writer's numbers reveals it, and is reported as
// PERFLAB_SAMPLE_LOST.
//
// Options:
//   socket_receive_buffer  size requested from the kernel (4MiB; limited by net.core.rmem_max). It is a
//                          reader's queue, so it limits how much may wait there
//   socket_send_buffer     likewise (4MiB; net.core.wmem_max)
//
// History. A keep_last reader reads its whole socket on every take and drops the oldest messages; so a full
// socket loses the newest, as any network does. A keep_all reader keeps what the socket holds, and with
// on_data() 16384 messages more.
//
// Times. write() sets the source time stamp from the wall clock. Nothing takes a time stamp when a datagram
// arrives; reception_ns is PERFLAB_TIME_UNKNOWN.
//
// Limits. Only best effort and volatile; deadlines, lifespans and leases are refused. `network` can only be
// "lo". A message that exceeds a socket's buffer is refused. At most 256 participants per domain and user.
//
// Reading order: datagram.h, writer.h and reader.h (the path of a message), waitset.h, participant.h.

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

// Undeclared policies are refused. The conformance suite tests the declared ones.
const perflab_policy* policies() {
  using namespace perflab::middleware::support;
  static constexpr perflab_policy kPolicies[] = {
      supported("history"),
      refused("reliability", "datagrams are sent once"),
      refused("durability", "no history is kept for later readers"),
      refused("deadline", "there is no timer"),
      refused("lifespan", "there is no timer"),
      refused("liveliness", "there is no timer"),
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
