#include "middleware/cyclonedds/settings.h"

#include <dds/features.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>

#include "middleware/support/cyclonedds.h"
#include "middleware/support/options.h"
#include "middleware/support/status.h"

namespace perflab::middleware::cyclonedds {
namespace {

using support::Options;
using support::StatusError;

// Defaults of the options; why, and what was measured, stands in plugin.cpp.
constexpr std::int64_t kMaxBlockingTime_ns = 1'000'000'000;

std::string read_config(const Options& options) {
  const auto given = options.text("config");
  if (!given) return {};
  std::string xml = *given;
  if (!xml.starts_with('<')) {
    std::ifstream file(xml);
    if (!file) options.refuse("config", "a readable file or XML that starts with '<'");
    xml.assign(std::istreambuf_iterator<char>(file), {});
    const std::size_t start = xml.find_first_not_of(" \t\r\n");
    if (start == std::string::npos || xml[start] != '<') options.refuse("config", "a file that holds XML");
    xml.erase(0, start);
    // Cyclone takes the configuration as fragments, which have no XML declaration.
    if (xml.starts_with("<?xml")) xml.erase(0, std::min(xml.size(), xml.find("?>") + 2));
  }
  // Written messages would be lost without a word: they are not placed in shared memory.
  if (xml.find("SharedMemory") != std::string::npos) {
    options.refuse("config", "a configuration without SharedMemory: this plug-in does not use iceoryx");
  }
  return xml;
}

}  // namespace

Settings read_settings(const perflab_participant_settings& given) {
  const Options options("cyclonedds", std::span(given.options, given.option_count),
                        {"config", "lease_duration", "max_blocking_time", "max_message_size",
                         "receive_buffer", "socket_receive_buffer"});
  if (given.domain > 232) {
    throw StatusError(PERFLAB_BAD_OPTION,
                      "cyclonedds: domain " + std::to_string(given.domain) + "; right would be 0..232");
  }
  support::CycloneConfiguration configuration;
  configuration.network = given.network != nullptr ? given.network : "lo";
  configuration.participants_expected = given.participants_expected;
  std::uint64_t& socket_buffer = configuration.socket_receive_buffer;
  socket_buffer = options.bytes("socket_receive_buffer").value_or(socket_buffer);
  if (socket_buffer < 4096 || socket_buffer > std::numeric_limits<std::int32_t>::max()) {
    options.refuse("socket_receive_buffer", "4 KiB to 2 GiB");
  }
  configuration.max_message_size = options.bytes("max_message_size");
  const std::uint64_t message_size = configuration.max_message_size.value_or(2000);
  if (message_size < 2000 || message_size > 65500) options.refuse("max_message_size", "2000 to 65500 bytes");
  std::uint64_t& receive_buffer = configuration.receive_buffer;
  receive_buffer = options.bytes("receive_buffer").value_or(receive_buffer);
  if (receive_buffer < (128u << 10) || receive_buffer > (1u << 30)) {
    options.refuse("receive_buffer", "128 KiB to 1 GiB");
  }
  std::int64_t& lease_ns = configuration.lease_duration_ns;
  lease_ns = options.duration_ns("lease_duration").value_or(lease_ns);
  if (lease_ns < 100'000'000 || lease_ns > 3'600'000'000'000)
    options.refuse("lease_duration", "100ms to 3600s");

  Settings settings{};
  settings.has_user_configuration = options.text("config").has_value();
  settings.domain = given.domain;
  settings.ignore_local_endpoints = given.ignore_local_endpoints;
  settings.network = configuration.network;
  const support::Interface interface = support::find_interface(configuration.middleware, settings.network);
  settings.loopback = interface.loopback;
  settings.multicast = interface.multicast;
  settings.socket_receive_buffer = socket_buffer;
  settings.socket_receive_buffer_limit = support::kernel_limit(configuration.middleware, "rmem_max");
  settings.max_blocking_time_ns = options.duration_ns("max_blocking_time").value_or(kMaxBlockingTime_ns);
#ifdef DDS_HAS_SHM  // a Cyclone without it, as ROS 2 builds it, refuses the element
  configuration.more = "<SharedMemory><Enable>false</Enable></SharedMemory>";
#endif
  settings.xml = support::cyclonedds_xml(configuration, interface);
  const std::string extra = read_config(options);
  if (!extra.empty()) settings.xml += "," + extra;
  return settings;
}

}  // namespace perflab::middleware::cyclonedds
