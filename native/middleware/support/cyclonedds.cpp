#include "middleware/support/cyclonedds.h"

#include <algorithm>

#include "middleware/support/xml.h"

namespace perflab::middleware::support {
namespace {

constexpr std::uint64_t kSmallMessageSize = 14720;  // Cyclone's default
constexpr std::uint64_t kRoomForLargeMessages = 1u << 20;
// Cyclone sends a fragment and its headers in one packet only if both fit.
constexpr std::uint64_t kFragmentHeaders = 500;

std::string byte_count(std::uint64_t bytes) { return std::to_string(bytes) + " B"; }

}  // namespace

std::uint64_t cyclonedds_message_size(const DdsSettings& settings) {
  const std::uint64_t granted = std::min(settings.receive_buffer.requested, settings.receive_buffer.limit);
  return settings.max_message_size.value_or(granted >= kRoomForLargeMessages ? kLargestMessageSize
                                                                             : kSmallMessageSize);
}

std::string cyclonedds_xml(const DdsSettings& settings, std::uint64_t receive_buffer,
                           const std::string& more) {
  const std::uint64_t message_size = cyclonedds_message_size(settings);
  std::string discovery = element("ParticipantIndex", "auto") +
                          element("MaxAutoParticipantIndex", std::to_string(settings.last_index)) +
                          element("LeaseDuration", std::to_string(settings.lease_duration_ns) + " ns");
  // Without multicast each participant announces itself to every port that another might have. The numeric
  // address avoids loading a resolver library.
  if (settings.interface.loopback) discovery += element("Peers", "<Peer address=\"127.0.0.1\"/>");
  const std::string general =
      element("Interfaces", "<NetworkInterface name=\"" + escaped(settings.network) + "\"/>") +
      element("AllowMulticast", settings.interface.multicast ? "true" : "false") +
      element("MaxMessageSize", byte_count(message_size)) +
      element("FragmentSize", byte_count(message_size - kFragmentHeaders)) +
      element("MaxRexmitMessageSize", byte_count(message_size));
  const std::string internal =
      "<SocketReceiveBufferSize max=\"" + byte_count(settings.receive_buffer.requested) + "\"/>" +
      "<SocketSendBufferSize max=\"" + byte_count(settings.send_buffer.requested) + "\"/>";
  const std::string sizing = element("ReceiveBufferSize", byte_count(receive_buffer));
  return element("CycloneDDS", "<Domain id=\"any\">" + element("General", general) +
                                   element("Discovery", discovery) + element("Internal", internal) +
                                   element("Sizing", sizing) + more + "</Domain>");
}

}  // namespace perflab::middleware::support
