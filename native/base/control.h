// The control channel to perflab: JSON lines over a stream socket (docs/formats.md, section 3).
#pragma once

#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/channel.h"
#include "base/time.h"

namespace perflab {

class Control {
 public:
  static constexpr std::size_t kMostOthers = 3;
  static constexpr Nanoseconds kForever = std::numeric_limits<Nanoseconds>::max();

  // Takes ownership of the descriptor; -1: no channel, the program runs on its own.
  explicit Control(int descriptor) : channel_(descriptor) {}
  // Waits until perflab has read everything, or has gone.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  [[nodiscard]] bool attached() const noexcept { return channel_.descriptor() >= 0; }
  // True once perflab has gone and all its messages have been received: the program has no reason to
  // continue.
  [[nodiscard]] bool closed() const noexcept {
    return attached() && (channel_.at_end() || channel_.broken()) && !channel_.has_line();
  }

  // Never blocks: data that does not fit into the socket now is kept and sent by later calls.
  void send(const nlohmann::json& message);
  // Sends a message that a later one supersedes: dropped while earlier messages are still queued.
  void send_replaceable(const nlohmann::json& message);
  // Returns the next message; waits at most `timeout_ns`. Returns null on timeout, if the channel is closed,
  // or if one of `others` (at most kMostOthers descriptors) becomes readable first. Throws Failed if a line
  // is not JSON.
  std::optional<nlohmann::json> receive(Nanoseconds timeout_ns, std::initializer_list<int> others = {});

 private:
  Channel channel_;
};

}  // namespace perflab
