// The callbacks of one entity, never two at a time. Several threads may have something to tell; who finds the
// entity busy leaves a mark and goes on, and who is in it looks at the marks before he leaves. So nobody
// waits for another, and a callback that causes the next one does not call itself.
#pragma once

#include <atomic>
#include <cstdint>

namespace perflab::middleware::direct {

class Gate {
 public:
  static constexpr std::uint32_t kData = 2;
  static constexpr std::uint32_t kEvents = 4;

  // Calls run(marks) here, or has the one who is inside call it.
  template <typename Run>
  void pass(std::uint32_t marks, Run&& run) noexcept {
    std::uint32_t idle = 0;
    if (!state_.compare_exchange_strong(idle, kBusy, std::memory_order_acq_rel)) {
      if ((state_.fetch_or(kBusy | marks, std::memory_order_acq_rel) & kBusy) != 0) return;
      marks = state_.exchange(kBusy, std::memory_order_acq_rel);
    }
    for (;;) {
      run(marks);
      std::uint32_t unmarked = kBusy;
      if (state_.compare_exchange_strong(unmarked, 0, std::memory_order_acq_rel)) return;
      marks = state_.exchange(kBusy, std::memory_order_acq_rel);
    }
  }

 private:
  static constexpr std::uint32_t kBusy = 1;

  std::atomic<std::uint32_t> state_{0};
};

}  // namespace perflab::middleware::direct
