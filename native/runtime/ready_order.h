// A queue of ready items by priority: the largest number first; items of equal priority in the order in which
// they became ready. Allocates only in reserve().
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
  // Reserves room for this many items.
  void reserve(std::size_t capacity) { heap_.reserve(capacity); }
  [[nodiscard]] bool empty() const noexcept { return heap_.empty(); }

  // Precondition: there is room. Items that became ready at the same instant keep their order of insertion.
  void push(Item item, int priority, Nanoseconds since_ns) noexcept {
    assert(heap_.size() < heap_.capacity());
    heap_.push_back({priority, since_ns, pushed_++, std::move(item)});
    std::ranges::push_heap(heap_, later);
  }
  // Precondition: not empty.
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
