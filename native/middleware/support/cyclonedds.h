// perflab's configuration of Cyclone DDS as XML, for its own plug-in and for ROS 2.
#pragma once

#include <cstdint>
#include <string>

#include "middleware/support/dds.h"

namespace perflab::middleware::support {

// Cyclone's default of 1 MiB per receive thread becomes fully resident within the first megabyte received.
constexpr std::uint64_t kCycloneReceiveBuffer = 256u << 10;

// The largest datagram: the configured value, or what the kernel's buffer limits allow (cyclonedds/plugin.cpp
// has the reason).
std::uint64_t cyclonedds_message_size(const DdsSettings& settings);

// `receive_buffer`: Cyclone's unit of received packets, in bytes; `more`: additional elements of the domain.
std::string cyclonedds_xml(const DdsSettings& settings, std::uint64_t receive_buffer = kCycloneReceiveBuffer,
                           const std::string& more = "");

}  // namespace perflab::middleware::support
