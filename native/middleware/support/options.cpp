#include "middleware/support/options.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace perflab::middleware::support {
namespace {

// A number followed by its unit; false if `text` does not start with a finite number.
bool split(std::string_view text, double& number, std::string_view& unit) {
  const char* const end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, number);
  if (code != std::errc{} || !std::isfinite(number)) return false;
  unit = std::string_view(rest, static_cast<std::size_t>(end - rest));
  return true;
}

struct Unit {
  std::string_view name;
  double factor;
};

std::optional<double> scaled(std::string_view text, std::span<const Unit> units) {
  double number = 0;
  std::string_view name;
  if (!split(text, number, name) || number < 0) return std::nullopt;
  const auto unit = std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.name == name; });
  if (unit == units.end()) return std::nullopt;
  const double value = number * unit->factor;
  return value < 9.2e18 ? std::optional(value) : std::nullopt;
}

}  // namespace

Options::Options(std::string_view plugin, std::span<const perflab_option> given,
                 std::initializer_list<std::string_view> known)
    : plugin_(plugin) {
  for (const perflab_option& option : given) {
    if (option.key == nullptr || option.value == nullptr) {
      throw BadInput(plugin_ + ": an option without key or value");
    }
    if (std::find(known.begin(), known.end(), option.key) == known.end()) {
      std::string text = plugin_ + ": unknown option '" + option.key + "'; known are";
      for (const std::string_view name : known) text.append(name == *known.begin() ? " " : ", ").append(name);
      throw BadInput(text);
    }
    if (!values_.emplace(option.key, option.value).second) {
      throw BadInput(plugin_ + ": option '" + option.key + "' is given twice");
    }
  }
}

void Options::refuse(std::string_view key, std::string_view would_be_right) const {
  std::string message = plugin_ + ": option '" + std::string(key) + "' is ";
  const auto found = values_.find(key);
  message += found == values_.end() ? "missing" : "'" + found->second + "'";
  throw BadInput(message + "; right would be " + std::string(would_be_right));
}

std::optional<std::string> Options::text(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::int64_t> Options::duration_ns(std::string_view key) const {
  static constexpr std::array<Unit, 4> kUnits{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  const auto given = text(key);
  if (!given) return std::nullopt;
  const auto value = scaled(*given, kUnits);
  if (!value) refuse(key, "a duration such as 500us, 2ms or 1.5s");
  return std::llround(*value);
}

std::optional<std::uint64_t> Options::bytes(std::string_view key) const {
  static constexpr std::array<Unit, 4> kUnits{{{"", 1}, {"B", 1}, {"KiB", 1024}, {"MiB", 1048576}}};
  const auto given = text(key);
  if (!given) return std::nullopt;
  const auto value = scaled(*given, kUnits);
  if (!value || *value != std::floor(*value)) refuse(key, "a number of bytes such as 65500, 64KiB or 4MiB");
  return static_cast<std::uint64_t>(*value);
}

std::optional<std::uint64_t> Options::bytes(std::string_view key, std::uint64_t least, std::uint64_t most,
                                            std::string_view range) const {
  const auto value = bytes(key);
  if (value && (*value < least || *value > most)) refuse(key, range);
  return value;
}

std::optional<bool> Options::either(std::string_view key, std::string_view yes, std::string_view no) const {
  const auto given = text(key);
  if (!given) return std::nullopt;
  if (*given != yes && *given != no) refuse(key, std::string(yes).append(" or ").append(no));
  return *given == yes;
}

std::optional<std::string> Options::xml(std::string_view key) const {
  auto given = text(key);
  if (!given || given->starts_with('<')) return given;
  std::ifstream file(*given);
  if (!file) refuse(key, "a readable file or XML that starts with '<'");
  given->assign(std::istreambuf_iterator<char>(file), {});
  given->erase(0, std::min(given->size(), given->find_first_not_of(" \t\r\n")));
  if (!given->starts_with('<')) refuse(key, "a file that holds XML");
  return given;
}

std::optional<std::uint64_t> Options::integer(std::string_view key) const {
  const auto given = text(key);
  if (!given) return std::nullopt;
  std::uint64_t value = 0;
  const char* const end = given->data() + given->size();
  const auto [rest, code] = std::from_chars(given->data(), end, value);
  if (code != std::errc{} || rest != end) refuse(key, "a whole number such as 10");
  return value;
}

std::optional<double> Options::probability(std::string_view key) const {
  const auto given = text(key);
  if (!given) return std::nullopt;
  double number = 0;
  std::string_view unit;
  if (!split(*given, number, unit) || !unit.empty() || number < 0 || number > 1) {
    refuse(key, "a probability from 0 to 1");
  }
  return number;
}

LocalSettings local_settings(std::string_view plugin, const perflab_participant_settings& given,
                             const Options& options, std::string_view reach) {
  check_domain(plugin, given.domain);
  const std::string_view network = given.network != nullptr ? given.network : "lo";
  if (network != "lo") {
    throw Unsupported(
        std::string(plugin).append(": network '").append(network).append("'; it ").append(reach) +
        ", right would be 'lo'");
  }
  return {given.domain, given.ignore_local_endpoints,
          options.duration_ns("max_blocking_time").value_or(1'000'000'000)};
}

void check_domain(std::string_view plugin, std::uint32_t domain) {
  static constexpr std::uint32_t kLargest = 232;
  if (domain <= kLargest) return;
  throw BadInput(std::string(plugin) + ": domain " + std::to_string(domain) + "; right would be 0 to " +
                 std::to_string(kLargest));
}

}  // namespace perflab::middleware::support
