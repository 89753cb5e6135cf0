// The trigger flag of a guard condition: a trigger sets it, the callback takes it. Shared by all runtimes, so
// that triggers coalesce by the same rule everywhere.
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
  // False if it was already triggered and not yet taken: the two triggers coalesce. Either way, the thread
  // that takes the trigger sees what the calling thread did before.
  bool trigger(Nanoseconds due_ns) noexcept {
    Nanoseconds before = due_.load(std::memory_order_relaxed);
    while (!due_.compare_exchange_weak(before, before == kUnknownTime ? due_ns : before,
                                       std::memory_order_acq_rel, std::memory_order_relaxed)) {
    }
    return before == kUnknownTime;
  }
  // The argument of the first trigger since the last take; empty if there was none.
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
