// Translates participant settings to Cyclone's XML.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "middleware/middleware.h"
#include "middleware/support/dds.h"

namespace perflab::middleware::cyclonedds {

struct Settings : support::DdsSettings {
  // For dds_create_domain: perflab's settings, then the option `config`, which therefore takes precedence.
  std::string xml{};
  bool has_user_configuration = false;
  bool shared_memory = false;  // use iceoryx
  // How long a message may wait for others; empty: it does not wait.
  std::optional<std::int64_t> batching_delay_ns{};
};

// Throws BadInput and Unsupported. The options are documented in
// plugin.cpp.
Settings read_settings(const perflab_participant_settings& given);

}  // namespace perflab::middleware::cyclonedds
