// Translates participant settings for Fast DDS.
#pragma once

#include <cstdint>
#include <string>

#include "middleware/middleware.h"
#include "middleware/support/dds.h"

namespace perflab::middleware::fastdds {

struct Settings : support::DdsSettings {
  bool udp = true;
  bool shm = true;
  bool data_sharing = false;
  bool intraprocess = true;
  bool asynchronous = false;
  std::uint32_t shm_segment_size = 0;  // 0: the library's default
  std::string profiles{};              // XML given by the option `config`, or empty

  std::uint32_t message_size() const {
    return static_cast<std::uint32_t>(max_message_size.value_or(support::kLargestMessageSize));
  }
};

// Throws BadInput and Unsupported. The options are documented in
// plugin.cpp.
Settings read_settings(const perflab_participant_settings& given);

}  // namespace perflab::middleware::fastdds
