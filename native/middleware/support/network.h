// The network as middlewares are configured for it: an interface by its name, ports for participants,
// buffers. `middleware` is who asks, for the text of errors.
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
  bool multicast = false;  // and not the loopback
};

// Throws BadInput where there is no such interface that is up with an IPv4 address.
Interface find_interface(const std::string& middleware, const std::string& name);

// The highest index among the participants of a domain on one address, with some to spare for other programs.
// Throws Unsupported where without multicast not all of them could be found.
std::uint32_t last_participant_index(const std::string& middleware, const std::string& network,
                                     const Interface& interface, std::uint32_t participants_expected);

// A limit below /proc/sys/net/core: what the kernel grants at most as a socket's buffer ("rmem_max").
std::uint64_t kernel_limit(const std::string& middleware, const std::string& name);

}  // namespace perflab::middleware::support
