#include "base/control.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>

#include "base/error.h"

namespace perflab {
namespace {

using nlohmann::json;

json parse(const std::string& line) {
  try {
    return json::parse(line);
  } catch (const json::exception& error) {
    throw Failed(std::string("control channel: ") + error.what());
  }
}

}  // namespace

Control::~Control() {
  if (!attached()) return;
  for (channel_.flush(); channel_.unsent() > 0 && !closed(); channel_.flush()) {
    pollfd waiting{channel_.descriptor(), POLLOUT, 0};
    poll(&waiting, 1, -1);
  }
}

void Control::send(const json& message) {
  // Names of files and threads, and messages that contain them, may not be valid UTF-8.
  channel_.send(message.dump(-1, ' ', false, json::error_handler_t::replace));
}

void Control::send_replaceable(const json& message) {
  channel_.flush();
  if (channel_.unsent() == 0) send(message);
}

std::optional<json> Control::receive(Nanoseconds timeout_ns, std::initializer_list<int> others) {
  const Nanoseconds begin = read_clock(CLOCK_MONOTONIC);
  const Nanoseconds deadline = timeout_ns > kForever - begin ? kForever : begin + timeout_ns;
  std::array<pollfd, 1 + kMostOthers>
      waiting{};  // poll(2) ignores a descriptor of -1 (no channel)
  nfds_t count = 1;
  for (const int other : others) waiting.at(count++) = {other, POLLIN, 0};
  while (true) {
    if (const auto line = channel_.next_line()) return parse(*line);
    if (closed()) return std::nullopt;
    channel_.flush();
    waiting[0] = {channel_.descriptor(),
                  static_cast<short>(channel_.unsent() > 0 ? POLLIN | POLLOUT : POLLIN), 0};
    const timespec left = to_timespec(std::max<Nanoseconds>(0, deadline - read_clock(CLOCK_MONOTONIC)));
    const int ready = ppoll(waiting.data(), count, &left, nullptr);
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) throw Failed("poll: " + reason_of(errno));
    if ((waiting[0].revents & ~POLLOUT) != 0) {
      channel_.read();
    } else if ((waiting[0].revents & POLLOUT) == 0) {
      return std::nullopt;
    }
  }
}

}  // namespace perflab
