// Sockets of UDP on one address.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace perflab::middleware::udp {

// Throws Failed with what could not be done and what errno says of it.
[[noreturn]] void fail(const std::string& what);

struct Buffers {
  std::uint64_t receive;  // what to ask the kernel for
  std::uint64_t send;
};

// Bound to a port of this address that is free, never blocking, with the buffers that the kernel grants.
// Throws Failed.
Descriptor open_socket(const in_addr& address, const Buffers& buffers);
// Where it is bound. Throws Failed.
sockaddr_in name_of(const Descriptor& socket);
// What the kernel counts as its receive buffer, which is twice what was asked for. Throws Failed.
std::uint64_t receive_room(const Descriptor& socket);
// How many datagrams it had no room for.
std::uint64_t dropped(const Descriptor& socket) noexcept;

}  // namespace perflab::middleware::udp
