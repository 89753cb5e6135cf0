// Lets a thread sleep until another one signals that there is work. Ringing costs one load while nobody
// sleeps, no lock and no allocation.
//
// Example:
//   std::atomic<int> work{0};
//   Bell bell;
//   const bool found = bell.wait_until(until_ns, [&] { return work.load(std::memory_order_seq_cst) > 0; });
//   // In another thread:
//   work.fetch_add(1, std::memory_order_seq_cst);
//   bell.ring();
//
// No ring is missed: the ringing thread stores first and then reads whether a thread sleeps; the sleeping
// thread marks itself first and then checks the condition. This order only holds if the condition is read and
// written with memory_order_seq_cst.
#pragma once

#include <atomic>
#include <cstdint>

namespace perflab::middleware::support {

// kShared: also works across processes that map it; all zeros is a bell without sleepers.
template <bool kShared>
class BasicBell {
 public:
  // Returns true as soon as `ready` does; `ready` is evaluated first, after each ring, and sometimes
  // spuriously. False if it stays false until `until_ns` (CLOCK_MONOTONIC; INT64_MAX: no limit). One thread
  // at a time.
  template <typename Ready>
  bool wait_until(std::int64_t until_ns, Ready&& ready) noexcept {
    for (bool in_time = true;;) {
      asleep_.store(kAsleep, std::memory_order_seq_cst);
      const bool found = ready();
      if (found || !in_time) {
        asleep_.store(kAwake, std::memory_order_relaxed);
        return found;
      }
      in_time = sleep(until_ns);
    }
  }

  // From any thread.
  void ring() noexcept {
    if (asleep_.load(std::memory_order_seq_cst) == kAwake) return;
    if (asleep_.exchange(kAwake, std::memory_order_acq_rel) == kAsleep) wake();
  }

 private:
  static constexpr std::uint32_t kAwake = 0;
  static constexpr std::uint32_t kAsleep = 1;

  // False if the time is over; otherwise it was woken, or did not sleep.
  bool sleep(std::int64_t until_ns) noexcept;
  void wake() noexcept;

  std::atomic<std::uint32_t> asleep_{kAwake};  // the futex
};
extern template class BasicBell<false>;
extern template class BasicBell<true>;

using Bell = BasicBell<false>;
using SharedBell = BasicBell<true>;

// `timeout_ns` from now on CLOCK_MONOTONIC; INT64_MAX on overflow.
std::int64_t monotonic_after(std::int64_t timeout_ns) noexcept;

}  // namespace perflab::middleware::support
