// Tables as JSON, and counts of their rows by group, for commands that need no data frames.
//
// Example:
//   rows_json(columns_of(view->hosts()))                                          {"name": ["robot"]}
//   count_json(columns_of(takes), parse_count(R"({"table": "takes", "by": ["match"]})"))   [["matched", 7], ["not_taken", 2]]
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traceview/column.h"

namespace perflab::traceview {

// A column of any type. `values` is null if they are not kept; see Column.
struct PlainColumn {
  enum class Type : std::uint8_t { int32, int64, uint32, uint64, flag, name, text };

  std::string name;
  Type type = Type::int64;
  std::size_t rows = 0;
  const void* values = nullptr;
  const std::uint8_t* validity = nullptr;  // null if no row is null
  bool tells_nulls = true;
  std::span<const char* const> names{};  // of Type::name, by its code
  const TextColumn* text = nullptr;

  [[nodiscard]] bool valid(std::size_t row) const noexcept {
    return validity == nullptr || ((validity[row / 8] >> (row % 8)) & 1u) != 0;
  }
};

[[nodiscard]] constexpr PlainColumn::Type plain_type(std::int32_t) { return PlainColumn::Type::int32; }
[[nodiscard]] constexpr PlainColumn::Type plain_type(std::int64_t) { return PlainColumn::Type::int64; }
[[nodiscard]] constexpr PlainColumn::Type plain_type(std::uint32_t) { return PlainColumn::Type::uint32; }
[[nodiscard]] constexpr PlainColumn::Type plain_type(std::uint64_t) { return PlainColumn::Type::uint64; }
[[nodiscard]] constexpr PlainColumn::Type plain_type(std::uint8_t) { return PlainColumn::Type::flag; }

template <typename T>
[[nodiscard]] PlainColumn plain(const char* name, const Column<T>& column) {
  return {.name = name,
          .type = plain_type(T{}),
          .rows = column.size(),
          .values = column.kept() ? column.data() : nullptr,
          .validity = column.validity(),
          .tells_nulls = column.tells_nulls()};
}
template <typename E>
[[nodiscard]] PlainColumn plain(const char* name, const EnumColumn<E>& column) {
  static constexpr auto kNames = names(E{});
  PlainColumn result = plain(name, column.codes());
  result.type = PlainColumn::Type::name;
  result.names = kNames;
  return result;
}
[[nodiscard]] inline PlainColumn plain(const char* name, const TextColumn& column) {
  return {.name = name,
          .type = PlainColumn::Type::text,
          .rows = column.size(),
          .validity = column.validity(),
          .text = &column};
}

template <typename Table>
[[nodiscard]] std::vector<PlainColumn> plain_columns(const Table& table) {
  std::vector<PlainColumn> columns;
  table.columns([&](const char* name, const auto& column) { columns.push_back(plain(name, column)); });
  return columns;
}

// A JSON object: the list of values of each kept column by its name.
[[nodiscard]] std::string rows_json(std::span<const PlainColumn> columns);

// A query that counts the rows of a table by group.
struct CountQuestion {
  std::string table;
  std::vector<std::string> by;                    // columns with equal values in a group; empty: one group of all rows
  std::vector<std::vector<std::string>> counted;  // for each: count the rows in which none of these columns is null
  std::vector<std::string> least;                 // for each: the column's minimum
  // Only rows whose earliest instant in these columns is in [begin_ns, end_ns); rows without an instant are omitted.
  std::vector<std::string> instants;
  std::optional<std::int64_t> begin_ns, end_ns;
};

// {"table": "takes", "by": ["subscription", "match"], "counted": [["callback_instance"]], "least": ["rmw_ns"],
//  "instants": ["rmw_ns"], "begin_ns": 5, "end_ns": null}; only the table is mandatory. Throws std::invalid_argument.
[[nodiscard]] CountQuestion parse_count(std::string_view json);

// A list of the groups that have rows: the values of `by`, the number of rows, then the results of `counted` and of
// `least`. Groups are sorted by their values, null first. Throws std::invalid_argument if a column does not exist or is
// not kept.
[[nodiscard]] std::string count_json(std::span<const PlainColumn> columns, const CountQuestion& question);

}  // namespace perflab::traceview
