// Instants and durations as int64 nanoseconds, and their conversion to timespec.
#pragma once

#include <time.h>

#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

namespace perflab {

using Nanoseconds = std::int64_t;

// "Not measured": the same value as PERFLAB_TIME_UNKNOWN of the plug-in interface.
inline constexpr Nanoseconds kUnknownTime = std::numeric_limits<Nanoseconds>::min();

inline constexpr Nanoseconds kNanosecondsPerSecond = 1'000'000'000;

[[nodiscard]] constexpr Nanoseconds to_nanoseconds(const timespec& time) noexcept {
  return static_cast<Nanoseconds>(time.tv_sec) * kNanosecondsPerSecond + time.tv_nsec;
}

// Precondition: `time` is not negative.
[[nodiscard]] constexpr timespec to_timespec(Nanoseconds time) noexcept {
  return {static_cast<time_t>(time / kNanosecondsPerSecond), static_cast<long>(time % kNanosecondsPerSecond)};
}

// clock_gettime(2); kUnknownTime if the clock does not exist, e.g. that of a thread that has ended.
[[nodiscard]] inline Nanoseconds read_clock(clockid_t clock) noexcept {
  timespec time{};
  return clock_gettime(clock, &time) == 0 ? to_nanoseconds(time) : kUnknownTime;
}

// The shortest exact form: 1'500'000 is "1500us", 10'000'000 "10ms".
[[nodiscard]] inline std::string duration_text(Nanoseconds duration) {
  constexpr std::array kUnits{std::pair{kNanosecondsPerSecond, "s"}, std::pair{Nanoseconds{1'000'000}, "ms"},
                              std::pair{Nanoseconds{1'000}, "us"}};
  for (const auto& [ns, name] : kUnits) {
    if (duration != 0 && duration % ns == 0) return std::to_string(duration / ns) + name;
  }
  return std::to_string(duration) + "ns";
}

}  // namespace perflab
