#include "middleware/udp/socket.h"

#include <linux/sock_diag.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>

#include "base/error.h"

namespace perflab::middleware::udp {
namespace {

// The kernel silently limits the size to net.core.rmem_max or wmem_max.
void ask_for(const Descriptor& socket, int which, std::uint64_t bytes) {
  const int size = static_cast<int>(std::min<std::uint64_t>(bytes, std::numeric_limits<int>::max() / 2));
  if (setsockopt(socket.number(), SOL_SOCKET, which, &size, sizeof size) != 0) fail("cannot set a buffer");
}

}  // namespace

void fail(const std::string& what) { throw Failed("udp: " + what + ": " + reason_of(errno)); }

Descriptor open_socket(const in_addr& address, const Buffers& buffers) {
  Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) fail("cannot make a socket");
  ask_for(socket, SO_RCVBUF, buffers.receive);
  ask_for(socket, SO_SNDBUF, buffers.send);
  sockaddr_in name{};
  name.sin_family = AF_INET;
  name.sin_addr = address;
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    fail(errno == EADDRINUSE ? "no port is left" : "cannot take a port");
  return socket;
}

sockaddr_in name_of(const Descriptor& socket) {
  sockaddr_in name{};
  socklen_t length = sizeof name;
  if (getsockname(socket.number(), reinterpret_cast<sockaddr*>(&name), &length) != 0)
    fail("cannot read a port");
  return name;
}

std::uint64_t receive_room(const Descriptor& socket) {
  int size = 0;
  socklen_t length = sizeof size;
  if (getsockopt(socket.number(), SOL_SOCKET, SO_RCVBUF, &size, &length) != 0) fail("cannot read a buffer");
  return static_cast<std::uint64_t>(size);
}

std::uint64_t dropped(const Descriptor& socket) noexcept {
  std::array<std::uint32_t, SK_MEMINFO_VARS> counts{};
  socklen_t length = sizeof counts;
  if (getsockopt(socket.number(), SOL_SOCKET, SO_MEMINFO, counts.data(), &length) != 0) return 0;
  return counts[SK_MEMINFO_DROPS];
}

}  // namespace perflab::middleware::udp
