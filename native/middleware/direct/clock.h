// The clocks of this plug-in.
#pragma once

#include <time.h>

#include <cstdint>

namespace perflab::middleware::direct {

inline std::int64_t read_clock(clockid_t clock) noexcept {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Lifespans, and how long a writer waits.
inline std::int64_t monotonic_ns() noexcept { return read_clock(CLOCK_MONOTONIC); }
// Source time stamps.
inline std::int64_t wall_ns() noexcept { return read_clock(CLOCK_REALTIME); }

}  // namespace perflab::middleware::direct
