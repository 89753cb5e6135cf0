// Lines over a stream socket without ever waiting: a guard that waits for a reader guards nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace perflab {

class Channel {
 public:
  // Takes the descriptor over and makes it non-blocking and close-on-exec; -1 for none.
  explicit Channel(int descriptor);

  [[nodiscard]] int descriptor() const noexcept { return socket_.number(); }
  // The other side has said all it ever will, or there is none.
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }
  // Nobody reads any more; what is sent comes to nothing.
  [[nodiscard]] bool broken() const noexcept { return broken_; }
  [[nodiscard]] std::size_t unsent() const noexcept { return outgoing_.size(); }

  // Queues one line, without its end, and sends what can be sent now.
  void send(std::string_view line);
  void flush() noexcept;
  // Takes in what is there; false if that is nothing. Throws Failed when a line gets too long.
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
