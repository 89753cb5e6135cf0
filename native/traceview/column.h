// Columns and tables, laid out as Apache Arrow wants them, so that Python reads them without a copy.
//
// Nulls: what is not known or was not measured is null, never 0.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "traceview/growing_array.h"

namespace perflab::traceview {

// Fixed-width values. T is std::int32_t, std::int64_t, std::uint8_t, std::uint32_t, std::uint64_t or double.
template <typename T>
class Column {
 public:
  using Value = T;

  void push(T value) {
    if (has_nulls_) grow(true);
    values_.push_back(value);
  }
  void push_null() {
    if (!has_nulls_) begin_nulls();
    grow(false);
    values_.push_back(T{});
    ++null_count_;
  }
  void push(std::optional<T> value) { value ? push(*value) : push_null(); }

  // Replaces what is at that row.
  void set(std::size_t row, T value) {
    if (has_nulls_ && !valid(row)) {
      bits_[row / 8] = static_cast<std::uint8_t>(bits_[row / 8] | (1u << (row % 8)));
      --null_count_;
    }
    values_[row] = value;
  }

  void set_null(std::size_t row) {
    if (!valid(row)) return;
    if (!has_nulls_) begin_nulls();
    bits_[row / 8] = static_cast<std::uint8_t>(bits_[row / 8] & ~(1u << (row % 8)));
    values_[row] = T{};
    ++null_count_;
  }

  [[nodiscard]] bool valid(std::size_t row) const noexcept {
    return !has_nulls_ || ((bits_[row / 8] >> (row % 8)) & 1u) != 0;
  }
  [[nodiscard]] T operator[](std::size_t row) const noexcept { return values_[row]; }
  [[nodiscard]] std::optional<T> at(std::size_t row) const {
    return valid(row) ? std::optional<T>(values_[row]) : std::nullopt;
  }
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] std::size_t null_count() const noexcept { return null_count_; }
  [[nodiscard]] const T* data() const noexcept { return values_.data(); }
  // One bit per row, least significant first, 1 is valid; null where no row is null.
  [[nodiscard]] const std::uint8_t* validity() const noexcept { return null_count_ == 0 ? nullptr : bits_.data(); }
  void reserve(std::size_t rows) { values_.reserve(rows); }

 private:
  void begin_nulls() {
    has_nulls_ = true;
    bits_.assign((values_.size() + 7) / 8, 0xff);
  }
  void grow(bool is_valid) {
    const std::size_t row = values_.size();
    if (row % 8 == 0) bits_.push_back(0);
    const auto bit = static_cast<std::uint8_t>(1u << (row % 8));
    bits_[row / 8] = static_cast<std::uint8_t>(is_valid ? bits_[row / 8] | bit : bits_[row / 8] & ~bit);
  }

  GrowingArray<T> values_;
  GrowingArray<std::uint8_t> bits_;
  std::size_t null_count_ = 0;
  bool has_nulls_ = false;
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

// One of a few names, E is an enumeration of std::uint8_t that counts from 0; names(E{}) lists them (found by argument
// lookup) as a container of const char*.
template <typename E>
class EnumColumn {
 public:
  using Value = E;
  void push(E value) { codes_.push(static_cast<std::uint8_t>(value)); }
  void push_null() { codes_.push_null(); }
  void set(std::size_t row, E value) { codes_.set(row, static_cast<std::uint8_t>(value)); }
  [[nodiscard]] bool valid(std::size_t row) const noexcept { return codes_.valid(row); }
  [[nodiscard]] E operator[](std::size_t row) const noexcept { return static_cast<E>(codes_[row]); }
  [[nodiscard]] std::size_t size() const noexcept { return codes_.size(); }
  [[nodiscard]] const UInt8& codes() const noexcept { return codes_; }

 private:
  UInt8 codes_;
};

}  // namespace perflab::traceview
