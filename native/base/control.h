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

  // Takes the descriptor over; -1 for none (the program then runs by itself).
  explicit Control(int descriptor) : channel_(descriptor) {}
  // Waits until the other side has taken everything, or is gone.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  [[nodiscard]] bool attached() const noexcept { return channel_.descriptor() >= 0; }
  // True once the other side is gone and all that it said was received: the program then has nobody to run for.
  [[nodiscard]] bool closed() const noexcept {
    return attached() && (channel_.at_end() || channel_.broken()) && !channel_.has_line();
  }

  // Never waits: what the other side does not take now is kept, and goes out with later calls.
  void send(const nlohmann::json& message);
  // The same for a message that a later one replaces: left out while older ones are not taken.
  void send_replaceable(const nlohmann::json& message);
  // The next message, waiting at most that long; null if none came, if the channel was closed, or if one of
  // `others`, at most kMostOthers descriptors, became readable first. Throws Failed where a line is no JSON.
  std::optional<nlohmann::json> receive(Nanoseconds timeout_ns, std::initializer_list<int> others = {});

 private:
  Channel channel_;
};

}  // namespace perflab
