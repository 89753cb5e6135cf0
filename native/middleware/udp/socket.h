// UDP sockets on one address.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>

#include "base/descriptor.h"

namespace perflab::middleware::udp {

// Throws Failed with the failed action and the text for errno.
[[noreturn]] void fail(const std::string& what);

struct Buffers {
  std::uint64_t receive;  // size to request from the kernel
  std::uint64_t send;
};

// Bound to a free port of this address, non-blocking, with the buffers that the kernel grants. Throws Failed.
Descriptor open_socket(const in_addr& address, const Buffers& buffers);
// The address it is bound to. Throws Failed.
sockaddr_in name_of(const Descriptor& socket);
// Size of its receive buffer as the kernel counts it, twice the requested size. Throws Failed.
std::uint64_t receive_room(const Descriptor& socket);
// Number of datagrams dropped because it was full.
std::uint64_t dropped(const Descriptor& socket) noexcept;

}  // namespace perflab::middleware::udp
