#include "programs/control/control.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <thread>

#include "runtime/runtime.h"

namespace perflab::control {

using nlohmann::json;

Control::Control(int descriptor) : descriptor_(descriptor) {}

Control::~Control() {
  if (!attached()) return;
  for (hand_over(); !outgoing_.empty() && !closed_; hand_over()) {
    pollfd waiting{descriptor_, POLLOUT, 0};
    poll(&waiting, 1, -1);
  }
  close(descriptor_);
}

void Control::send(const json& message) {
  if (!attached() || closed_) return;
  outgoing_ += message.dump();
  outgoing_ += '\n';
  hand_over();
}

void Control::send_replaceable(const json& message) {
  hand_over();
  if (outgoing_.empty()) send(message);
}

void Control::hand_over() noexcept {
  std::size_t done = 0;
  while (done < outgoing_.size() && !closed_) {
    const ssize_t wrote =
        ::send(descriptor_, outgoing_.data() + done, outgoing_.size() - done, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (wrote >= 0) {
      done += static_cast<std::size_t>(wrote);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      closed_ = true;
    }
  }
  outgoing_.erase(0, done);
}

std::optional<json> Control::next_line() {
  const std::size_t end = buffer_.find('\n');
  if (end == std::string::npos) return std::nullopt;
  const std::string line = buffer_.substr(0, end);
  buffer_.erase(0, end + 1);
  try {
    return json::parse(line);
  } catch (const json::exception& error) {
    throw runtime::Error(runtime::Error::Kind::kFailed, std::string("control channel: ") + error.what());
  }
}

std::optional<json> Control::receive(Nanoseconds timeout_ns) {
  const measure::MonotonicClock clock;
  const Nanoseconds deadline = clock.now() + timeout_ns;
  if (!attached()) {
    std::this_thread::sleep_for(std::chrono::nanoseconds(timeout_ns));
    return std::nullopt;
  }
  while (true) {
    if (auto message = next_line()) return message;
    if (closed_) return std::nullopt;
    const Nanoseconds left = std::max<Nanoseconds>(0, deadline - clock.now());
    hand_over();
    pollfd waiting{descriptor_, static_cast<short>(outgoing_.empty() ? POLLIN : POLLIN | POLLOUT), 0};
    const timespec timeout{static_cast<time_t>(left / kNanosecondsPerSecond),
                           static_cast<long>(left % kNanosecondsPerSecond)};
    const int ready = ppoll(&waiting, 1, &timeout, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (ready <= 0) return std::nullopt;
    if ((waiting.revents & ~POLLOUT) == 0) continue;
    std::array<char, 65536> chunk;
    const ssize_t got = recv(descriptor_, chunk.data(), chunk.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) {
      closed_ = true;
      return std::nullopt;
    }
    buffer_.append(chunk.data(), static_cast<std::size_t>(got));
  }
}

}  // namespace perflab::control
