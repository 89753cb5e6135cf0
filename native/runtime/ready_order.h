// What is ready to run, by priority: the largest number first, and among equals what became ready first.
// Allocates only in reserve().
//
// Example:
//   order.reserve(2);
//   order.push(&slow, 1, 100), order.push(&urgent, 7, 200);
//   order.pop();                                          // &urgent
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/time.h"

namespace perflab::runtime {

template <typename Item>
class ReadyOrder {
 public:
  // Room for that many at a time.
  void reserve(std::size_t capacity) { heap_.reserve(capacity); }
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }

  // There must be room. What became ready at the same instant keeps the order in which it was pushed.
  void push(Item item, int priority, Nanoseconds since_ns) noexcept {
    assert(heap_.size() < heap_.capacity());
    heap_.push_back({priority, since_ns, pushed_++, std::move(item)});
    std::ranges::push_heap(heap_, later);
  }
  // There must be one.
  Item pop() noexcept {
    assert(!heap_.empty());
    std::ranges::pop_heap(heap_, later);
    Item item = std::move(heap_.back().item);
    heap_.pop_back();
    return item;
  }

 private:
  struct Ready {
    int priority;
    Nanoseconds since_ns;
    std::uint64_t order;
    Item item;
  };
  static bool later(const Ready& a, const Ready& b) noexcept {
    if (a.priority != b.priority) return a.priority < b.priority;
    return a.since_ns != b.since_ns ? a.since_ns > b.since_ns : a.order > b.order;
  }

  std::vector<Ready> heap_;
  std::uint64_t pushed_ = 0;
};

}  // namespace perflab::runtime
