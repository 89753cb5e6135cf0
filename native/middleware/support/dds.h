// perflab's DDS settings, independent of the library and of whether a plug-in or ROS 2 creates the
// participants: what is compared is configured alike. Translated by cyclonedds.h, fastdds.h and
// fastdds/participant.cpp.
//
// Example:
//   const Options options("cyclonedds", given.options, {"lease_duration", "max_blocking_time", ...});
//   const DdsSettings settings = read_dds_settings("cyclonedds", given, options, 4096);
//   cyclonedds_xml(settings);  // "<CycloneDDS><Domain id="any">..."
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "middleware/middleware.h"
#include "middleware/support/network.h"
#include "middleware/support/options.h"
#include "middleware/support/security.h"

namespace perflab::middleware::support {

// The largest UDP datagram that both libraries send.
constexpr std::uint64_t kLargestMessageSize = 65500;

struct SocketBuffer {
  std::uint64_t requested = 4u << 20;  // bytes, enough for a message of 4 MB
  std::uint64_t limit = 0;             // kernel limit (net.core.rmem_max, wmem_max)
};

// Defaults are those of the options with the same names.
struct DdsSettings {
  std::string middleware;  // for error messages
  std::uint32_t domain = 0;
  bool ignore_local_endpoints = false;

  std::string network = "lo";
  Interface interface {};
  std::uint32_t last_index = 0;  // highest participant index, for peers without multicast

  SocketBuffer receive_buffer{};
  SocketBuffer send_buffer{};
  std::optional<std::uint64_t>
      max_message_size{};  // largest datagram, bytes; empty: the library's default
  std::int64_t lease_duration_ns = 10'000'000'000;
  std::int64_t max_blocking_time_ns = 1'000'000'000;
  Credentials credentials{};  // for DDS Security
};

// The settings without any options. Throws BadInput if the domain or network does not exist, Unsupported if
// the participants could not all discover each other on it.
DdsSettings dds_settings(const std::string& middleware, std::uint32_t domain, const std::string& network,
                         std::uint32_t participants_expected);

// The settings from the options lease_duration, max_blocking_time, max_message_size, security,
// socket_receive_buffer and socket_send_buffer. `least_socket_buffer`: the smallest one that the library
// accepts.
DdsSettings read_dds_settings(const std::string& middleware, const perflab_participant_settings& given,
                              const Options& options, std::uint64_t least_socket_buffer);

// For describe().
nlohmann::json describe(const DdsSettings& settings);

}  // namespace perflab::middleware::support
