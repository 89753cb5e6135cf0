// From participant settings to Cyclone's XML.
#pragma once

#include <cstdint>
#include <string>

#include "middleware/middleware.h"

namespace perflab::middleware::cyclonedds {

struct Settings {
  std::uint32_t domain;
  std::string network;
  bool ignore_local_endpoints = false;
  bool loopback;
  bool multicast;
  std::uint64_t socket_receive_buffer;        // bytes asked for
  std::uint64_t socket_receive_buffer_limit;  // the kernel grants no more (net.core.rmem_max)
  std::int64_t max_blocking_time_ns;
  // Given to dds_create_domain: first what perflab sets, then the option `config`, which therefore wins.
  std::string xml;
  bool has_user_configuration = false;
};

// Throws StatusError with PERFLAB_BAD_OPTION or PERFLAB_UNSUPPORTED. The options are documented in
// plugin.cpp.
Settings read_settings(const perflab_participant_settings& given);

}  // namespace perflab::middleware::cyclonedds
