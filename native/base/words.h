// Numbers as text for messages.
#pragma once

#include <string>

#include "base/time.h"

namespace perflab {

// In whole milliseconds: "1234 ms".
[[nodiscard]] inline std::string milliseconds_text(Nanoseconds duration) {
  return std::to_string(duration / 1'000'000) + " ms";
}

}  // namespace perflab
