// How perflab configures Cyclone DDS, its own plug-in's as well as that of ROS 2: in Cyclone's XML.
#pragma once

#include <cstdint>
#include <string>

#include "middleware/support/dds.h"

namespace perflab::middleware::support {

// Of Cyclone's own 1 MiB per receive thread all becomes resident within the first megabyte received.
constexpr std::uint64_t kCycloneReceiveBuffer = 256u << 10;

// The largest datagram: as asked for, or as the kernel grants buffers (cyclonedds/plugin.cpp says why).
std::uint64_t cyclonedds_message_size(const DdsSettings& settings);

// `receive_buffer`: Cyclone's unit of received packets, in bytes; `more`: further elements of the domain.
std::string cyclonedds_xml(const DdsSettings& settings, std::uint64_t receive_buffer = kCycloneReceiveBuffer,
                           const std::string& more = "");

}  // namespace perflab::middleware::support
