// What every Cyclone DDS of a run is configured with, perflab's own plug-in's as well as that of ROS 2:
// figures of the two are compared, and differ by nothing of this.
//
// Example:
//   const Interface at = find_interface("cyclonedds", "lo");
//   cyclonedds_xml({.network = "lo", .participants_expected = 2}, at);  // "<CycloneDDS><Domain id="any">..."
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "middleware/support/network.h"

namespace perflab::middleware::support {

// The defaults are those of the plug-in's options; why, and what was measured, stands in
// cyclonedds/plugin.cpp.
struct CycloneConfiguration {
  std::string middleware = "cyclonedds";  // for the text of errors
  std::string network = "lo";
  std::uint32_t participants_expected = 1;
  std::uint64_t socket_receive_buffer = 4u << 20;
  std::optional<std::uint64_t> max_message_size{};  // bytes; as the kernel grants buffers
  std::uint64_t receive_buffer = 256u << 10;
  std::int64_t lease_duration_ns = 10'000'000'000;
  std::string more{};  // further elements of the domain
};

// Throws StatusError.
std::string cyclonedds_xml(const CycloneConfiguration& configuration, const Interface& interface);

}  // namespace perflab::middleware::support
