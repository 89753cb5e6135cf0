// An outgoing message as the parts passed to a middleware's write().
#pragma once

#include <array>
#include <cstddef>
#include <span>

#include "message/header.h"
#include "middleware/middleware.h"
#include "runtime/runtime.h"

namespace perflab::runtime {

class Parts {
 public:
  // `framing` is inserted after the encapsulation header; it may be empty.
  explicit Parts(const Outgoing& message, std::span<const std::uint8_t> framing = {}) noexcept {
    if (framing.empty()) {
      add(message.before);
      add(message.stamp);
      add(message.after);
      return;
    }
    std::size_t header = message::kEncapsulationBytes;
    for (const std::span<const std::uint8_t> piece : {message.before, message.stamp, message.after}) {
      if (header > 0 && piece.size() >= header) {
        add(piece.first(header));
        add(framing);
        add(piece.subspan(header));
        header = 0;
      } else {
        add(piece);
      }
    }
  }

  [[nodiscard]] std::span<const perflab_bytes> span() const noexcept { return {parts_.data(), count_}; }

 private:
  void add(std::span<const std::uint8_t> piece) noexcept {
    if (!piece.empty()) parts_[count_++] = {piece.data(), piece.size()};
  }

  std::array<perflab_bytes, 5> parts_;  // only the first count_ are used
  std::size_t count_ = 0;
};

}  // namespace perflab::runtime
