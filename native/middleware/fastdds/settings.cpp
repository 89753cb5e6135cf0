#include "middleware/fastdds/settings.h"

#include <limits>
#include <span>

#include "middleware/fastdds/fast.h"
#include "middleware/support/options.h"

namespace perflab::middleware::fastdds {
namespace {

using support::Options;

std::string read_config(const Options& options) {
  const auto xml = options.xml("config");
  if (!xml) return {};
  if (xml->find("<participant") == std::string::npos ||
      xml->find("is_default_profile=\"true\"") == std::string::npos) {
    options.refuse("config", "XML with a participant profile marked is_default_profile=\"true\"");
  }
  return *xml;
}

}  // namespace

Settings read_settings(const perflab_participant_settings& given) {
  const Options options(
      "fastdds", std::span(given.options, given.option_count),
      {"config", "data_sharing", "intraprocess", "lease_duration", "max_blocking_time", "max_message_size",
       "publish_mode", "security", "shm_segment_size", "socket_receive_buffer", "socket_send_buffer", "transport"});
  Settings settings{support::read_dds_settings("fastdds", given, options, 65536)};
  settings.profiles = read_config(options);

  const std::string transport = options.text("transport").value_or("udp+shm");
  if (transport != "udp" && transport != "shm" && transport != "udp+shm") {
    options.refuse("transport", "udp, shm or udp+shm");
  }
  settings.udp = transport != "shm";
  settings.shm = transport != "udp";
  settings.data_sharing = options.either("data_sharing", "on", "off").value_or(settings.data_sharing);
  settings.intraprocess = options.either("intraprocess", "on", "off").value_or(settings.intraprocess);
  settings.asynchronous = options.either("publish_mode", "async", "sync").value_or(settings.asynchronous);

  if (settings.credentials) {
#if !HAVE_SECURITY
    throw Unsupported("fastdds: security: this Fast DDS was built without it; right would be security=off");
#endif
    if (settings.data_sharing) options.refuse("data_sharing", "off beside security, which protects datagrams alone");
    if (settings.ignore_local_endpoints) {
      throw Unsupported(
          "fastdds: security: identities then do not show which endpoints are in this process; right would "
          "be no intra-process delivery");
    }
  }

  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  settings.shm_segment_size = static_cast<std::uint32_t>(
      options.bytes("shm_segment_size", 0, kMost, "64 KiB to 2 GiB").value_or(settings.shm_segment_size));
  if (settings.shm_segment_size != 0 && settings.shm_segment_size < settings.message_size()) {
    options.refuse("shm_segment_size", "64 KiB to 2 GiB, at least max_message_size");
  }
  return settings;
}

}  // namespace perflab::middleware::fastdds
