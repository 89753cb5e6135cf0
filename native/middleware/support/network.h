// Network configuration for middlewares: an interface by name, ports for participants, buffers. `middleware`
// names the caller in error messages.
//
// Example:
//   const Interface at = find_interface("cyclonedds", "lo");
//   last_participant_index("cyclonedds", "lo", at, 2);  // 18
#pragma once

#include <cstdint>
#include <string>

namespace perflab::middleware::support {

struct Interface {
  std::string address;  // IPv4
  bool loopback = false;
  bool multicast = false;  // supports multicast and is not the loopback
};

// Throws BadInput if there is no such active interface with an IPv4 address.
Interface find_interface(const std::string& middleware, const std::string& name);

// The highest index among the participants of a domain on one address, with some in reserve for other
// programs. Throws Unsupported if not all of them could be discovered without multicast.
std::uint32_t last_participant_index(const std::string& middleware, const std::string& network,
                                     const Interface& interface, std::uint32_t participants_expected);

// A limit in /proc/sys/net/core, e.g. the largest socket buffer that the kernel grants ("rmem_max").
std::uint64_t kernel_limit(const std::string& middleware, const std::string& name);

}  // namespace perflab::middleware::support
