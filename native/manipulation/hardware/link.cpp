#include "manipulation/hardware/link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"

namespace perflab::manipulation {
namespace {

constexpr int kPollMs = 2;  // interval at which either side looks for the other, and for a request to stop

struct Address {
  sockaddr_un socket{};
  socklen_t size = 0;
};

// In the abstract namespace: starts with a zero byte, and is not a file.
Address address_of(const std::string& name) {
  Address address;
  address.socket.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.socket.sun_path) - 1);
  std::copy_n(name.begin(), length, address.socket.sun_path + 1);
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  return address;
}

Descriptor make_socket() {
  Descriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) throw Failed("hardware link: no socket: " + reason_of(errno));
  return socket;
}

struct Packet {
  char byte = 'x';
  iovec data{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  Packet() {
    header.msg_iov = &data;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof(control);
  }
};

bool hand_over(const Descriptor& socket, Address& to, const Descriptor& file) {
  Packet packet;
  packet.header.msg_name = &to.socket;
  packet.header.msg_namelen = to.size;
  cmsghdr* const part = CMSG_FIRSTHDR(&packet.header);
  part->cmsg_level = SOL_SOCKET;
  part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof(int));
  const int number = file.number();
  std::memcpy(CMSG_DATA(part), &number, sizeof(number));
  if (::sendmsg(socket.number(), &packet.header, MSG_NOSIGNAL) == 1) return true;
  if (errno == ECONNREFUSED || errno == EAGAIN) return false;
  throw Failed("hardware link: cannot pass on its memory: " + reason_of(errno));
}

Descriptor take_over(const Descriptor& socket) {
  Packet packet;
  if (::recvmsg(socket.number(), &packet.header, MSG_CMSG_CLOEXEC) != 1) return Descriptor();
  const cmsghdr* const part = CMSG_FIRSTHDR(&packet.header);
  if (part == nullptr || part->cmsg_type != SCM_RIGHTS) return Descriptor();
  int number = -1;
  std::memcpy(&number, CMSG_DATA(part), sizeof(number));
  return Descriptor(number);
}

}  // namespace

void HardwareLink::Unmap::operator()(Memory* memory) const noexcept { munmap(memory, sizeof(Memory)); }

HardwareLink::HardwareLink(const Descriptor& file) {
  void* const memory = mmap(nullptr, sizeof(Memory), PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (memory == MAP_FAILED) throw Failed("hardware link: cannot map its memory: " + reason_of(errno));
  memory_.reset(static_cast<Memory*>(memory));
}

HardwareLink HardwareLink::offer(const std::string& name, const std::function<bool()>& stopped) {
  const Descriptor file(memfd_create("perflab_hardware", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.open() || ftruncate(file.number(), sizeof(Memory)) != 0 ||
      fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    throw Failed("hardware link: cannot make its memory: " + reason_of(errno));
  }
  const Descriptor socket = make_socket();
  Address to = address_of(name);
  while (!hand_over(socket, to, file)) {
    if (stopped()) throw Failed("hardware link: no controller manager expected it");
    poll(nullptr, 0, kPollMs);
  }
  return HardwareLink(file);
}

HardwareLink HardwareLink::expect(const std::string& name, const std::function<bool()>& stopped) {
  const Descriptor socket = make_socket();
  const Address own = address_of(name);
  if (bind(socket.number(), reinterpret_cast<const sockaddr*>(&own.socket), own.size) != 0) {
    throw Failed("hardware link: cannot wait for the hardware as " + name + ": " + reason_of(errno));
  }
  for (;;) {
    const Descriptor file = take_over(socket);
    if (file.open()) return HardwareLink(file);
    if (stopped()) throw Failed("hardware link: no hardware offered it");
    pollfd wait{socket.number(), POLLIN, 0};
    poll(&wait, 1, kPollMs);
  }
}

}  // namespace perflab::manipulation
