#include "middleware/sim/wire.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "middleware/sim/clock.h"
#include "middleware/support/status.h"

namespace perflab::middleware::sim {
namespace {

using support::StatusError;

// Deep enough for every slot to connect at once.
constexpr int kBacklog = 2 * kSlots;
// Asked for, so that a message of usual size is under way without the sender waiting; the kernel grants what
// it may.
constexpr int kSendBuffer = 1 << 20;

struct Address {
  sockaddr_un name{};
  socklen_t length;
};

Address slot_address(std::uint32_t domain, int slot) {
  const std::string text =
      "perflab-sim." + std::to_string(getuid()) + "." + std::to_string(domain) + "." + std::to_string(slot);
  Address address;
  address.name.sun_family = AF_UNIX;
  // A leading NUL makes the name abstract: it is not a file.
  std::memcpy(address.name.sun_path + 1, text.data(), text.size());
  address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  return address;
}

Descriptor new_socket() {
  Descriptor fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd)
    throw StatusError(PERFLAB_FAILED, std::string("sim: cannot make a socket: ") + std::strerror(errno));
  return fd;
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd_ >= 0) ::close(fd_);
}

Frame make_frame(FrameKind kind, const perflab_identity& writer, const perflab_identity& reader) {
  return {.magic = kMagic,
          .kind = kind,
          .payload_size = 0,
          .writer = writer,
          .reader = reader,
          .sequence = 0,
          .sent_ns = 0,
          .source_ns = 0};
}

std::vector<std::uint8_t> encode(const Announcement& announcement) {
  static_assert(std::is_trivially_copyable_v<perflab_qos>);
  std::vector<std::uint8_t> payload(sizeof(perflab_qos) + announcement.topic.size() + 1 +
                                    announcement.type.size());
  std::memcpy(payload.data(), &announcement.qos, sizeof(perflab_qos));
  std::uint8_t* to = payload.data() + sizeof(perflab_qos);
  to = std::copy(announcement.topic.begin(), announcement.topic.end(), to);
  *to++ = 0;
  std::copy(announcement.type.begin(), announcement.type.end(), to);
  return payload;
}

std::optional<Announcement> decode(std::span<const std::uint8_t> payload) {
  if (payload.size() < sizeof(perflab_qos)) return std::nullopt;
  Announcement announcement;
  std::memcpy(&announcement.qos, payload.data(), sizeof(perflab_qos));
  const auto names = payload.subspan(sizeof(perflab_qos));
  const auto end = std::find(names.begin(), names.end(), std::uint8_t{0});
  if (end == names.end()) return std::nullopt;
  announcement.topic.assign(names.begin(), end);
  announcement.type.assign(end + 1, names.end());
  return announcement;
}

std::pair<Descriptor, int> listen_on_free_slot(std::uint32_t domain) {
  for (int slot = 0; slot < kSlots; ++slot) {
    Descriptor fd = new_socket();
    const Address address = slot_address(domain, slot);
    if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) == 0) {
      if (listen(fd.get(), kBacklog) != 0) break;
      return {std::move(fd), slot};
    }
    if (errno != EADDRINUSE) break;
  }
  throw StatusError(PERFLAB_FAILED, "sim: no free slot among " + std::to_string(kSlots) + " in domain " +
                                        std::to_string(domain) + ": " + std::strerror(errno));
}

Descriptor connect_to_slot(std::uint32_t domain, int slot) {
  Descriptor fd = new_socket();
  const Address address = slot_address(domain, slot);
  if (connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.name), address.length) != 0) return {};
  setsockopt(fd.get(), SOL_SOCKET, SO_SNDBUF, &kSendBuffer, sizeof kSendBuffer);
  return fd;
}

Descriptor accept_connection(int listener) {
  for (;;) {
    Descriptor fd(accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return fd;
    ucred peer{};
    socklen_t length = sizeof peer;
    // Abstract names have no permissions: another user could connect.
    if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == getuid()) return fd;
  }
}

bool Connection::wait_for_room(std::int64_t patience_ns) noexcept {
  const std::int64_t until =
      patience_ns > INT64_MAX - monotonic_ns() ? INT64_MAX : monotonic_ns() + patience_ns;
  for (;;) {
    const std::int64_t left = until - monotonic_ns();
    if (left <= 0) return false;
    pollfd wanted{.fd = socket_.get(), .events = POLLOUT, .revents = 0};
    // Rounded up, so that the last millisecond is not spun away.
    const auto milliseconds = static_cast<int>(std::min<std::int64_t>(left / 1'000'000 + 1, 1000));
    if (poll(&wanted, 1, milliseconds) > 0) return true;
  }
}

Connection::Result Connection::send(Frame frame, std::span<const perflab_bytes> parts,
                                    std::int64_t patience_ns) noexcept {
  std::array<iovec, kMostParts + 1> pieces;
  pieces[0] = {.iov_base = &frame, .iov_len = sizeof frame};
  for (std::size_t i = 0; i < parts.size(); ++i) {
    pieces[i + 1] = {.iov_base = const_cast<void*>(parts[i].data), .iov_len = parts[i].size};
    frame.payload_size += parts[i].size;
  }
  msghdr message{};
  message.msg_iov = pieces.data();
  message.msg_iovlen = parts.size() + 1;

  const std::lock_guard lock(mutex_);
  bool begun = false;
  while (!gone_ && message.msg_iovlen > 0) {
    const ssize_t count = sendmsg(socket_.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN) {
        if (wait_for_room(begun ? kStall_ns : patience_ns)) continue;
        if (!begun) return Result::full;
      }
      gone_ = true;
      break;
    }
    begun = true;
    // Step over what has been sent.
    auto sent = static_cast<std::size_t>(count);
    while (message.msg_iovlen > 0 && sent >= message.msg_iov->iov_len) {
      sent -= message.msg_iov->iov_len;
      ++message.msg_iov;
      --message.msg_iovlen;
    }
    if (message.msg_iovlen > 0) {
      message.msg_iov->iov_base = static_cast<std::uint8_t*>(message.msg_iov->iov_base) + sent;
      message.msg_iov->iov_len -= sent;
    }
  }
  // The other end sees the end of the stream and gives this participant up as well.
  if (gone_) shutdown(socket_.get(), SHUT_RDWR);
  return gone_ ? Result::gone : Result::sent;
}

Connection::Result Connection::send(const Frame& frame, std::span<const std::uint8_t> payload) noexcept {
  const perflab_bytes part{payload.data(), payload.size()};
  return send(frame, {&part, payload.empty() ? std::size_t{0} : std::size_t{1}}, kStall_ns);
}

}  // namespace perflab::middleware::sim
