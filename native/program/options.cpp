#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "graph/units.h"
#include "program/program.h"

namespace perflab::program {

using nlohmann::json;

class Options::State {
 public:
  State(const json& object, std::string where) : object_(object), where_(std::move(where)) {}

  // The value at the key, which is marked as read; null if it is absent.
  const json* find(const std::string& key) {
    known_.insert(key);
    const auto found = object_.find(key);
    return found == object_.end() || found->is_null() ? nullptr : &*found;
  }
  [[nodiscard]] std::string at(const std::string& key) const { return where_ + "." + key; }
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const { throw BadInput(at(key) + ": " + what); }
  // `right`: what would be right, e.g. "a number from 0 to 1".
  [[noreturn]] void refuse_value(const std::string& key, const json& value, const std::string& right) const {
    refuse(key, "is " + one_line(value.dump()) + "; right would be " + right);
  }

  // Converts the value at the key by `read`, which returns nothing for an invalid value.
  template <typename Value, typename Read>
  Value get(const std::string& key, std::optional<Value> otherwise, const std::string& right, const Read& read) {
    const json* const value = find(key);
    if (value == nullptr) {
      if (otherwise) return *std::move(otherwise);
      throw BadInput(where_ + ": lacks the key '" + key + "'; right would be " + right);
    }
    if (std::optional<Value> made = read(*value)) return *std::move(made);
    refuse_value(key, *value, right);
  }

  void finish() const {
    for (const auto& [key, value] : object_.items()) {
      if (known_.contains(key)) continue;
      const std::vector<std::string_view> known(known_.begin(), known_.end());
      const std::string_view near = closest(key, known);
      throw BadInput(where_ + ": has no key " + quote(key) +
                     (!near.empty()      ? "; did you mean '" + std::string(near) + "'?"
                      : known.empty()    ? "; there are no options"
                                         : "; it may have " + list_of(known)));
    }
    for (const auto& [path, nested] : nested_) nested.finish();
  }

  std::map<std::string, Options> nested_;

 private:
  const json object_;
  const std::string where_;
  std::set<std::string> known_;
};

namespace {

std::string range(const std::string& what, const std::string& lowest, const std::string& highest, bool from, bool to) {
  return what + (from && to ? " from " + lowest + " to " + highest : from ? " of at least " + lowest : to ? " of at most " + highest : "");
}

std::string text_of(double number) {
  std::string text(32, '\0');
  text.resize(static_cast<std::size_t>(std::to_chars(text.data(), text.data() + text.size(), number).ptr - text.data()));
  return text;
}

std::string numbers_from(const std::string& what, double lowest, double highest) {
  using Limits = std::numeric_limits<double>;
  return range(what, text_of(lowest), text_of(highest), lowest > Limits::lowest(), highest < Limits::max());
}

bool is_number(const json& value, double lowest, double highest) {
  return value.is_number() && value.get<double>() >= lowest && value.get<double>() <= highest;
}

}  // namespace

Options::Options(const json& object, std::string where) : state_(std::make_unique<State>(object, std::move(where))) {}
Options::~Options() = default;
Options::Options(Options&&) noexcept = default;
Options& Options::operator=(Options&&) noexcept = default;

bool Options::has(const std::string& key) const { return state_->find(key) != nullptr; }

double Options::number(const std::string& key, std::optional<double> otherwise, double lowest, double highest) {
  return state_->get<double>(key, otherwise, numbers_from("a number", lowest, highest), [&](const json& value) {
    return is_number(value, lowest, highest) ? std::optional(value.get<double>()) : std::nullopt;
  });
}

std::int64_t Options::integer(const std::string& key, std::optional<std::int64_t> otherwise, std::int64_t lowest,
                              std::int64_t highest) {
  using Limits = std::numeric_limits<std::int64_t>;
  const std::string right = range("a whole number", std::to_string(lowest), std::to_string(highest), lowest > Limits::min(),
                                  highest < Limits::max());
  return state_->get<std::int64_t>(key, otherwise, right, [&](const json& value) -> std::optional<std::int64_t> {
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() ||
                       value.get<std::uint64_t>() <= static_cast<std::uint64_t>(Limits::max()));
    if (!fits || value.get<std::int64_t>() < lowest || value.get<std::int64_t>() > highest) return std::nullopt;
    return value.get<std::int64_t>();
  });
}

bool Options::flag(const std::string& key, std::optional<bool> otherwise) {
  return state_->get<bool>(key, otherwise, "true or false", [](const json& value) {
    return value.is_boolean() ? std::optional(value.get<bool>()) : std::nullopt;
  });
}

std::string Options::text(const std::string& key, std::optional<std::string> otherwise) {
  return state_->get<std::string>(key, std::move(otherwise), "a text", [](const json& value) {
    return value.is_string() ? std::optional(value.get<std::string>()) : std::nullopt;
  });
}

std::string Options::word(const std::string& key, const std::vector<std::string>& words, std::optional<std::string> otherwise) {
  const std::string right = list_of({words.begin(), words.end()});
  return state_->get<std::string>(key, std::move(otherwise), right, [&](const json& value) {
    const bool known = value.is_string() && std::ranges::find(words, value.get<std::string>()) != words.end();
    return known ? std::optional(value.get<std::string>()) : std::nullopt;
  });
}

Nanoseconds Options::duration(const std::string& key, std::optional<Nanoseconds> otherwise, Nanoseconds lowest,
                              Nanoseconds highest) {
  const std::string right =
      range("a duration with its unit, like \"10ms\",", graph::duration_text(lowest),
            highest < std::numeric_limits<Nanoseconds>::max() ? graph::duration_text(highest) : "", lowest > 0,
            highest < std::numeric_limits<Nanoseconds>::max());
  return state_->get<Nanoseconds>(key, otherwise, right, [&](const json& value) -> std::optional<Nanoseconds> {
    if (!value.is_string()) return std::nullopt;
    try {
      const Nanoseconds duration = graph::parse_duration(value.get<std::string>());
      return duration >= lowest && duration <= highest ? std::optional(duration) : std::nullopt;
    } catch (const graph::UnitError& error) {
      state_->refuse(key, error.what());
    }
  });
}

std::vector<double> Options::numbers(const std::string& key, std::size_t count, std::optional<std::vector<double>> otherwise,
                                     double lowest, double highest) {
  const std::string right =
      "a list of " + (count > 0 ? std::to_string(count) + " " : "") + numbers_from("numbers", lowest, highest);
  return state_->get<std::vector<double>>(
      key, std::move(otherwise), right, [&](const json& value) -> std::optional<std::vector<double>> {
        const bool fits = value.is_array() && (count == 0 || value.size() == count) &&
                          std::ranges::all_of(value, [&](const json& one) { return is_number(one, lowest, highest); });
        return fits ? std::optional(value.get<std::vector<double>>()) : std::nullopt;
      });
}

std::vector<std::string> Options::texts(const std::string& key, std::optional<std::vector<std::string>> otherwise) {
  return state_->get<std::vector<std::string>>(
      key, std::move(otherwise), "a list of texts", [](const json& value) -> std::optional<std::vector<std::string>> {
        if (!value.is_array() || !std::ranges::all_of(value, &json::is_string)) return std::nullopt;
        return value.get<std::vector<std::string>>();
      });
}

Options& Options::object(const std::string& key) {
  const json* const value = state_->find(key);
  if (value != nullptr && !value->is_object()) state_->refuse_value(key, *value, "a mapping");
  return state_->nested_.try_emplace(key, value == nullptr ? json::object() : *value, state_->at(key)).first->second;
}

std::vector<Options*> Options::objects(const std::string& key) {
  std::vector<Options*> objects;
  const json* const value = state_->find(key);
  if (value == nullptr) return objects;
  if (!value->is_array() || !std::ranges::all_of(*value, &json::is_object))
    state_->refuse_value(key, *value, "a list of mappings");
  for (std::size_t i = 0; i < value->size(); ++i) {
    const std::string path = key + "[" + std::to_string(i) + "]";
    objects.push_back(&state_->nested_.try_emplace(path, (*value)[i], state_->at(path)).first->second);
  }
  return objects;
}

const json& Options::any(const std::string& key) {
  static const json kNone;
  const json* const value = state_->find(key);
  return value == nullptr ? kNone : *value;
}

void Options::refuse(const std::string& key, const std::string& what) const { state_->refuse(key, what); }

void Options::finish() const { state_->finish(); }

}  // namespace perflab::program
