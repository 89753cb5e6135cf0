#include "middleware/cyclonedds/settings.h"

#include <dds/features.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <limits>
#include <memory>
#include <set>
#include <span>

#include "middleware/support/options.h"
#include "middleware/support/status.h"

namespace perflab::middleware::cyclonedds {
namespace {

using support::Options;
using support::StatusError;

// The well-known ports of one domain leave room for this many participants per address before they reach the
// next domain's (DDSI 9.6.1: 250 ports per domain, 2 per participant, the first 10 are others').
constexpr std::uint32_t kLastParticipantIndex = 119;
// Other programs of the domain (a ROS 2 tool, a participant that is about to leave).
constexpr std::uint32_t kSpareParticipants = 16;

// Defaults of the options; why, and what was measured, is told in plugin.cpp.
constexpr std::uint64_t kLargeMessageSize = 65500;
constexpr std::uint64_t kSmallMessageSize = 14720;  // Cyclone's own
constexpr std::uint64_t kRoomForLargeMessages = 1u << 20;
constexpr std::uint64_t kSocketReceiveBuffer = 4u << 20;
constexpr std::uint64_t kReceiveBuffer = 256u << 10;
constexpr std::int64_t kLeaseDuration_ns = 10'000'000'000;
constexpr std::int64_t kMaxBlockingTime_ns = 1'000'000'000;

// Cyclone sends a fragment with its headers in one packet only if they fit.
constexpr std::uint64_t kFragmentHeaders = 500;

struct Interface {
  bool loopback;
  bool multicast;
};

Interface find_interface(const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) throw StatusError(PERFLAB_FAILED, "cyclonedds: cannot list network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::set<std::string> usable;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_UP) == 0)
      continue;
    if (name == at->ifa_name)
      return {(at->ifa_flags & IFF_LOOPBACK) != 0, (at->ifa_flags & IFF_MULTICAST) != 0};
    usable.insert(at->ifa_name);
  }
  std::string text =
      "cyclonedds: network '" + name + "' is not an interface that is up with an IPv4 address; there are";
  for (const std::string& other : usable) text.append(" ").append(other);
  throw StatusError(PERFLAB_BAD_OPTION, text);
}

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

// What the kernel grants at most as a socket's receive buffer.
std::uint64_t largest_socket_buffer() {
  std::ifstream file("/proc/sys/net/core/rmem_max");
  std::uint64_t bytes = 0;
  if (!(file >> bytes)) throw StatusError(PERFLAB_FAILED, "cyclonedds: cannot read net.core.rmem_max");
  return bytes;
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

std::string element(const char* name, const std::string& content) {
  return std::string("<") + name + ">" + content + "</" + name + ">";
}

std::string byte_count(std::uint64_t bytes) { return std::to_string(bytes) + " B"; }

}  // namespace

Settings read_settings(const perflab_participant_settings& given) {
  const Options options("cyclonedds", std::span(given.options, given.option_count),
                        {"config", "lease_duration", "max_blocking_time", "max_message_size",
                         "receive_buffer", "socket_receive_buffer"});
  if (given.domain > 232) {
    throw StatusError(PERFLAB_BAD_OPTION,
                      "cyclonedds: domain " + std::to_string(given.domain) + "; right would be 0..232");
  }
  const std::uint64_t socket_buffer = options.bytes("socket_receive_buffer").value_or(kSocketReceiveBuffer);
  if (socket_buffer < 4096 || socket_buffer > std::numeric_limits<std::int32_t>::max()) {
    options.refuse("socket_receive_buffer", "4 KiB to 2 GiB");
  }
  const std::uint64_t granted = std::min(socket_buffer, largest_socket_buffer());
  const std::uint64_t message_size =
      options.bytes("max_message_size")
          .value_or(granted >= kRoomForLargeMessages ? kLargeMessageSize : kSmallMessageSize);
  if (message_size < 2000 || message_size > 65500) options.refuse("max_message_size", "2000 to 65500 bytes");
  const std::uint64_t receive_buffer = options.bytes("receive_buffer").value_or(kReceiveBuffer);
  if (receive_buffer < (128u << 10) || receive_buffer > (1u << 30)) {
    options.refuse("receive_buffer", "128 KiB to 1 GiB");
  }
  const std::int64_t lease_ns = options.duration_ns("lease_duration").value_or(kLeaseDuration_ns);
  if (lease_ns < 100'000'000 || lease_ns > 3'600'000'000'000)
    options.refuse("lease_duration", "100ms to 3600s");

  Settings settings{};
  settings.has_user_configuration = options.text("config").has_value();
  settings.domain = given.domain;
  settings.ignore_local_endpoints = given.ignore_local_endpoints;
  settings.network = given.network != nullptr ? given.network : "lo";
  const Interface interface = find_interface(settings.network);
  settings.loopback = interface.loopback;
  settings.multicast = interface.multicast && !interface.loopback;
  settings.socket_receive_buffer = socket_buffer;
  settings.socket_receive_buffer_limit = largest_socket_buffer();
  settings.max_blocking_time_ns = options.duration_ns("max_blocking_time").value_or(kMaxBlockingTime_ns);

  const std::uint32_t last_index = given.participants_expected + kSpareParticipants;
  if (!settings.multicast && last_index > kLastParticipantIndex) {
    throw StatusError(PERFLAB_UNSUPPORTED, "cyclonedds: " + std::to_string(given.participants_expected) +
                                               " participants on '" + settings.network +
                                               "', which has no multicast; right would be at most " +
                                               std::to_string(kLastParticipantIndex - kSpareParticipants));
  }

  std::string discovery =
      element("ParticipantIndex", "auto") +
      element("MaxAutoParticipantIndex", std::to_string(std::min(last_index, kLastParticipantIndex))) +
      element("LeaseDuration", std::to_string(lease_ns) + " ns");
  // Without multicast each participant announces itself to every port that another might have. The address is
  // numeric so that no resolver library is loaded.
  if (!settings.multicast && settings.loopback) {
    discovery += element("Peers", "<Peer address=\"127.0.0.1\"/>");
  }
  const std::string general =
      element("Interfaces", "<NetworkInterface name=\"" + escaped(settings.network) + "\"/>") +
      element("AllowMulticast", settings.multicast ? "true" : "false") +
      element("MaxMessageSize", byte_count(message_size)) +
      element("FragmentSize", byte_count(message_size - kFragmentHeaders)) +
      element("MaxRexmitMessageSize", byte_count(message_size));
  const std::string internal = "<SocketReceiveBufferSize max=\"" + byte_count(socket_buffer) + "\"/>";
  const std::string sizing = element("ReceiveBufferSize", byte_count(receive_buffer));

#ifdef DDS_HAS_SHM  // a Cyclone without it, as ROS 2 builds it, refuses the element
  const std::string shared_memory = element("SharedMemory", element("Enable", "false"));
#else
  const std::string shared_memory;
#endif

  settings.xml = element("CycloneDDS", "<Domain id=\"any\">" + element("General", general) +
                                           element("Discovery", discovery) + element("Internal", internal) +
                                           element("Sizing", sizing) + shared_memory + "</Domain>");
  const std::string extra = read_config(options);
  if (!extra.empty()) settings.xml += "," + extra;
  return settings;
}

}  // namespace perflab::middleware::cyclonedds
