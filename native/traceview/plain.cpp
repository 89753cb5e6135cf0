#include "traceview/plain.h"

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "traceview/arrow.h"

namespace perflab::traceview {
namespace {

using Json = nlohmann::json;
using Type = PlainColumn::Type;

constexpr std::size_t kChunk = 1024;                      // rows processed together; they stay in the cache
constexpr std::size_t kMostGroups = std::size_t{1} << 24U;  // limit of possible groups

template <typename T>
const T* values_of(const PlainColumn& column) {
  return static_cast<const T*>(column.values);
}

Json value_at(const PlainColumn& column, std::size_t row) {
  if (!column.valid(row)) return nullptr;
  switch (column.type) {
    case Type::int32:
      return values_of<std::int32_t>(column)[row];
    case Type::int64:
      return values_of<std::int64_t>(column)[row];
    case Type::uint32:
      return values_of<std::uint32_t>(column)[row];
    case Type::uint64:
      return values_of<std::uint64_t>(column)[row];
    case Type::flag:
      return values_of<std::uint8_t>(column)[row] != 0;
    case Type::name:
      return column.names[values_of<std::uint8_t>(column)[row]];
    default:
      return as_utf8((*column.text)[row]);
  }
}

class Counting {
 public:
  Counting(std::span<const PlainColumn> columns, const CountQuestion& question)
      : columns_(columns), question_(question), rows_(columns.empty() ? 0 : columns.front().rows) {
    std::size_t groups = 1;
    for (const std::string& name : question.by) {
      const PlainColumn& column = with_values(name);
      if (column.type != Type::int32 && column.type != Type::name)
        throw std::invalid_argument("rows cannot be grouped by the column " + name);
      keys_.push_back({&column, groups, size_of(column)});
      if (keys_.back().size > kMostGroups / groups) throw std::invalid_argument("too many groups to count");
      groups *= keys_.back().size;
    }
    n_.resize(groups);
    for (const auto& names : question.counted) {
      auto& together = counted_.emplace_back();
      for (const std::string& name : names) {
        const PlainColumn& column = find(name);
        if (!column.tells_nulls) throw std::invalid_argument("the column " + name + " is not kept");
        if (column.validity != nullptr) together.columns.push_back(&column);
      }
      together.n.resize(groups);
    }
    for (const std::string& name : question.least) least_.push_back({&instant(name), Values(groups, kNever)});
    for (const std::string& name : question.instants) instants_.push_back(&instant(name));
  }

  std::string run() {
    for (std::size_t first = 0; first < rows_; first += kChunk) add(first, std::min(kChunk, rows_ - first));
    Json json = Json::array();
    for (const std::size_t group : in_order()) {
      Json row = Json::array();
      for (const Key& key : keys_) row.push_back(value_of(key, group / key.factor % key.size));
      row.push_back(n_[group]);
      for (const Counted& counted : counted_) row.push_back(counted.n[group]);
      for (const Least& least : least_) row.push_back(least.values[group] == kNever ? Json(nullptr) : Json(least.values[group]));
      json.push_back(std::move(row));
    }
    return json.dump();
  }

 private:
  using Values = std::vector<std::int64_t>;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Key {
    const PlainColumn* column;
    std::size_t factor, size;  // size: number of possible values, including null
  };
  struct Counted {
    std::vector<const PlainColumn*> columns{};  // those with nulls
    std::vector<std::uint64_t> n{};
  };
  struct Least {
    const PlainColumn* column;
    Values values;
  };

  const PlainColumn& find(const std::string& name) const {
    const auto found = std::ranges::find(columns_, name, &PlainColumn::name);
    if (found == columns_.end()) throw std::invalid_argument("table " + question_.table + " has no column " + name);
    return *found;
  }
  const PlainColumn& with_values(const std::string& name) const {
    const PlainColumn& column = find(name);
    if (column.values == nullptr && column.rows != 0) throw std::invalid_argument("the column " + name + " is not kept");
    return column;
  }
  const PlainColumn& instant(const std::string& name) const {
    const PlainColumn& column = with_values(name);
    if (column.type != Type::int64) throw std::invalid_argument("the column " + name + " is no instant");
    return column;
  }

  // The code of a value is the value plus 1; the code of null is 0.
  static std::size_t size_of(const PlainColumn& column) {
    if (column.type == Type::name) return column.names.size() + 1;
    std::int32_t most = -1;
    for (std::size_t row = 0; row < column.rows; ++row) most = std::max(most, values_of<std::int32_t>(column)[row]);
    return static_cast<std::size_t>(most) + 2;
  }
  static Json value_of(const Key& key, std::size_t code) {
    if (code == 0) return nullptr;
    return key.column->type == Type::name ? Json(key.column->names[code - 1]) : Json(code - 1);
  }

  // Sorted by the values of the columns, the first column first.
  [[nodiscard]] std::vector<std::size_t> in_order() const {
    std::vector<std::size_t> groups;
    for (std::size_t group = 0; group < n_.size(); ++group) {
      if (n_[group] != 0) groups.push_back(group);
    }
    std::ranges::stable_sort(groups, [this](std::size_t a, std::size_t b) {
      for (const Key& key : keys_) {
        const std::size_t of_a = a / key.factor % key.size, of_b = b / key.factor % key.size;
        if (of_a != of_b) return of_a < of_b;
      }
      return false;
    });
    return groups;
  }

  void add(std::size_t first, std::size_t count) {
    std::array<std::uint32_t, kChunk> groups{};
    for (const Key& key : keys_) {
      if (key.column->type == Type::name) {
        add_codes(groups, key, values_of<std::uint8_t>(*key.column), first, count);
      } else {
        add_codes(groups, key, values_of<std::int32_t>(*key.column), first, count);
      }
    }
    std::array<std::uint32_t, kChunk> rows;
    count = choose(rows, groups, first, count);
    for (std::size_t i = 0; i < count; ++i) ++n_[groups[i]];
    for (Counted& counted : counted_) {
      for (std::size_t i = 0; i < count; ++i) {
        std::uint64_t all = 1;
        for (const PlainColumn* column : counted.columns) all &= static_cast<std::uint64_t>(column->valid(first + rows[i]));
        counted.n[groups[i]] += all;
      }
    }
    for (Least& least : least_) {
      for (std::size_t i = 0; i < count; ++i) {
        std::int64_t& value = least.values[groups[i]];
        value = std::min(value, time_at(*least.column, first + rows[i]));
      }
    }
  }

  template <typename T>
  static void add_codes(std::array<std::uint32_t, kChunk>& groups, const Key& key, const T* values, std::size_t first,
                        std::size_t count) {
    const auto factor = static_cast<std::uint32_t>(key.factor);
    if (key.column->validity == nullptr) {
      for (std::size_t i = 0; i < count; ++i) groups[i] += factor * (static_cast<std::uint32_t>(values[first + i]) + 1);
      return;
    }
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint32_t code = key.column->valid(first + i) ? static_cast<std::uint32_t>(values[first + i]) + 1 : 0;
      groups[i] += factor * code;
    }
  }

  static std::int64_t time_at(const PlainColumn& column, std::size_t row) {
    return column.valid(row) ? values_of<std::int64_t>(column)[row] : kNever;
  }

  // Selects the chunk's rows that are counted, with their groups; returns their number.
  std::size_t choose(std::array<std::uint32_t, kChunk>& rows, std::array<std::uint32_t, kChunk>& groups, std::size_t first,
                     std::size_t count) const {
    const bool all = !question_.begin_ns && !question_.end_ns;
    const std::int64_t begin = question_.begin_ns.value_or(std::numeric_limits<std::int64_t>::min());
    const std::int64_t end = question_.end_ns.value_or(kNever);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
      std::int64_t earliest = kNever;
      if (!all) {
        for (const PlainColumn* column : instants_) earliest = std::min(earliest, time_at(*column, first + i));
      }
      if (!all && (earliest == kNever || earliest < begin || earliest >= end)) continue;
      rows[kept] = static_cast<std::uint32_t>(i);
      groups[kept++] = groups[i];
    }
    return kept;
  }

  std::span<const PlainColumn> columns_;
  const CountQuestion& question_;
  std::size_t rows_;
  std::vector<Key> keys_;
  std::vector<std::uint64_t> n_;
  std::vector<Counted> counted_;
  std::vector<Least> least_;
  std::vector<const PlainColumn*> instants_;
};

}  // namespace

std::string rows_json(std::span<const PlainColumn> columns) {
  Json json = Json::object();
  for (const PlainColumn& column : columns) {
    if (column.values == nullptr && column.text == nullptr && column.rows != 0) continue;
    Json& values = json[column.name] = Json::array();
    for (std::size_t row = 0; row < column.rows; ++row) values.push_back(value_at(column, row));
  }
  return json.dump();
}

CountQuestion parse_count(std::string_view text) {
  CountQuestion question;
  try {
    const Json json = Json::parse(text);
    question.table = json.at("table").get<std::string>();
    question.by = json.value("by", question.by);
    question.counted = json.value("counted", question.counted);
    question.least = json.value("least", question.least);
    question.instants = json.value("instants", question.instants);
    for (const auto& [key, bound] : {std::pair{"begin_ns", &question.begin_ns}, {"end_ns", &question.end_ns}}) {
      if (const auto found = json.find(key); found != json.end() && !found->is_null()) *bound = found->get<std::int64_t>();
    }
  } catch (const Json::exception& error) {
    throw std::invalid_argument(std::string("what to count: ") + error.what());
  }
  return question;
}

std::string count_json(std::span<const PlainColumn> columns, const CountQuestion& question) {
  return Counting(columns, question).run();
}

}  // namespace perflab::traceview
