#include "base/options.h"

#include <getopt.h>

#include <charconv>
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

namespace perflab {

Options& Options::flag(const char* name, bool& to) {
  entries_.push_back({name, false, [&to](std::string_view) { to = true; }});
  return *this;
}

Options& Options::text(const char* name, std::string& to) {
  return value(name, [&to](std::string_view text) { to = text; });
}

Options& Options::value(const char* name, Take take) {
  entries_.push_back({name, true, std::move(take)});
  return *this;
}

std::vector<std::string> Options::parse(int argc, char** argv) const {
  std::vector<option> known;
  for (const Entry& entry : entries_) {
    const int argument = entry.takes_value ? required_argument : no_argument;
    known.push_back({entry.name, argument, nullptr, static_cast<int>(known.size())});
  }
  known.push_back({});
  opterr = 0;  // our usage text reports the error
  std::exception_ptr wrong;
  // "+": stop at the first word that is not an option; the rest is not ours.
  for (int found = 0; (found = getopt_long(argc, argv, "+", known.data(), nullptr)) != -1;) {
    try {
      require(found != '?');
      const Entry& entry = entries_[static_cast<std::size_t>(found)];
      entry.take(entry.takes_value ? optarg : "");
    } catch (const Error&) {
      if (!wrong) wrong = std::current_exception();
    }
  }
  if (wrong) std::rethrow_exception(wrong);
  return {argv + optind, argv + argc};
}

void Options::require(bool complete) const {
  if (!complete) throw Usage(usage_);
}

template <typename Number>
Number parse_number(std::string_view option, std::string_view text, Number lowest, Number highest) {
  Number value{};
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc() && rest == text.data() + text.size() && value >= lowest && value <= highest)
    return value;
  throw BadInput("--" + std::string(option) + " " + std::string(text) + ": must be a number from " +
                 nlohmann::json(lowest).dump() + " to " + nlohmann::json(highest).dump());
}

template int parse_number(std::string_view, std::string_view, int, int);
template std::int64_t parse_number(std::string_view, std::string_view, std::int64_t, std::int64_t);
template std::size_t parse_number(std::string_view, std::string_view, std::size_t, std::size_t);
template double parse_number(std::string_view, std::string_view, double, double);

}  // namespace perflab
