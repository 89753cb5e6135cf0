// The control channel to perflab: JSON lines over a stream socket (docs/formats.md, section 3).
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "measure/clock.h"

namespace perflab::control {

class Control {
 public:
  // Takes the descriptor over; -1 for none (the node then runs by itself).
  explicit Control(int descriptor);
  // Waits until the other side has taken everything, or is gone.
  ~Control();
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

  [[nodiscard]] bool attached() const noexcept { return descriptor_ >= 0; }
  // True once the other side is gone: the node then has nobody to run for.
  [[nodiscard]] bool closed() const noexcept { return closed_; }
  // To wait for it together with other things; then receive(0) until nothing comes.
  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }

  // Never waits: what the other side does not take now is kept, and goes out with later calls.
  void send(const nlohmann::json& message);
  // The same for a message that a later one replaces: left out while older ones are not taken.
  void send_replaceable(const nlohmann::json& message);
  // The next message, waiting at most that long; null if none came, or if the channel was closed.
  std::optional<nlohmann::json> receive(Nanoseconds timeout_ns);

 private:
  std::optional<nlohmann::json> next_line();
  void hand_over() noexcept;  // of outgoing_, as much as is taken

  int descriptor_;
  bool closed_ = false;
  std::string buffer_;
  std::string outgoing_;
};

}  // namespace perflab::control
