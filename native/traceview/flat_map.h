// A hash table from 64-bit keys to row numbers: open addressing, no allocation per entry, no erasure.
#pragma once

#include <cstdint>
#include <utility>

#include "traceview/column.h"
#include "traceview/growing_array.h"

namespace perflab::traceview {

class FlatMap {
 public:
  [[nodiscard]] std::int32_t find(std::uint64_t key) const noexcept {
    if (cells_.size() == 0) return kNone;
    for (std::size_t i = hash(key) & mask_;; i = (i + 1) & mask_) {
      if (cells_[i].row == kNone || cells_[i].key == key) return cells_[i].row;
    }
  }

  // Sets the row of the key, whether it exists or not. `row` is not negative.
  void set(std::uint64_t key, std::int32_t row) {
    if (2 * (size_ + 1) > cells_.size()) resize(cells_.size() == 0 ? 16 : 2 * cells_.size());
    Cell& cell = place(key);
    if (cell.row == kNone) ++size_;
    cell = {key, row};
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // visitor(key, row) for every entry, in any order.
  template <typename Visitor>
  void for_each(Visitor&& visitor) const {
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (cells_[i].row != kNone) visitor(cells_[i].key, cells_[i].row);
    }
  }

 private:
  struct Cell {
    std::uint64_t key = 0;
    std::int32_t row = kNone;
  };

  // Handles are addresses and time stamps, whose low bits are similar; the high bits of the product are well
  // mixed.
  static std::size_t hash(std::uint64_t key) noexcept {
    key ^= key >> 32;
    key *= 0x9e3779b97f4a7c15u;
    return static_cast<std::size_t>(key ^ (key >> 29));
  }
  Cell& place(std::uint64_t key) noexcept {
    for (std::size_t i = hash(key) & mask_;; i = (i + 1) & mask_) {
      if (cells_[i].row == kNone || cells_[i].key == key) return cells_[i];
    }
  }
  void resize(std::size_t cells) {
    GrowingArray<Cell> old;
    old.assign(cells, Cell{});
    std::swap(old, cells_);
    mask_ = cells - 1;
    for (std::size_t i = 0; i < old.size(); ++i) {
      if (old[i].row != kNone) place(old[i].key) = old[i];
    }
  }

  GrowingArray<Cell> cells_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace perflab::traceview
