#include "middleware/support/dds.h"

#include <limits>
#include <nlohmann/json.hpp>

namespace perflab::middleware::support {
namespace {

constexpr std::uint64_t kLeastMessageSize = 2000;
constexpr std::int64_t kShortestLease_ns = 100'000'000;
constexpr std::int64_t kLongestLease_ns = 3'600'000'000'000;

nlohmann::json as_json(const SocketBuffer& buffer) {
  return {{"requested", buffer.requested}, {"limit", buffer.limit}};
}

}  // namespace

DdsSettings dds_settings(const std::string& middleware, std::uint32_t domain, const std::string& network,
                         std::uint32_t participants_expected) {
  check_domain(middleware, domain);
  DdsSettings settings{.middleware = middleware, .domain = domain, .network = network};
  settings.interface = find_interface(middleware, network);
  settings.last_index =
      last_participant_index(middleware, network, settings.interface, participants_expected);
  settings.receive_buffer.limit = kernel_limit(middleware, "rmem_max");
  settings.send_buffer.limit = kernel_limit(middleware, "wmem_max");
  return settings;
}

DdsSettings read_dds_settings(const std::string& middleware, const perflab_participant_settings& given,
                              const Options& options, std::uint64_t least_socket_buffer) {
  DdsSettings settings = dds_settings(
      middleware, given.domain, given.network != nullptr ? given.network : "lo", given.participants_expected);
  settings.ignore_local_endpoints = given.ignore_local_endpoints;
  constexpr std::uint64_t kLargest = std::numeric_limits<std::int32_t>::max();
  const std::string range = std::to_string(least_socket_buffer >> 10) + " KiB to 2 GiB";
  const auto socket_buffer = [&](const char* key, SocketBuffer& buffer) {
    buffer.requested = options.bytes(key, least_socket_buffer, kLargest, range).value_or(buffer.requested);
  };
  socket_buffer("socket_receive_buffer", settings.receive_buffer);
  socket_buffer("socket_send_buffer", settings.send_buffer);
  settings.max_message_size =
      options.bytes("max_message_size", kLeastMessageSize, kLargestMessageSize, "2000 to 65500 bytes");
  if (const auto lease_ns = options.duration_ns("lease_duration")) {
    if (*lease_ns < kShortestLease_ns || *lease_ns > kLongestLease_ns)
      options.refuse("lease_duration", "100ms to 3600s");
    settings.lease_duration_ns = *lease_ns;
  }
  settings.max_blocking_time_ns =
      options.duration_ns("max_blocking_time").value_or(settings.max_blocking_time_ns);
  settings.credentials = read_security(options);
  return settings;
}

nlohmann::json describe(const DdsSettings& settings) {
  return {{"domain", settings.domain},
          {"network", settings.network},
          {"multicast", settings.interface.multicast},
          {"socket_receive_buffer", as_json(settings.receive_buffer)},
          {"socket_send_buffer", as_json(settings.send_buffer)},
          {"max_message_size", settings.max_message_size.value_or(kLargestMessageSize)},
          {"lease_duration_ns", settings.lease_duration_ns},
          {"max_blocking_time_ns", settings.max_blocking_time_ns},
          {"security", static_cast<bool>(settings.credentials)}};
}

}  // namespace perflab::middleware::support
