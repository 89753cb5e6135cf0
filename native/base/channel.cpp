#include "base/channel.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

#include "base/error.h"

namespace perflab {
namespace {

constexpr std::size_t kMaxLine = 64u << 20;
// Maximum reads per call, so that a peer that sends without pause cannot keep the guard from its other work.
constexpr int kMaxReads = 16;

}  // namespace

Channel::Channel(int descriptor) : socket_(descriptor), at_end_(descriptor < 0) {
  if (at_end_) return;
  fcntl(descriptor, F_SETFD, FD_CLOEXEC);
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

void Channel::send(std::string_view line) {
  if (!socket_.open() || broken_) return;
  outgoing_ += line;
  outgoing_ += '\n';
  flush();
}

void Channel::flush() noexcept {
  std::size_t done = 0;
  while (done < outgoing_.size()) {
    const ssize_t sent =
        ::send(socket_.number(), outgoing_.data() + done, outgoing_.size() - done, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0) {
      if (errno != EAGAIN) {
        broken_ = true;
        done = outgoing_.size();
      }
      break;
    }
    done += static_cast<std::size_t>(sent);
  }
  outgoing_.erase(0, done);
}

bool Channel::read() {
  const std::size_t before = incoming_.size();
  std::array<char, 65536> chunk;
  for (int reads = 0; reads < kMaxReads && !at_end_; ++reads) {
    const ssize_t got = recv(socket_.number(), chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      at_end_ = true;
      break;
    }
    incoming_.append(chunk.data(), static_cast<std::size_t>(got));
  }
  if (incoming_.size() > kMaxLine && incoming_.find('\n') == std::string::npos)
    throw Failed("a line is longer than 64 MiB");
  return incoming_.size() > before;
}

std::optional<std::string> Channel::next_line() {
  const std::size_t end = incoming_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = incoming_.substr(0, end);
  incoming_.erase(0, end + 1);
  return line;
}

}  // namespace perflab
