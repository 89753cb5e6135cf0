// Lets one thread at a time in, without waiting: a thread that finds the gate busy leaves marks and goes on,
// and the thread inside handles the marks before it leaves. So a callback that causes the next one does not
// call itself, and no mark is lost.
//
// Invariant: the thread inside has set kBusy, and clears it only in an atomic step that sees no mark. A mark
// left before that step is handled by the thread inside; a thread that leaves one after it finds the gate
// free and goes in itself. Taking a mark acquires what its thread released by leaving it.
//
// Example:
//   gate.pass(kData, [&](Gate::Marks marks) { if (marks & kData) take_all(); });   // any thread
//   gate.close();                          // in the destructor: nobody is inside any more, and nobody comes
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace perflab {

class Gate {
 public:
  using Marks = std::uint32_t;  // any bits but the two highest

  // Calls run(marks) here, or has the one who is inside call it.
  template <typename Run>
  void pass(Marks marks, Run&& run) noexcept {
    Marks idle = 0;
    if (!state_.compare_exchange_strong(idle, kBusy, std::memory_order_acq_rel)) {
      if ((state_.fetch_or(kBusy | marks, std::memory_order_acq_rel) & kBusy) != 0) return;
      marks = state_.exchange(kBusy, std::memory_order_acq_rel) & ~kBusy;
    }
    run(marks);
    leave(run);
  }

  // False if somebody is inside; otherwise the caller is, until leave().
  [[nodiscard]] bool try_enter() noexcept {
    Marks idle = 0;
    return state_.compare_exchange_strong(idle, kBusy, std::memory_order_acq_rel);
  }
  // Waits until nobody is inside, and is inside until leave(). Not from within.
  void enter() noexcept {
    while (!enter_as(kBusy)) std::this_thread::yield();
  }
  // Runs what was left to the one inside, until nothing is.
  template <typename Run>
  void leave(Run&& run) noexcept {
    for (;;) {
      Marks unmarked = kBusy;
      if (state_.compare_exchange_strong(unmarked, 0, std::memory_order_acq_rel)) return;
      run(state_.exchange(kBusy, std::memory_order_acq_rel) & ~kBusy);
    }
  }

  // Waits until nobody is inside; from then on nobody is, and marks come to nothing. Not from within.
  // Idempotent, for one thread at a time.
  void close() noexcept {
    while (!enter_as(kBusy | kClosed)) {
      if ((state_.load(std::memory_order_acquire) & kClosed) != 0) return;
      std::this_thread::yield();
    }
  }

 private:
  static constexpr Marks kBusy = Marks{1} << 31;
  static constexpr Marks kClosed = Marks{1} << 30;

  bool enter_as(Marks state) noexcept {
    Marks idle = 0;
    return state_.compare_exchange_weak(idle, state, std::memory_order_acq_rel);
  }

  std::atomic<Marks> state_{0};
};

}  // namespace perflab
