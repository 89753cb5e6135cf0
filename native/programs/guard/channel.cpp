#include "programs/guard/channel.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <stdexcept>

namespace perflab::guard {
namespace {

constexpr std::size_t kMaxLine = 64u << 20;
// Reads per call, so that a side that never stops talking cannot keep the guard from its other duties.
constexpr int kMaxReads = 16;

}  // namespace

Channel::Channel(int descriptor) : descriptor_(descriptor), at_end_(descriptor < 0) {
  if (descriptor_ < 0) return;
  fcntl(descriptor_, F_SETFD, FD_CLOEXEC);
  fcntl(descriptor_, F_SETFL, fcntl(descriptor_, F_GETFL) | O_NONBLOCK);
}

Channel::~Channel() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Channel::send(const std::string& line) {
  if (descriptor_ < 0 || broken_) return;
  outgoing_ += line;
  outgoing_ += '\n';
  flush();
}

void Channel::flush() {
  std::size_t done = 0;
  while (done < outgoing_.size()) {
    const ssize_t sent = ::send(descriptor_, outgoing_.data() + done, outgoing_.size() - done, MSG_NOSIGNAL);
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
    const ssize_t got = recv(descriptor_, chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      at_end_ = true;
      break;
    }
    incoming_.append(chunk.data(), static_cast<std::size_t>(got));
  }
  if (incoming_.size() > kMaxLine && incoming_.find('\n') == std::string::npos)
    throw std::runtime_error("a line of more than 64 MiB");
  return incoming_.size() > before;
}

std::optional<std::string> Channel::next_line() {
  const std::size_t end = incoming_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  std::string line = incoming_.substr(0, end);
  incoming_.erase(0, end + 1);
  return line;
}

}  // namespace perflab::guard
