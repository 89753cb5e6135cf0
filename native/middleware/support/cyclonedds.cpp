#include "middleware/support/cyclonedds.h"

#include <algorithm>

namespace perflab::middleware::support {
namespace {

constexpr std::uint64_t kLargeMessageSize = 65500;
constexpr std::uint64_t kSmallMessageSize = 14720;  // Cyclone's own
constexpr std::uint64_t kRoomForLargeMessages = 1u << 20;
// Cyclone sends a fragment with its headers in one packet only if they fit.
constexpr std::uint64_t kFragmentHeaders = 500;

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string element(const char* name, const std::string& content) {
  return std::string("<") + name + ">" + content + "</" + name + ">";
}

std::string byte_count(std::uint64_t bytes) { return std::to_string(bytes) + " B"; }

}  // namespace

std::string cyclonedds_xml(const CycloneConfiguration& configuration, const Interface& interface) {
  const std::uint64_t granted =
      std::min(configuration.socket_receive_buffer, kernel_limit(configuration.middleware, "rmem_max"));
  const std::uint64_t message_size = configuration.max_message_size.value_or(
      granted >= kRoomForLargeMessages ? kLargeMessageSize : kSmallMessageSize);
  const std::uint32_t last_index = last_participant_index(configuration.middleware, configuration.network,
                                                          interface, configuration.participants_expected);
  std::string discovery = element("ParticipantIndex", "auto") +
                          element("MaxAutoParticipantIndex", std::to_string(last_index)) +
                          element("LeaseDuration", std::to_string(configuration.lease_duration_ns) + " ns");
  // Without multicast each participant announces itself to every port that another might have. The address is
  // numeric so that no resolver library is loaded.
  if (interface.loopback) discovery += element("Peers", "<Peer address=\"127.0.0.1\"/>");
  const std::string general =
      element("Interfaces", "<NetworkInterface name=\"" + escaped(configuration.network) + "\"/>") +
      element("AllowMulticast", interface.multicast ? "true" : "false") +
      element("MaxMessageSize", byte_count(message_size)) +
      element("FragmentSize", byte_count(message_size - kFragmentHeaders)) +
      element("MaxRexmitMessageSize", byte_count(message_size));
  const std::string internal =
      "<SocketReceiveBufferSize max=\"" + byte_count(configuration.socket_receive_buffer) + "\"/>";
  const std::string sizing = element("ReceiveBufferSize", byte_count(configuration.receive_buffer));
  return element("CycloneDDS", "<Domain id=\"any\">" + element("General", general) +
                                   element("Discovery", discovery) + element("Internal", internal) +
                                   element("Sizing", sizing) + configuration.more + "</Domain>");
}

}  // namespace perflab::middleware::support
