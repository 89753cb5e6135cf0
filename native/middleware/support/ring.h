// A queue in one block of memory that grows when needed and never shrinks: no allocation once it is warm.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

namespace perflab::middleware::support {

template <typename T>
class Ring {
 public:
  bool empty() const noexcept { return size_ == 0; }
  std::size_t size() const noexcept { return size_; }
  T& front() noexcept { return items_[first_]; }
  const T& operator[](std::size_t i) const noexcept { return items_[(first_ + i) % items_.size()]; }

  void push_back(T item) {
    if (size_ == items_.size()) grow();
    items_[(first_ + size_++) % items_.size()] = std::move(item);
  }

  void pop_front() noexcept {
    first_ = (first_ + 1) % items_.size();
    --size_;
  }

 private:
  void grow() {
    std::vector<T> larger(items_.empty() ? 16 : 2 * items_.size());
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(items_[(first_ + i) % items_.size()]);
    items_ = std::move(larger);
    first_ = 0;
  }

  std::vector<T> items_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

}  // namespace perflab::middleware::support
