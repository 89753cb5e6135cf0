// What a fuzz target demands beyond the absence of crashes.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/text.h"

namespace perflab::fuzz {

inline void require(bool condition, std::string_view what) {
  if (condition) return;
  std::fprintf(stderr, "violated: %.*s\n", static_cast<int>(what.size()), what.data());
  std::abort();
}

// Rejections are one line of bounded length, in UTF-8.
inline void require_one_line(std::string_view text) {
  require(!text.empty(), "a rejection says something");
  require(text.find_first_of("\n\r") == std::string_view::npos, "a rejection is one line");
  require(find_invalid_utf8(text) == std::string_view::npos, "a rejection is UTF-8");
  require(text.size() < 4096, "a rejection is short");
}

}  // namespace perflab::fuzz
