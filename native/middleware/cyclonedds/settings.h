// From participant settings to Cyclone's XML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "middleware/middleware.h"
#include "middleware/support/dds.h"

namespace perflab::middleware::cyclonedds {

struct Settings : support::DdsSettings {
  // Given to dds_create_domain: first what perflab sets, then the option `config`, which therefore wins.
  std::string xml{};
  bool has_user_configuration = false;
  bool shared_memory = false;  // by iceoryx
  // How long a message may wait to leave with others; nothing: it does not.
  std::optional<std::int64_t> batching_delay_ns{};
};

// Throws BadInput and Unsupported. The options are documented in
// plugin.cpp.
Settings read_settings(const perflab_participant_settings& given);

}  // namespace perflab::middleware::cyclonedds
