#include "graph/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "graph/text.h"

namespace perflab::graph {
namespace {

constexpr std::string_view kDurationForm = "write a number and its unit, like 10ms (ns, us, ms or s)";

struct Quantity {
  std::string_view whole;
  std::string_view fraction;  // digits after the point; empty if there is none
  std::string_view unit;
};

std::string_view take_digits(std::string_view& text) {
  std::size_t n = 0;
  while (n < text.size() && is_digit(text[n])) ++n;
  const std::string_view digits = text.substr(0, n);
  text.remove_prefix(n);
  return digits;
}

// Splits "1.5ms"; throws if the text does not have that form.
Quantity split(std::string_view text, std::string_view form) {
  const std::string_view all = text;
  if (text.starts_with('-')) throw UnitError(fmt::format("{} is negative; {}", quote(all), form));
  Quantity quantity;
  quantity.whole = take_digits(text);
  if (text.starts_with('.')) {
    text.remove_prefix(1);
    quantity.fraction = take_digits(text);
    if (quantity.fraction.empty()) throw UnitError(fmt::format("{} is not a number; {}", quote(all), form));
  }
  if (quantity.whole.empty()) throw UnitError(fmt::format("{} is not a number; {}", quote(all), form));
  quantity.unit = text;
  return quantity;
}

// Removes leading zeros of the whole part and trailing zeros of the fraction.
Quantity trimmed(Quantity quantity) {
  while (quantity.whole.starts_with('0')) quantity.whole.remove_prefix(1);
  while (quantity.fraction.ends_with('0')) quantity.fraction.remove_suffix(1);
  return quantity;
}

struct DurationUnit {
  std::string_view name;
  std::size_t decimals;  // decimals of a nanosecond
};
constexpr std::array kDurationUnits{DurationUnit{"ns", 0}, DurationUnit{"us", 3}, DurationUnit{"ms", 6},
                                    DurationUnit{"s", 9}};

struct SizeUnit {
  std::string_view name;
  std::uint64_t bytes;
};
constexpr std::array kSizeUnits{SizeUnit{"B", 1}, SizeUnit{"kB", 1'000}, SizeUnit{"KiB", 1'024},
                                SizeUnit{"MB", 1'000'000}, SizeUnit{"MiB", 1'048'576}};

template <typename Units>
const typename Units::value_type* find_unit(const Units& units, std::string_view name) {
  for (const auto& unit : units) {
    if (unit.name == name) return &unit;
  }
  return nullptr;
}

}  // namespace

Nanoseconds parse_duration(std::string_view text) {
  const Quantity quantity = trimmed(split(text, kDurationForm));
  if (quantity.unit.empty()) {
    throw UnitError(fmt::format("{} has no unit; write {}ms if milliseconds are meant (ns, us, ms or s)",
                                quote(text), one_line(text.substr(0, 20))));
  }
  const DurationUnit* unit = find_unit(kDurationUnits, quantity.unit);
  if (unit == nullptr) {
    throw UnitError(fmt::format("unit {} is unknown; use ns, us, ms or s", quote(quantity.unit)));
  }
  if (quantity.fraction.size() > unit->decimals) {
    throw UnitError(fmt::format("{} is finer than 1ns; durations are whole nanoseconds", quote(text)));
  }
  std::string digits(quantity.whole);
  digits.append(quantity.fraction).append(unit->decimals - quantity.fraction.size(), '0');
  Nanoseconds value = 0;
  const bool fits =
      digits.size() <= 18 && std::from_chars(digits.data(), digits.data() + digits.size(), value).ec !=
                                 std::errc::result_out_of_range;
  if (!fits || value > kLongestDuration) {
    throw UnitError(fmt::format("{} is too long; durations are at most one day (86400s)", quote(text)));
  }
  return value;
}

double parse_frequency(std::string_view text) {
  constexpr std::string_view kForm = "write a frequency like 64Hz (Hz or kHz)";
  const Quantity quantity = split(text, kForm);
  const bool kilo = quantity.unit == "kHz";
  if (!kilo && quantity.unit != "Hz") {
    throw UnitError(fmt::format("{} is not a frequency; {}", quote(text), kForm));
  }
  double value = 0.0;
  const char* end = text.data() + text.size() - quantity.unit.size();
  if (std::from_chars(text.data(), end, value).ec != std::errc{}) {
    throw UnitError(fmt::format("{} is out of range; {}", quote(text), kForm));
  }
  return kilo ? value * 1'000.0 : value;
}

Nanoseconds period_of(double frequency_hz) {
  constexpr std::string_view kRange = "use more than 0.0000115Hz (one day) and at most 1000kHz (1us)";
  if (!std::isfinite(frequency_hz) || frequency_hz <= 0.0) {
    throw UnitError(fmt::format("{} Hz is not a frequency; {}", frequency_hz, kRange));
  }
  const double period = 1e9 / frequency_hz;
  if (period < static_cast<double>(kShortestPeriod) || period > static_cast<double>(kLongestDuration)) {
    throw UnitError(fmt::format("{} Hz is out of range; {}", frequency_hz, kRange));
  }
  return std::llround(period);
}

std::uint32_t parse_size(std::string_view text) {
  constexpr std::string_view kForm = "write whole bytes, or a size like 10kB (B, kB, KiB, MB or MiB)";
  const Quantity quantity = trimmed(split(text, kForm));
  const SizeUnit* unit = find_unit(kSizeUnits, quantity.unit.empty() ? "B" : quantity.unit);
  if (unit == nullptr || text.find('.') != std::string_view::npos) {
    throw UnitError(fmt::format("{} is not a size; {}", quote(text), kForm));
  }
  std::uint64_t value = 0;
  const bool fits = quantity.whole.size() <= 10;
  std::from_chars(quantity.whole.data(), quantity.whole.data() + quantity.whole.size(), value);
  if (!fits || value * unit->bytes > std::numeric_limits<std::uint32_t>::max()) {
    throw UnitError(fmt::format("{} is too large; at most 64MiB", quote(text)));
  }
  return static_cast<std::uint32_t>(value * unit->bytes);
}

std::vector<int> parse_cpus(std::string_view text) {
  const auto fail = [&] {
    throw UnitError(
        fmt::format("{} is not a list of CPUs; write numbers and ranges like 0-2,5", quote(text)));
  };
  const auto number = [&](std::string_view digits) {
    int value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value);
    if (digits.empty() || stop != end || !is_digit(digits.front()) ||
        (error != std::errc{} && error != std::errc::result_out_of_range)) {
      fail();
    }
    if (error != std::errc{} || value > kHighestCpu) {
      throw UnitError(fmt::format("{} names a CPU above {}; CPUs are from 0 to {}", quote(text), kHighestCpu,
                                  kHighestCpu));
    }
    return value;
  };
  std::vector<int> cpus;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    more = comma != std::string_view::npos;
    if (more) rest.remove_prefix(comma + 1);
    const std::size_t dash = item.find('-');
    const int first = number(item.substr(0, dash));
    const int last = dash == std::string_view::npos ? first : number(item.substr(dash + 1));
    if (last < first) {
      throw UnitError(fmt::format("range {} is reversed; write {}-{}", quote(item), last, first));
    }
    // A range is no longer than the number of CPUs, but a text can have many ranges.
    if (cpus.size() + static_cast<std::size_t>(last - first) > kHighestCpu) {
      throw UnitError(fmt::format("{} names a CPU twice; name it once", quote(text)));
    }
    for (int cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
  }
  return ordered_cpus(std::move(cpus));
}

std::vector<int> ordered_cpus(std::vector<int> cpus) {
  std::ranges::sort(cpus);
  if (!cpus.empty() && (cpus.front() < 0 || cpus.back() > kHighestCpu)) {
    const int wrong = cpus.front() < 0 ? cpus.front() : cpus.back();
    throw UnitError(fmt::format("CPU {} is out of range; CPUs are from 0 to {}", wrong, kHighestCpu));
  }
  if (const auto twice = std::ranges::adjacent_find(cpus); twice != cpus.end()) {
    throw UnitError(fmt::format("CPU {} is named twice; name it once", *twice));
  }
  return cpus;
}

}  // namespace perflab::graph
