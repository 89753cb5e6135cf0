// The schedule of one timer: which tick is due next, and what happens to ticks that were missed. Shared by
// all runtimes, so that the rule is the same everywhere.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "runtime/runtime.h"

namespace perflab::runtime {

class TimerSchedule {
 public:
  TimerSchedule(const TimerSettings& settings, TimerHandler& handler)
      : handler_(&handler),
        period_(settings.period_ns),
        shift_(settings.shift_ns),
        next_(settings.first_tick),
        last_(settings.last_tick),
        skip_missed_(settings.skip_missed),
        made_up_for_(settings.made_up_for_ns) {}

  void set_base(Nanoseconds base_ns) noexcept { base_ = base_ns + shift_; }
  [[nodiscard]] bool done() const noexcept { return next_ > last_; }
  // Without meaning once done().
  [[nodiscard]] Nanoseconds next_due() const noexcept { return base_ + next_ * period_; }

  // To be called when next_due() <= now: gives exactly one tick to the handler. With skip_missed that is the
  // latest one due, or the first that is late by no more than `made_up_for_ns`; those before it are reported
  // as skipped.
  void fire(Nanoseconds now) noexcept {
    if (skip_missed_) {
      const Nanoseconds late = now - next_due();
      const std::int64_t behind =
          made_up_for_ == 0 ? late / period_ : (late - made_up_for_ + period_ - 1) / period_;
      const std::int64_t chosen = std::min(next_ + behind, last_);
      if (chosen > next_) {
        handler_->on_skipped(next_due(), static_cast<std::uint64_t>(chosen - next_));
        next_ = chosen;
      }
    }
    const Nanoseconds due = next_due();
    ++next_;
    handler_->on_tick(due);
  }

 private:
  TimerHandler* handler_;
  Nanoseconds base_ = 0;  // shifted
  Nanoseconds period_;
  Nanoseconds shift_;
  std::int64_t next_;
  std::int64_t last_;
  bool skip_missed_;
  Nanoseconds made_up_for_;
};

// The timers of one executor, earliest first. Allocates only while timers are added.
class TimerQueue {
 public:
  static constexpr Nanoseconds kNever = INT64_MAX;

  void add(const TimerSettings& settings, TimerHandler& handler) { timers_.push_back({settings, handler}); }
  [[nodiscard]] bool empty() const noexcept { return timers_.empty(); }

  void set_base(Nanoseconds base_ns) noexcept {
    for (TimerSchedule& timer : timers_) timer.set_base(base_ns);
    std::erase_if(timers_, [](const TimerSchedule& timer) { return timer.done(); });
    std::ranges::make_heap(timers_, later);
  }
  // The next tick of any timer, or kNever.
  [[nodiscard]] Nanoseconds earliest() const noexcept {
    return timers_.empty() ? kNever : timers_.front().next_due();
  }

  // Fires each timer that is due once, in the order of their due times.
  void run_due(Nanoseconds now) noexcept {
    auto due = timers_.end();
    while (due != timers_.begin() && timers_.front().next_due() <= now) {
      std::pop_heap(timers_.begin(), due, later);
      --due;
    }
    // The earliest was popped first and stands last.
    for (auto timer = timers_.end(); timer != due;) (--timer)->fire(now);
    while (due != timers_.end()) {
      if (due->done()) {
        std::swap(*due, timers_.back());
        timers_.pop_back();
      } else {
        std::push_heap(timers_.begin(), ++due, later);
      }
    }
  }

 private:
  static bool later(const TimerSchedule& a, const TimerSchedule& b) noexcept {
    return a.next_due() > b.next_due();
  }

  std::vector<TimerSchedule> timers_;
};

}  // namespace perflab::runtime
