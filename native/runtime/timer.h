// The schedule of one timer: which tick is due next, and what happens to missed ticks. Shared by all
// runtimes, so that the rule is the same everywhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "runtime/runtime.h"

namespace perflab::runtime {

class TimerSchedule {
 public:
  TimerSchedule(const TimerSettings& settings, TimerHandler& handler)
      : handler_(&handler),
        arrivals_(settings.arrivals),
        gap_ns_(settings.period_ns * settings.burst),
        burst_(settings.burst),
        shift_ns_(settings.shift_ns),
        until_ns_(settings.until_ns),
        end_(settings.end),
        skip_missed_(settings.skip_missed),
        made_up_for_ns_(settings.made_up_for_ns),
        next_{settings.from_ns, 1, false, SplitMix64(settings.seed)} {
    if (arrivals_ == Arrivals::kPeriodic) {
      // A multiple of the period, so that `shift` moves no tick before `from`.
      next_.at_ns = settings.from_ns / gap_ns_ * gap_ns_;
    }
    if (arrivals_ == Arrivals::kUnthrottled) {
      next_.done = settings.until_ns <= settings.from_ns;
    } else {
      next_.left_of_burst = 0;
      next_ = after(next_);
    }
    tell_next();
  }

  void set_base(Nanoseconds base_ns) noexcept { base_ = base_ns + shift_ns_; }
  [[nodiscard]] bool done() const noexcept { return next_.done; }
  // Meaningless once done(). For an unthrottled timer an instant in the past.
  [[nodiscard]] Nanoseconds next_due() const noexcept { return base_ + next_.at_ns; }

  // Precondition: next_due() <= now. Passes exactly one tick to the handler, or none if the timer has ended
  // by now. With skip_missed it is the latest due tick, or the first that is late by at most
  // `made_up_for_ns`; earlier ticks are reported as skipped.
  void fire(Nanoseconds now) noexcept {
    if (arrivals_ == Arrivals::kUnthrottled) next_.at_ns = now - base_;
    next_.done = next_.at_ns > until();
    if (!next_.done) serve(now);
    tell_next();
  }

 private:
  struct Tick {
    Nanoseconds at_ns;           // relative to the base
    std::int64_t left_of_burst;  // ticks at the same instant, including this one
    bool done;                   // no further tick
    SplitMix64 random;
  };

  void serve(Nanoseconds now) noexcept {
    if (arrivals_ == Arrivals::kUnthrottled) return handler_->on_tick(now);
    if (skip_missed_) skip(now);
    const Nanoseconds due = next_due();
    next_ = after(next_);
    handler_->on_tick(due);
  }

  [[nodiscard]] Nanoseconds until() const noexcept {
    return end_ == nullptr ? until_ns_ : std::min(until_ns_, end_->until_ns.load(std::memory_order_relaxed));
  }
  void tell_next() const noexcept {
    if (end_ != nullptr) end_->next_ns.store(next_.done ? TimerEnd::kNone : next_.at_ns, std::memory_order_release);
  }

  [[nodiscard]] Tick after(Tick tick) const noexcept {
    if (--tick.left_of_burst > 0) return tick;
    tick.left_of_burst = burst_;
    tick.at_ns += arrivals_ == Arrivals::kPoisson
                      ? std::llround(tick.random.exponential(static_cast<double>(gap_ns_)))
                      : gap_ns_;
    tick.done = tick.at_ns > until();
    return tick;
  }

  void skip(Nanoseconds now) noexcept {
    const Nanoseconds first = next_due();
    std::uint64_t skipped = 0;
    if (arrivals_ == Arrivals::kPeriodic) {
      // After a long stall, skips all but the last bursts in one step.
      const Nanoseconds late = std::min(now - made_up_for_ns_ - base_, until()) - next_.at_ns;
      const std::int64_t bursts = std::max<std::int64_t>(0, late / gap_ns_ - 1);
      next_.at_ns += bursts * gap_ns_;
      skipped = static_cast<std::uint64_t>(bursts * burst_);
    }
    for (Tick following = after(next_); !following.done; following = after(next_)) {
      const bool too_late =
          made_up_for_ns_ == 0 ? base_ + following.at_ns <= now : now - next_due() > made_up_for_ns_;
      if (!too_late) break;
      next_ = following;
      ++skipped;
    }
    if (skipped > 0) handler_->on_skipped(first, skipped);
  }

  TimerHandler* handler_;
  Nanoseconds base_ = 0;  // shifted by `shift`
  Arrivals arrivals_;
  Nanoseconds gap_ns_;  // average distance of bursts
  std::int64_t burst_;
  Nanoseconds shift_ns_;
  Nanoseconds until_ns_;
  TimerEnd* end_;
  bool skip_missed_;
  Nanoseconds made_up_for_ns_;
  Tick next_;
};

// The timers of one executor, earliest first. Allocates only when a timer is added.
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
  // The next tick of all timers, or kNever.
  [[nodiscard]] Nanoseconds earliest() const noexcept {
    return timers_.empty() ? kNever : timers_.front().next_due();
  }

  // Fires each due timer once, in the order of due times.
  void run_due(Nanoseconds now) noexcept {
    auto due = timers_.end();
    while (due != timers_.begin() && timers_.front().next_due() <= now) {
      std::pop_heap(timers_.begin(), due, later);
      --due;
    }
    // The earliest timer was popped first and is at the end.
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
