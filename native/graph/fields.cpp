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

void Field::require(Kind wanted) const {
  if (kind() == wanted) return;
  const bool quotable = wanted == Kind::kString && (kind() == Kind::kNumber || kind() == Kind::kBoolean);
  fail("{} must be {}, but it is {}{}", name_, name_of(wanted), name_of(kind()),
       quotable ? fmt::format("; write \"{}\" with quotes", one_line(written().substr(0, 40))) : "");
}

const std::string& Field::text() const {
  require(Kind::kString);
  return written();
}

double Field::number() const {
  require(Kind::kNumber);
  double number = 0.0;
  if (!parse_double(written(), number)) {
    fail("{} must be a decimal number, but it is {}", name_, quote(written()));
  }
  return number;
}

std::int64_t Field::integer(std::int64_t low, std::int64_t high) const {
  const double value = number();
  if (value != std::floor(value)) {
    fail("{} must be a whole number, but it is {}", name_, quote(written()));
  }
  // Bounds are far below 2^53, so that the comparison in double is exact.
  if (value < static_cast<double>(low) || value > static_cast<double>(high)) {
    fail("{} is {}; it must be from {} to {}", name_, quote(written()), low, high);
  }
  return static_cast<std::int64_t>(value);
}

bool Field::boolean() const {
  require(Kind::kBoolean);
  return written().starts_with('t') || written().starts_with('T');
}

std::vector<Field> Field::items(const std::string& name) const {
  require(Kind::kList);
  std::vector<Field> fields;
  for (const Value& item : value_->items) fields.emplace_back(*document_, item, name);
  return fields;
}

void Field::fail_word(std::string_view what, const std::vector<std::string_view>& words) const {
  const std::string_view near = closest(written(), words);
  fail("{} {} is unknown; use {}{}", what, quote(written()), list_of(words),
       near.empty() ? "" : fmt::format(" (did you mean {}?)", near));
}

Fields::Fields(const Document& document, const Value& value, std::string_view what,
               const std::vector<std::string_view>& known)
    : Field(document, value, std::string(what)) {
  require(Kind::kMapping);
  for (const Key& key : value.keys) {
    if (std::ranges::find(known, key.text) != known.end()) continue;
    const std::string_view near = closest(key.text, known);
    document.fail(key.offset, fmt::format("the {} has no key {}; {}", what, quote(key.text),
                                          near.empty() ? "it may have " + list_of(known)
                                                       : fmt::format("did you mean '{}'?", near)));
  }
}

Fields::Fields(const Field& field, std::string_view what, const std::vector<std::string_view>& known)
    : Fields(field.document(), field.value(), what, known) {}

std::optional<Field> Fields::find(std::string_view key) const {
  const Value* found = value().find(key);
  if (found == nullptr) return std::nullopt;
  return Field(document(), *found, fmt::format("'{}'", key));
}

Field Fields::at(std::string_view key) const {
  if (const auto found = find(key)) return *found;
  fail("the {} lacks the key '{}'", name(), key);
}

const std::string& Fields::text(std::string_view key) const { return at(key).text(); }

std::int64_t Fields::integer(std::string_view key, std::int64_t low, std::int64_t high,
                             std::int64_t otherwise) const {
  const auto found = find(key);
  return found ? found->integer(low, high) : otherwise;
}

std::vector<Field> Fields::list(std::string_view key) const {
  const auto found = find(key);
  return found ? found->items() : std::vector<Field>();
}

}  // namespace perflab::graph
