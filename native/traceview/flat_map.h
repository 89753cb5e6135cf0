// A hash table from 64-bit keys to row numbers: open addressing, no allocation per entry, nothing is ever erased.
#pragma once

#include <cstdint>
#include <vector>

namespace perflab::traceview {

class FlatMap {
 public:
  static constexpr std::int32_t kNone = -1;

  [[nodiscard]] std::int32_t find(std::uint64_t key) const noexcept {
    if (cells_.empty()) return kNone;
    for (std::size_t i = hash(key) & mask_;; i = (i + 1) & mask_) {
      if (cells_[i].row == kNone || cells_[i].key == key) return cells_[i].row;
    }
  }

  // Sets the row of that key, which may be there already. `row` is not negative.
  void set(std::uint64_t key, std::int32_t row) {
    if (2 * (size_ + 1) > cells_.size()) grow();
    Cell& cell = place(key);
    if (cell.row == kNone) ++size_;
    cell = {key, row};
  }

  void reserve(std::size_t entries) {
    while (2 * (entries + 1) > cells_.size()) grow();
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // visitor(key, row) for every entry, in no order.
  template <typename Visitor>
  void for_each(Visitor&& visitor) const {
    for (const Cell& cell : cells_) {
      if (cell.row != kNone) visitor(cell.key, cell.row);
    }
  }

 private:
  struct Cell {
    std::uint64_t key = 0;
    std::int32_t row = kNone;
  };

  // Handles are addresses and time stamps, whose low bits are alike; the high bits of the product are well mixed.
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
  void grow() {
    std::vector<Cell> old(cells_.empty() ? 16 : cells_.size() * 2);
    old.swap(cells_);
    mask_ = cells_.size() - 1;
    for (const Cell& cell : old) {
      if (cell.row != kNone) place(cell.key) = cell;
    }
  }

  std::vector<Cell> cells_;
  std::size_t mask_ = 0;
  std::size_t size_ = 0;
};

}  // namespace perflab::traceview
