// Quantities as people write them in graph files.
//
// Example:
//   parse_duration("1.5ms");  // 1'500'000 ns
//   parse_duration("10");     // throws: the unit is missing
//   parse_size("10kB");       // 10'000 bytes
//
// Each function throws UnitError, whose text says what would be right, but not the place.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/time.h"
#include "graph/model.h"

namespace perflab::graph {

class UnitError : public BadInput {
 public:
  using BadInput::BadInput;
};

// For depths, ids and indexes.
inline constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();
inline constexpr Nanoseconds kShortestPeriod = 1'000;                // 1 us
inline constexpr Nanoseconds kLongestDuration = 86'400'000'000'000;  // 1 day

// A decimal number and ns, us, ms or s: "250ns", "0us", "1.5s". Exact; a fraction of a nanosecond is
// refused. From 0 to one day.
Nanoseconds parse_duration(std::string_view text);

// The exact inverse.
using perflab::duration_text;

// A decimal number and Hz or kHz: "64Hz". Hertz.
double parse_frequency(std::string_view text);

// The period of a frequency in hertz, rounded to the nearest nanosecond: 15 Hz is 66'666'667 ns.
// From kShortestPeriod to kLongestDuration.
Nanoseconds period_of(double frequency_hz);

// A whole number and B, kB, KiB, MB or MiB: "10kB" is 10'000, "1KiB" 1'024. At most 2^32 - 1 bytes.
std::uint32_t parse_size(std::string_view text);

inline constexpr int kHighestCpu = 1'023;

// CPU numbers and ranges as in taskset(1): "0-2,5" is 0, 1, 2 and 5. In ascending order.
std::vector<int> parse_cpus(std::string_view text);

// Sorts CPU numbers; refuses numbers out of range and duplicates.
std::vector<int> ordered_cpus(std::vector<int> cpus);

}  // namespace perflab::graph
