// Non-blocking lines over a stream socket. The guard uses it: it must never wait for a reader.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace perflab {

class Channel {
 public:
  // Takes ownership of the descriptor and makes it non-blocking and close-on-exec; -1: no channel.
  explicit Channel(int descriptor);

  [[nodiscard]] int descriptor() const noexcept { return socket_.number(); }
  // The peer has closed its sending side, or there is no channel.
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }
  // The peer no longer reads; data sent is discarded.
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] std::size_t unsent() const noexcept { return outgoing_.size(); }

  // Queues one line, given without its newline, and sends as much as possible without blocking.
  void send(std::string_view line);
  void flush() noexcept;
  // Reads what is available; false if there is nothing. Throws Failed if a line is too long.
  bool read();
  [[nodiscard]] bool has_line() const noexcept { return incoming_.find('\n') != std::string::npos; }
  std::optional<std::string> next_line();

 private:
  Descriptor socket_;
  bool at_end_;
  bool broken_ = false;
  std::string incoming_;
  std::string outgoing_;
};

}  // namespace perflab
