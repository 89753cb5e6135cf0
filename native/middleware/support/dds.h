// What perflab sets of DDS, whichever library it is and whoever makes its participants, a plug-in or ROS 2:
// what is compared is configured alike. Written down by cyclonedds.h, fastdds.h and fastdds/participant.cpp.
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

// The largest datagram of UDP that both libraries send.
constexpr std::uint64_t kLargestMessageSize = 65500;

struct SocketBuffer {
  std::uint64_t requested = 4u << 20;  // bytes: a message of 4 MB fits
  std::uint64_t limit = 0;             // the kernel grants no more (net.core.rmem_max, wmem_max)
};

// The defaults are those of the options of the same names.
struct DdsSettings {
  std::string middleware;  // for the text of errors
  std::uint32_t domain = 0;
  bool ignore_local_endpoints = false;

  std::string network = "lo";
  Interface interface {};
  std::uint32_t last_index = 0;  // of the participants that may be there, for the peers without multicast

  SocketBuffer receive_buffer{};
  SocketBuffer send_buffer{};
  std::optional<std::uint64_t>
      max_message_size{};  // bytes of a datagram; the library's writer knows the default
  std::int64_t lease_duration_ns = 10'000'000'000;
  std::int64_t max_blocking_time_ns = 1'000'000'000;
  Credentials credentials{};  // of DDS Security
};

// Without options. Throws BadInput where there is no such domain or network, Unsupported where
// not all participants could find each other on it.
DdsSettings dds_settings(const std::string& middleware, std::uint32_t domain, const std::string& network,
                         std::uint32_t participants_expected);

// With the options lease_duration, max_blocking_time, max_message_size, security, socket_receive_buffer and
// socket_send_buffer. `least_socket_buffer`: smaller ones the library refuses.
DdsSettings read_dds_settings(const std::string& middleware, const perflab_participant_settings& given,
                              const Options& options, std::uint64_t least_socket_buffer);

// For describe().
nlohmann::json describe(const DdsSettings& settings);

}  // namespace perflab::middleware::support
