// How perflab configures a Fast DDS that others make participants of, as ROS 2 does: by a profile in XML. The
// plug-in sets the same by the library's own classes (fastdds/participant.cpp).
#pragma once

#include <cstdint>
#include <string>

#include "middleware/support/dds.h"

namespace perflab::middleware::support {

// When a participant announces itself: often while it is new, and then for as long as it is there. The
// library's 5 announcements in half a second leave others unmatched for seconds when the first are lost.
struct Announcements {
  std::uint32_t count = 40;
  std::int64_t first_period_ns = 50'000'000;
  std::int64_t period_ns;
};
Announcements announcements(const DdsSettings& settings);

// Over UDP on the interface of the settings alone, and within the machine by shared memory where that is
// wanted.
std::string fastdds_xml(const DdsSettings& settings, bool shared_memory);

}  // namespace perflab::middleware::support
