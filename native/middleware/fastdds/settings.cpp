#include "middleware/fastdds/settings.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <span>

#include "middleware/support/network.h"
#include "middleware/support/options.h"
#include "middleware/support/status.h"

namespace perflab::middleware::fastdds {
namespace {

using support::Options;
using support::StatusError;

// Defaults of the options; why is told in plugin.cpp.
constexpr std::uint64_t kMaxMessageSize = 65500;
constexpr std::uint64_t kSocketBuffer = 4u << 20;
constexpr std::int64_t kLeaseDuration_ns = 10'000'000'000;
constexpr std::int64_t kMaxBlockingTime_ns = 1'000'000'000;

bool read_switch(const Options& options, const char* key, const char* on, const char* off, bool by_default) {
  const auto given = options.text(key);
  if (!given) return by_default;
  if (*given != on && *given != off) options.refuse(key, std::string(on) + " or " + off);
  return *given == on;
}

std::uint32_t read_bytes(const Options& options, const char* key, std::uint64_t by_default,
                         std::uint64_t least, std::uint64_t most, const char* range) {
  const std::uint64_t value = options.bytes(key).value_or(by_default);
  if (value < least || value > most) options.refuse(key, range);
  return static_cast<std::uint32_t>(value);
}

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
  }
  if (xml.find("<participant") == std::string::npos ||
      xml.find("is_default_profile=\"true\"") == std::string::npos) {
    options.refuse("config", "XML with a participant profile marked is_default_profile=\"true\"");
  }
  return xml;
}

}  // namespace

Settings read_settings(const perflab_participant_settings& given) {
  const Options options(
      "fastdds", std::span(given.options, given.option_count),
      {"config", "data_sharing", "intraprocess", "lease_duration", "max_blocking_time", "max_message_size",
       "publish_mode", "shm_segment_size", "socket_receive_buffer", "socket_send_buffer", "transport"});
  if (given.domain > 232) {
    throw StatusError(PERFLAB_BAD_OPTION,
                      "fastdds: domain " + std::to_string(given.domain) + "; right would be 0..232");
  }
  Settings settings{};
  settings.domain = given.domain;
  settings.ignore_local_endpoints = given.ignore_local_endpoints;
  settings.profiles = read_config(options);

  const std::string transport = options.text("transport").value_or("udp+shm");
  if (transport != "udp" && transport != "shm" && transport != "udp+shm") {
    options.refuse("transport", "udp, shm or udp+shm");
  }
  settings.udp = transport != "shm";
  settings.shm = transport != "udp";
  settings.data_sharing = read_switch(options, "data_sharing", "on", "off", false);
  settings.intraprocess = read_switch(options, "intraprocess", "on", "off", true);
  settings.asynchronous = read_switch(options, "publish_mode", "async", "sync", false);

  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  settings.socket_receive_buffer =
      read_bytes(options, "socket_receive_buffer", kSocketBuffer, 65536, kMost, "64 KiB to 2 GiB");
  settings.socket_send_buffer =
      read_bytes(options, "socket_send_buffer", kSocketBuffer, 65536, kMost, "64 KiB to 2 GiB");
  settings.socket_receive_buffer_limit = support::kernel_limit("fastdds", "rmem_max");
  settings.socket_send_buffer_limit = support::kernel_limit("fastdds", "wmem_max");
  settings.max_message_size =
      read_bytes(options, "max_message_size", kMaxMessageSize, 2000, kMaxMessageSize, "2000 to 65500 bytes");
  settings.shm_segment_size = read_bytes(options, "shm_segment_size", 0, 0, kMost, "64 KiB to 2 GiB");
  if (settings.shm_segment_size != 0 && settings.shm_segment_size < settings.max_message_size) {
    options.refuse("shm_segment_size", "64 KiB to 2 GiB, at least max_message_size");
  }
  settings.lease_duration_ns = options.duration_ns("lease_duration").value_or(kLeaseDuration_ns);
  if (settings.lease_duration_ns < 100'000'000 || settings.lease_duration_ns > 3'600'000'000'000)
    options.refuse("lease_duration", "100ms to 3600s");
  settings.max_blocking_time_ns = options.duration_ns("max_blocking_time").value_or(kMaxBlockingTime_ns);

  settings.network = given.network != nullptr ? given.network : "lo";
  const support::Interface interface = support::find_interface("fastdds", settings.network);
  settings.address = interface.address;
  settings.loopback = interface.loopback;
  settings.multicast = interface.multicast;
  settings.last_index =
      support::last_participant_index("fastdds", settings.network, interface, given.participants_expected);
  return settings;
}

}  // namespace perflab::middleware::fastdds
