// Bounded waiting.
#pragma once

#include <chrono>
#include <thread>

namespace perflab::conformance {

using namespace std::chrono_literals;

// Long enough for a machine that does other things as well; only a failing test waits that long.
inline constexpr auto kPatience = 30s;

template <typename Condition>
bool eventually(Condition&& condition, std::chrono::milliseconds patience = kPatience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::sleep_for(1ms);
  }
  return true;
}

}  // namespace perflab::conformance
