// The mark of a guard condition: a trigger sets it, the callback takes it. Shared by all runtimes, so that
// the rule by which triggers coalesce is the same everywhere.
//
// Example:
//   if (!guard.trigger(due_ns)) handler.on_coalesced(due_ns);                         // any thread
//   if (const auto due_ns = guard.take()) handler.on_triggered(*due_ns);              // the executor's
#pragma once

#include <atomic>
#include <optional>

#include "runtime/runtime.h"

namespace perflab::runtime {

class Guard {
 public:
  // False if it was triggered already and nobody has taken that: then the two are one. What the calling thread
  // did before is seen by who takes it, either way.
  bool trigger(Nanoseconds due_ns) noexcept {
    Nanoseconds before = due_.load(std::memory_order_relaxed);
    while (!due_.compare_exchange_weak(before, before == kUnknownTime ? due_ns : before,
                                       std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    return before == kUnknownTime;
  }
  // What the first trigger since the last take was given; nothing if there was none.
  std::optional<Nanoseconds> take() noexcept {
    const Nanoseconds due = due_.exchange(kUnknownTime, std::memory_order_acq_rel);
    return due == kUnknownTime ? std::nullopt : std::optional(due);
  }
  [[nodiscard]] bool triggered() const noexcept {
    return due_.load(std::memory_order_acquire) != kUnknownTime;
  }

 private:
  std::atomic<Nanoseconds> due_{kUnknownTime};
};

}  // namespace perflab::runtime
