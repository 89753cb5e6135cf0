// Converts between ROS messages and the types of the arm's libraries. Templates, because each program has its own generated
// messages.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "base/time.h"

namespace perflab::manipulation {

// builtin_interfaces/Time and Duration.
template <typename Stamp>
void write_stamp(Nanoseconds time_ns, Stamp& stamp) noexcept {
  stamp.sec = static_cast<std::int32_t>(time_ns / kNanosecondsPerSecond);
  stamp.nanosec = static_cast<std::uint32_t>(time_ns % kNanosecondsPerSecond);
}
template <typename Stamp>
[[nodiscard]] Nanoseconds read_stamp(const Stamp& stamp) noexcept {
  return static_cast<Nanoseconds>(stamp.sec) * kNanosecondsPerSecond + static_cast<Nanoseconds>(stamp.nanosec);
}

template <typename Numbers>
void write_numbers(std::span<const double> from, Numbers& to) {
  if (to.size() != from.size()) to.resize(from.size());
  for (std::size_t each = 0; each < from.size(); ++each) to[each] = from[each];
}

}  // namespace perflab::manipulation
