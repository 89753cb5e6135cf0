#include "middleware/support/network.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <fstream>
#include <memory>
#include <set>

#include "base/error.h"

namespace perflab::middleware::support {
namespace {

// The well-known ports of one domain have room for this many participants per address before they reach those
// of the next domain (DDSI 9.6.1: 250 ports per domain, 2 per participant, the first 10 for other purposes).
constexpr std::uint32_t kLastParticipantIndex = 119;
// For other programs of the domain (a ROS 2 tool, a participant that is about to leave).
constexpr std::uint32_t kSpareParticipants = 16;

}  // namespace

Interface find_interface(const std::string& middleware, const std::string& name) {
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) throw Failed(middleware + ": cannot list network interfaces");
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, freeifaddrs);
  std::set<std::string> usable;
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET || (at->ifa_flags & IFF_UP) == 0)
      continue;
    if (name == at->ifa_name) {
      char text[INET_ADDRSTRLEN];
      const auto* const address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
      inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
      const bool loopback = (at->ifa_flags & IFF_LOOPBACK) != 0;
      return {text, loopback, (at->ifa_flags & IFF_MULTICAST) != 0 && !loopback};
    }
    usable.insert(at->ifa_name);
  }
  std::string text =
      middleware + ": network '" + name + "' is not an active interface with an IPv4 address; available are";
  for (const std::string& other : usable) text.append(" ").append(other);
  throw BadInput(text);
}

std::uint32_t last_participant_index(const std::string& middleware, const std::string& network,
                                     const Interface& interface, std::uint32_t participants_expected) {
  const std::uint32_t last = participants_expected + kSpareParticipants;
  if (!interface.multicast && last > kLastParticipantIndex) {
    throw Unsupported(middleware + ": " + std::to_string(participants_expected) + " participants on '" +
                      network + "', which has no multicast; right would be at most " +
                      std::to_string(kLastParticipantIndex - kSpareParticipants));
  }
  return std::min(last, kLastParticipantIndex);
}

std::uint64_t kernel_limit(const std::string& middleware, const std::string& name) {
  std::ifstream file("/proc/sys/net/core/" + name);
  std::uint64_t bytes = 0;
  if (!(file >> bytes)) throw Failed(middleware + ": cannot read net.core." + name);
  return bytes;
}

}  // namespace perflab::middleware::support
