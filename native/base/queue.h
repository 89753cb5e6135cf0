// Queues in one reused block of memory (ring buffers).
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>
#include <vector>

namespace perflab {

// Allocates only when its capacity is raised.
template <typename T>
class BoundedQueue {
 public:
  // Makes room for `capacity` values; keeps queued ones.
  void reserve(std::size_t capacity) {
    if (capacity <= places_.size()) return;
    std::vector<T> larger(capacity);
    for (std::size_t i = 0; i < size_; ++i) larger[i] = std::move(places_[place(i)]);
    places_ = std::move(larger);
    first_ = 0;
  }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // The i-th value, counted from the oldest.
  [[nodiscard]] const T& operator[](std::size_t i) const noexcept { return places_[place(i)]; }
  [[nodiscard]] std::size_t capacity() const noexcept { return places_.size(); }

  // Precondition: there is room.
  void push_back(T value) noexcept {
    assert(size_ < places_.size());
    places_[place(size_++)] = std::move(value);
  }
  void push_front(T value) noexcept {
    assert(size_ < places_.size());
    first_ = first_ == 0 ? places_.size() - 1 : first_ - 1;
    places_[first_] = std::move(value);
    ++size_;
  }
  // Positions of the first and last value, from 0 to the capacity. Precondition: not empty.
  [[nodiscard]] std::size_t front_place() const noexcept { return first_; }
  [[nodiscard]] std::size_t back_place() const noexcept { return place(size_ - 1); }
  // Precondition: not empty.
  T pop_front() noexcept {
    assert(size_ > 0);
    T value = std::move(places_[first_]);
    first_ = first_ + 1 == places_.size() ? 0 : first_ + 1;
    --size_;
    return value;
  }

 private:
  [[nodiscard]] std::size_t place(std::size_t i) const noexcept {
    const std::size_t at = first_ + i;
    return at < places_.size() ? at : at - places_.size();
  }

  std::vector<T> places_;
  std::size_t first_ = 0;
  std::size_t size_ = 0;
};

// Grows when full and never shrinks: no allocation once it is warm.
template <typename T>
class GrowingQueue : public BoundedQueue<T> {
 public:
  // Throws std::bad_alloc.
  void push_back(T value) {
    if (this->size() == this->capacity()) this->reserve(std::max<std::size_t>(16, 2 * this->capacity()));
    BoundedQueue<T>::push_back(std::move(value));
  }
};

}  // namespace perflab
