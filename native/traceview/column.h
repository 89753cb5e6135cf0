// Columns and tables, laid out as Apache Arrow wants them, so that Python reads them without a copy.
//
// Nulls: what is not known or was not measured is null, never 0.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "traceview/growing_array.h"

namespace perflab::traceview {

inline constexpr std::int32_t kNone = -1;  // no row

// A row number as an index.
[[nodiscard]] constexpr std::size_t at(std::int32_t row) noexcept { return static_cast<std::size_t>(row); }
[[nodiscard]] constexpr std::optional<std::int32_t> row_or_null(std::int32_t row) noexcept {
  return row < 0 ? std::nullopt : std::optional(row);
}
[[nodiscard]] inline std::optional<std::string> text_or_null(const std::string& text) {
  return text.empty() ? std::nullopt : std::optional(text);
}

// Fixed-width values. T is std::int32_t, std::int64_t, std::uint8_t, std::uint32_t, std::uint64_t or double.
//
// Of a column whose values nobody will read it is known how many rows there are and which of them are null, or, where nobody
// will ask for that either, how many rows there are.
enum class Kept : std::uint8_t { rows, nulls, values };

// What to keep of a column, given the wanted names: "takes.match" keeps its values, "takes.match?" only its nulls.
[[nodiscard]] inline Kept wanted_of(const std::set<std::string, std::less<>>& wanted, std::string_view table,
                                    std::string_view column) {
  const std::string name = std::string(table).append(".").append(column);
  return wanted.contains(name) ? Kept::values : wanted.contains(name + "?") ? Kept::nulls : Kept::rows;
}

template <typename T>
class Column {
 public:
  using Value = T;

  [[gnu::always_inline]] void push(T value) {
    if (!tells_nulls()) return;
    if (has_nulls_) grow(true);
    append(value);
  }
  [[gnu::always_inline]] void push_null() {
    if (!tells_nulls()) return;
    if (!has_nulls_) [[unlikely]] begin_nulls();
    grow(false);
    append(T{});
    ++null_count_;
  }
  [[gnu::always_inline]] void push(std::optional<T> value) { value ? push(*value) : push_null(); }

  // Replaces what is at that row.
  [[gnu::always_inline]] void set(std::size_t row, T value) {
    if (has_nulls_ && !valid(row)) {
      bits_[row / 8] = static_cast<std::uint8_t>(bits_[row / 8] | (1u << (row % 8)));
      --null_count_;
    }
    if (kept()) values_[row] = value;
  }

  void set_null(std::size_t row) {
    if (!tells_nulls() || !valid(row)) return;
    if (!has_nulls_) begin_nulls();
    bits_[row / 8] = static_cast<std::uint8_t>(bits_[row / 8] & ~(1u << (row % 8)));
    if (kept()) values_[row] = T{};
    ++null_count_;
  }
  // To be said before the first row.
  void keep(Kept what) noexcept { kept_ = what; }
  [[nodiscard]] bool kept() const noexcept { return kept_ == Kept::values; }
  [[nodiscard]] bool tells_nulls() const noexcept { return kept_ != Kept::rows; }
  // How many rows there are, of which a column that keeps nothing of them knows nothing.
  void settle(std::size_t rows) noexcept {
    if (!tells_nulls()) counted_ = rows;
  }

  [[nodiscard]] bool valid(std::size_t row) const noexcept {
    return !has_nulls_ || ((bits_[row / 8] >> (row % 8)) & 1u) != 0;
  }
  [[nodiscard]] T operator[](std::size_t row) const noexcept { return values_[row]; }
  [[nodiscard]] std::optional<T> at(std::size_t row) const {
    return valid(row) ? std::optional<T>(values_[row]) : std::nullopt;
  }
  [[nodiscard]] std::size_t size() const noexcept { return kept() ? values_.size() : counted_; }
  [[nodiscard]] std::size_t null_count() const noexcept { return null_count_; }
  [[nodiscard]] const T* data() const noexcept { return values_.data(); }
  // One bit per row, least significant first, 1 is valid; null where no row is null.
  [[nodiscard]] const std::uint8_t* validity() const noexcept {
    return null_count_ == 0 ? nullptr : bits_.data();
  }
  void reserve(std::size_t rows) { values_.reserve(rows); }

 private:
  [[gnu::always_inline]] void append(T value) {
    if (kept()) {
      values_.push_back(value);
    } else {
      ++counted_;
    }
  }
  [[gnu::noinline]] void begin_nulls() {
    has_nulls_ = true;
    const std::size_t rows = size();
    bits_.assign((rows + 7) / 8, 0xff);
    if (rows % 8 != 0) bits_[rows / 8] = static_cast<std::uint8_t>((1u << (rows % 8)) - 1);
  }
  // Bits behind the last row are 0.
  [[gnu::always_inline]] void grow(bool is_valid) {
    const std::size_t row = size();
    if (row % 8 == 0) bits_.push_back(0);
    if (is_valid) bits_[row / 8] = static_cast<std::uint8_t>(bits_[row / 8] | (1u << (row % 8)));
  }

  GrowingArray<T> values_;
  GrowingArray<std::uint8_t> bits_;
  std::size_t null_count_ = 0;
  std::size_t counted_ = 0;  // rows whose values are not kept
  bool has_nulls_ = false;
  Kept kept_ = Kept::values;
};

using Int32 = Column<std::int32_t>;
using Int64 = Column<std::int64_t>;
using UInt8 = Column<std::uint8_t>;
using UInt32 = Column<std::uint32_t>;
using UInt64 = Column<std::uint64_t>;

// Text. For tables of few rows: objects, not instances.
class TextColumn {
 public:
  void push(std::string_view value) {
    present_.push(1);
    bytes_.append(value);
    offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
  }
  void push_null() {
    present_.push_null();
    offsets_.push_back(static_cast<std::int64_t>(bytes_.size()));
  }
  void push(const std::optional<std::string>& value) { value ? push(std::string_view(*value)) : push_null(); }
  [[nodiscard]] static constexpr bool kept() noexcept { return true; }
  [[nodiscard]] std::size_t size() const noexcept { return offsets_.size() - 1; }
  [[nodiscard]] std::size_t null_count() const noexcept { return present_.null_count(); }
  [[nodiscard]] const std::int64_t* offsets() const noexcept { return offsets_.data(); }
  [[nodiscard]] const char* data() const noexcept { return bytes_.data(); }
  [[nodiscard]] const std::uint8_t* validity() const noexcept { return present_.validity(); }
  [[nodiscard]] bool valid(std::size_t row) const noexcept { return present_.valid(row); }
  [[nodiscard]] std::string_view operator[](std::size_t row) const noexcept {
    return std::string_view(bytes_).substr(static_cast<std::size_t>(offsets_[row]),
                                           static_cast<std::size_t>(offsets_[row + 1] - offsets_[row]));
  }

 private:
  std::string bytes_;
  std::vector<std::int64_t> offsets_{0};
  UInt8 present_;
};

// One of a few names, E is an enumeration of std::uint8_t that counts from 0; names(E{}) lists them (found by
// argument lookup) as a container of const char*.
template <typename E>
class EnumColumn {
 public:
  using Value = E;
  void push(E value) { codes_.push(static_cast<std::uint8_t>(value)); }
  void push_null() { codes_.push_null(); }
  void push(std::optional<E> value) { value ? push(*value) : push_null(); }
  void set(std::size_t row, E value) { codes_.set(row, static_cast<std::uint8_t>(value)); }
  void keep(Kept what) noexcept { codes_.keep(what); }
  void settle(std::size_t rows) noexcept { codes_.settle(rows); }
  [[nodiscard]] bool kept() const noexcept { return codes_.kept(); }
  [[nodiscard]] bool valid(std::size_t row) const noexcept { return codes_.valid(row); }
  [[nodiscard]] E operator[](std::size_t row) const noexcept { return static_cast<E>(codes_[row]); }
  [[nodiscard]] std::size_t size() const noexcept { return codes_.size(); }
  [[nodiscard]] const UInt8& codes() const noexcept { return codes_; }

 private:
  UInt8 codes_;
};

// Declares the columns of a table, in their order.
#define PERFLAB_COLUMNS(...)                         \
  auto all() { return std::tie(__VA_ARGS__); }       \
  auto all() const { return std::tie(__VA_ARGS__); } \
  static constexpr std::string_view column_names() { return #__VA_ARGS__; }

// Those of them that making the table does not read again, and of those it reads only whether they are null: their values are
// needed by nobody but who asks for them.
#define PERFLAB_ONLY_WRITTEN(...) \
  static constexpr std::string_view only_written() { return #__VA_ARGS__; }
#define PERFLAB_ONLY_NULLS_READ(...) \
  static constexpr std::string_view only_nulls_read() { return #__VA_ARGS__; }

// What tables can do, which derive from it and name their columns by PERFLAB_COLUMNS.
template <typename Derived>
struct Table {
  // visitor(name, column) for each column, in order.
  template <typename Visitor>
  void columns(Visitor&& visitor) const {
    std::string_view rest = Derived::column_names();
    const auto visit = [&](const auto& column) { visitor(std::string(first_of(rest)).c_str(), column); };
    std::apply([&](const auto&... column) { (visit(column), ...); },
               static_cast<const Derived&>(*this).all());
  }

  // Keeps of each column what is wanted(name), and what making the table reads again. To be said before the first row.
  template <typename Wanted>
  void keep(Wanted&& wanted) {
    std::string_view rest = Derived::column_names();
    const auto keep = [&](auto& column) {
      const std::string_view name = first_of(rest);
      const Kept read = is_one_of(Derived::only_written(), name)      ? Kept::rows
                        : is_one_of(Derived::only_nulls_read(), name) ? Kept::nulls
                                                                      : Kept::values;
      column.keep(std::max<Kept>(read, wanted(name)));
    };
    std::apply([&](auto&... column) { (keep(column), ...); }, static_cast<Derived&>(*this).all());
  }

  // Adds a row: a value for each column, std::nullopt where it is null.
  template <typename... Values>
  [[gnu::always_inline]] void push(const Values&... values) {
    const auto columns = static_cast<Derived&>(*this).all();
    static_assert(sizeof...(Values) == std::tuple_size_v<decltype(columns)>);
    const auto push_all = [&]<std::size_t... i>(std::index_sequence<i...>) {
      (std::get<i>(columns).push(values), ...);
    };
    push_all(std::index_sequence_for<Values...>{});
    ++pushed_;
  }
  // How many rows were added so.
  [[nodiscard]] std::int32_t pushed() const noexcept { return static_cast<std::int32_t>(pushed_); }
  // To be said after the last row.
  void settle() {
    std::apply([this](auto&... column) { (column.settle(pushed_), ...); }, static_cast<Derived&>(*this).all());
  }
  [[nodiscard]] std::size_t rows() const {
    return std::get<0>(static_cast<const Derived&>(*this).all()).size();
  }

 private:
  static bool is_one_of(std::string_view names, std::string_view name) {
    while (!names.empty()) {
      if (first_of(names) == name) return true;
    }
    return false;
  }
  // Takes the first of names that stand between commas.
  static std::string_view first_of(std::string_view& names) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 2));  // ", "
    return name;
  }

  std::size_t pushed_ = 0;
};

}  // namespace perflab::traceview
