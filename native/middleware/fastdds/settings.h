// From participant settings to what Fast DDS shall do.
#pragma once

#include <cstdint>
#include <string>

#include "middleware/middleware.h"

namespace perflab::middleware::fastdds {

struct Settings {
  std::uint32_t domain;
  std::uint32_t last_index;  // of the participants that may be there, for the peers without multicast
  bool ignore_local_endpoints;

  std::string network;
  std::string address;  // of that interface
  bool loopback;
  bool multicast;

  bool udp;
  bool shm;
  bool data_sharing;
  bool intraprocess;
  bool asynchronous;
  std::uint32_t socket_receive_buffer;  // bytes asked for
  std::uint32_t socket_send_buffer;
  std::uint64_t socket_receive_buffer_limit;  // the kernel grants no more (net.core.rmem_max, wmem_max)
  std::uint64_t socket_send_buffer_limit;
  std::uint32_t max_message_size;
  std::uint32_t shm_segment_size;  // 0: the library's own
  std::int64_t lease_duration_ns;
  std::int64_t max_blocking_time_ns;
  std::string profiles;  // XML given by the option `config`, or empty
};

// Throws StatusError with PERFLAB_BAD_OPTION or PERFLAB_UNSUPPORTED. The options are documented in
// plugin.cpp.
Settings read_settings(const perflab_participant_settings& given);

}  // namespace perflab::middleware::fastdds
