// Admits one thread at a time without waiting: a thread that finds the gate busy leaves marks and returns,
// and the thread inside handles these marks before it leaves. So a callback that triggers the next one does
// not recurse, and no mark is lost.
//
// Invariant: the thread inside has set kBusy, and clears it only in an atomic step that sees no mark. A mark
// left before that step is handled by the thread inside; a thread that arrives after it finds the gate free
// and enters itself. Taking a mark synchronizes with (acquires) the release by the thread that left it.
//
// Example:
//   gate.pass(kData, [&](Gate::Marks marks) { if (marks & kData) take_all(); });   // any thread
//   gate.close();                          // in the destructor: no thread is inside, and none enters
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>

namespace perflab {

class Gate {
 public:
  using Marks = std::uint32_t;  // any bits except the two highest

  // Calls run(marks) here, or leaves the marks to the thread inside, which then calls it.
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

  // False if another thread is inside; otherwise the caller is inside until leave().
  [[nodiscard]] bool try_enter() noexcept {
    Marks idle = 0;
    return state_.compare_exchange_strong(idle, kBusy, std::memory_order_acq_rel);
  }
  // Waits until no thread is inside, then enters until leave(). Must not be called from inside.
  void enter() noexcept {
    while (!enter_as(kBusy)) std::this_thread::yield();
  }
  // Runs the marks left by other threads until none remain, then leaves.
  template <typename Run>
  void leave(Run&& run) noexcept {
    for (;;) {
      Marks unmarked = kBusy;
      if (state_.compare_exchange_strong(unmarked, 0, std::memory_order_acq_rel)) return;
      run(state_.exchange(kBusy, std::memory_order_acq_rel) & ~kBusy);
    }
  }

  // Waits until no thread is inside; from then on none enters, and marks are ignored. Must not be called from
  // inside. Idempotent, but for one thread at a time.
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
