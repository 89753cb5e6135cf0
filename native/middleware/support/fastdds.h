// perflab's configuration of Fast DDS as an XML profile, for participants created by others, e.g. ROS 2. The
// plug-in applies the same settings through the library's classes (fastdds/participant.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "middleware/support/dds.h"

namespace perflab::middleware::support {

// When a participant announces itself: frequently while it is new, then periodically. The library's default
// of 5 announcements in half a second leaves participants unmatched for seconds if the first ones are lost.
struct Announcements {
  std::uint32_t count = 40;
  std::int64_t first_period_ns = 50'000'000;
  std::int64_t period_ns;
};
Announcements announcements(const DdsSettings& settings);

// UDP only on the interface of the settings; shared memory within the machine if requested.
std::string fastdds_xml(const DdsSettings& settings, bool shared_memory);

}  // namespace perflab::middleware::support
