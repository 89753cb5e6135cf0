#include "middleware/support/fastdds.h"

#include <algorithm>

#include "middleware/support/xml.h"

namespace perflab::middleware::support {
namespace {

std::string number(const char* name, std::uint64_t value) { return element(name, std::to_string(value)); }

std::string duration(const char* name, std::int64_t ns) {
  constexpr std::int64_t kSecond_ns = 1'000'000'000;
  return element(name, element("sec", std::to_string(ns / kSecond_ns)) +
                           element("nanosec", std::to_string(ns % kSecond_ns)));
}

}  // namespace

Announcements announcements(const DdsSettings& settings) {
  return {.period_ns = std::min<std::int64_t>(500'000'000, settings.lease_duration_ns / 4)};
}

std::string fastdds_xml(const DdsSettings& settings, bool shared_memory) {
  const std::string address = element("address", escaped(settings.interface.address));
  const std::string size = number("maxMessageSize", settings.max_message_size.value_or(kLargestMessageSize));
  const std::string udp = element("transport_id", "perflab_udp") + element("type", "UDPv4") +
                          number("sendBufferSize", settings.send_buffer.requested) +
                          number("receiveBufferSize", settings.receive_buffer.requested) + size +
                          element("interfaceWhiteList", address) +
                          number("maxInitialPeersRange", settings.last_index + 1);
  const std::string shm = element("transport_id", "perflab_shm") + element("type", "SHM") + size;

  const Announcements announced = announcements(settings);
  std::string discovery =
      element("discovery_config",
              duration("leaseDuration", settings.lease_duration_ns) +
                  duration("leaseAnnouncement", announced.period_ns) +
                  element("initialAnnouncements",
                          number("count", announced.count) + duration("period", announced.first_period_ns)));
  if (!settings.interface.multicast) {
    // Without multicast each participant announces itself to every port that another might have.
    const std::string locator = element("locator", element("udpv4", address));
    discovery += element("metatrafficUnicastLocatorList", locator) + element("initialPeersList", locator);
  }
  const std::string participant =
      element("builtin", discovery) +
      element("userTransports", element("transport_id", "perflab_udp") +
                                    (shared_memory ? element("transport_id", "perflab_shm") : "")) +
      element("useBuiltinTransports", "false");
  const std::string writer =
      element("qos", element("reliability", duration("max_blocking_time", settings.max_blocking_time_ns)));

  std::string xml = R"(<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">
)";
  xml += element("transport_descriptors", element("transport_descriptor", udp) +
                                              (shared_memory ? element("transport_descriptor", shm) : ""));
  xml += R"(
<participant profile_name="perflab" is_default_profile="true">)";
  xml += element("rtps", participant) + "</participant>";
  xml += R"(
<data_writer profile_name="perflab_writer" is_default_profile="true">)";
  xml += writer + "</data_writer>\n</profiles>\n";
  return xml;
}

}  // namespace perflab::middleware::support
