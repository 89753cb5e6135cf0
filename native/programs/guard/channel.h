// Lines over a stream socket without ever waiting: a guard that waits for a reader guards nothing.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

namespace perflab::guard {

class Channel {
 public:
  // Takes the descriptor over and makes it non-blocking and close-on-exec; -1 for none.
  explicit Channel(int descriptor);
  ~Channel();
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;

  [[nodiscard]] int descriptor() const noexcept { return descriptor_; }
  // The other side has said all it ever will, or there is none.
  [[nodiscard]] bool at_end() const noexcept { return at_end_; }
  [[nodiscard]] std::size_t unsent() const noexcept { return outgoing_.size(); }

  // Queues one line, without its end, and sends what can be sent now.
  void send(const std::string& line);
  void flush();
  // Takes in what is there; false if that is nothing. Throws std::runtime_error when a line gets too long.
  bool read();
  std::optional<std::string> next_line();

 private:
  int descriptor_;
  bool at_end_;
  bool broken_ = false;  // nobody reads any more
  std::string incoming_;
  std::string outgoing_;
};

}  // namespace perflab::guard
