#include "graph/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace perflab::graph {
namespace {

bool parse_double(std::string_view text, double& number) {
  if (text.starts_with('+')) text.remove_prefix(1);
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end == text.data() + text.size() && std::isfinite(number);
}

}  // namespace

void require_kind(const Document& document, const Value& value, Kind kind, std::string_view what) {
  if (value.kind == kind) return;
  const bool quotable =
      kind == Kind::kString && (value.kind == Kind::kNumber || value.kind == Kind::kBoolean);
  document.fail(
      value.offset,
      fmt::format(
          "{} must be {}, but here is {}{}", what, name_of(kind), name_of(value.kind),
          quotable ? fmt::format("; write \"{}\" with quotes", one_line(value.text.substr(0, 40))) : ""));
}

const std::string& text_of(const Document& document, const Value& value, std::string_view what) {
  require_kind(document, value, Kind::kString, what);
  return value.text;
}

double number_of(const Document& document, const Value& value, std::string_view what) {
  require_kind(document, value, Kind::kNumber, what);
  double number = 0.0;
  if (!parse_double(value.text, number)) {
    document.fail(value.offset,
                  fmt::format("{} must be a decimal number, but here is {}", what, quote(value.text)));
  }
  return number;
}

std::int64_t integer_of(const Document& document, const Value& value, std::string_view what, std::int64_t low,
                        std::int64_t high) {
  const double number = number_of(document, value, what);
  if (number != std::floor(number)) {
    document.fail(value.offset,
                  fmt::format("{} must be a whole number, but here is {}", what, quote(value.text)));
  }
  // Bounds are far below 2^53, so that the comparison in double is exact.
  if (number < static_cast<double>(low) || number > static_cast<double>(high)) {
    document.fail(value.offset,
                  fmt::format("{} is {}; it must be from {} to {}", what, quote(value.text), low, high));
  }
  return static_cast<std::int64_t>(number);
}

bool boolean_of(const Document& document, const Value& value, std::string_view what) {
  require_kind(document, value, Kind::kBoolean, what);
  return value.text.starts_with('t') || value.text.starts_with('T');
}

void fail_word(const Document& document, const Value& value, std::string_view what,
               const std::vector<std::string_view>& words) {
  const std::string_view near = closest(value.text, words);
  document.fail(value.offset,
                fmt::format("{} {} is unknown; use {}{}", what, quote(value.text), list_of(words),
                            near.empty() ? "" : fmt::format(" (did you mean {}?)", near)));
}

Fields::Fields(const Document& document, const Value& value, std::string_view what,
               std::vector<std::string_view> known)
    : document_(document), value_(value), what_(what) {
  require_kind(document, value, Kind::kMapping, what);
  for (const Key& key : value.keys) {
    if (std::ranges::find(known, key.text) != known.end()) continue;
    const std::string_view near = closest(key.text, known);
    document.fail(key.offset, fmt::format("the {} has no key {}; {}", what, quote(key.text),
                                          near.empty() ? "it may have " + list_of(known)
                                                       : fmt::format("did you mean '{}'?", near)));
  }
}

const Value& Fields::at(std::string_view key) const {
  const Value* value = find(key);
  if (value == nullptr) document_.fail(value_.offset, fmt::format("the {} misses the key '{}'", what_, key));
  return *value;
}

const std::string& Fields::text(std::string_view key) const {
  return text_of(document_, at(key), fmt::format("'{}'", key));
}

const std::vector<Value>& Fields::list(std::string_view key) const {
  static const std::vector<Value> kNone;
  const Value* value = find(key);
  if (value == nullptr) return kNone;
  require_kind(document_, *value, Kind::kList, fmt::format("'{}'", key));
  return value->items;
}

}  // namespace perflab::graph
