#include "middleware/support/letters.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <thread>
#include <type_traits>

#include "base/error.h"

namespace perflab::middleware::support {
namespace {

struct Address {
  sockaddr_un name{};
  socklen_t length;

  Address(const std::string& plugin, std::uint32_t domain, const std::string& last) {
    const std::string text =
        "perflab-" + plugin + "." + std::to_string(getuid()) + "." + std::to_string(domain) + "." + last;
    name.sun_family = AF_UNIX;
    // A leading NUL makes the name abstract: it is not a file.
    std::memcpy(name.sun_path + 1, text.data(), text.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&name); }
};

[[noreturn]] void fail(const std::string& plugin, const char* what) {
  throw Failed(plugin + ": " + what + ": " + reason_of(errno));
}

Descriptor new_socket(const std::string& plugin) {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) fail(plugin, "cannot make a socket");
  return socket;
}

// False if the name is taken.
bool bind_to(const std::string& plugin, const Descriptor& socket, const Address& address) {
  if (bind(socket.number(), address.get(), address.length) == 0) return true;
  if (errno != EADDRINUSE) fail(plugin, "cannot take a name of the domain");
  return false;
}

// Abstract names have no permissions: another user may own one, or connect to it.
bool is_of_this_user(const Descriptor& socket) {
  ucred peer{};
  socklen_t length = sizeof peer;
  return getsockopt(socket.number(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid();
}

// The arguments of sendmsg() and recvmsg(): a header, names, and space for a descriptor.
struct Envelope {
  Envelope(const Letter::Head& head, const std::string& names)
      : pieces{{{const_cast<Letter::Head*>(&head), sizeof head},
                {const_cast<char*>(names.data()), names.size()}}} {
    message.msg_iov = pieces.data();
    message.msg_iovlen = pieces.size();
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  Envelope(const Envelope&) = delete;
  Envelope& operator=(const Envelope&) = delete;

  std::array<iovec, 2> pieces;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))]{};
  msghdr message{};
};

}  // namespace

Sent send(const Descriptor& socket, const Letter& letter) {
  const std::string names = letter.topic + '\0' + letter.type + '\0' + letter.text;
  Envelope envelope(letter.head, names);
  if (letter.file.open()) {
    cmsghdr* const enclosed = CMSG_FIRSTHDR(&envelope.message);
    enclosed->cmsg_level = SOL_SOCKET;
    enclosed->cmsg_type = SCM_RIGHTS;
    enclosed->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = letter.file.number();
    std::memcpy(CMSG_DATA(enclosed), &fd, sizeof fd);
  } else {
    envelope.message.msg_controllen = 0;
  }
  if (sendmsg(socket.number(), &envelope.message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0) return Sent::yes;
  return errno == EAGAIN || errno == EINTR ? Sent::later : Sent::gone;
}

std::optional<Letter> receive(const Descriptor& socket, bool& gone) {
  static_assert(std::is_trivially_copyable_v<Letter::Head>);
  Letter letter;
  std::string names(kLongestNames + 2, '\0');
  Envelope envelope(letter.head, names);
  const ssize_t size = recvmsg(socket.number(), &envelope.message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  gone = size >= 0 || (errno != EAGAIN && errno != EINTR);
  if (size < 0) return std::nullopt;
  const cmsghdr* const enclosed = CMSG_FIRSTHDR(&envelope.message);
  if (enclosed != nullptr && enclosed->cmsg_type == SCM_RIGHTS) {
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(enclosed), sizeof fd);
    letter.file = Descriptor(fd);
  }
  constexpr auto kHead = static_cast<ssize_t>(sizeof(Letter::Head));
  const bool is_cut = (envelope.message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0;
  if (size <= kHead || is_cut || letter.head.magic != kMagic) return std::nullopt;
  names.resize(static_cast<std::size_t>(size - kHead));
  const std::size_t type = names.find('\0') + 1;
  const std::size_t text = names.find('\0', type) + 1;
  if (type == 0 || text == 0) return std::nullopt;
  letter.topic = names.substr(0, type - 1);
  letter.type = names.substr(type, text - 1 - type);
  letter.text = names.substr(text);
  gone = false;
  return letter;
}

Seat take_seat(const std::string& plugin, std::uint32_t domain) {
  using namespace std::chrono_literals;
  // Held while connecting to all participants, some milliseconds, but never while waiting for another.
  const Descriptor joining = new_socket(plugin);
  while (!bind_to(plugin, joining, Address(plugin, domain, "join"))) std::this_thread::sleep_for(1ms);
  Seat seat;
  seat.number = -1;
  for (int number = 0; number < kSeats; ++number) {
    const Address address(plugin, domain, std::to_string(number));
    Descriptor socket = new_socket(plugin);
    if (connect(socket.number(), address.get(), address.length) == 0) {
      if (is_of_this_user(socket)) seat.others.push_back(std::move(socket));
    } else if (seat.number < 0 && bind_to(plugin, socket, address)) {
      if (listen(socket.number(), kSeats) != 0) fail(plugin, "cannot listen");
      seat.listener = std::move(socket);
      seat.number = number;
    }
  }
  if (seat.number < 0) {
    throw Failed(plugin + ": domain " + std::to_string(domain) + " has " + std::to_string(kSeats) +
                 " participants already, which is the maximum");
  }
  return seat;
}

Descriptor accept_connection(const Descriptor& listener) {
  for (;;) {
    Descriptor socket(accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open() || is_of_this_user(socket)) return socket;
  }
}

}  // namespace perflab::middleware::support
