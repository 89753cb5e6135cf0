#include "runtime/rclcpp/timer.h"

#include <rcl/timer.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "runtime/rclcpp/distribution.h"

namespace perflab::runtime::ros {
namespace {

// Period of a timer that is re-armed at each tick.
constexpr Nanoseconds kForNow = 3'600'000'000'000;

}  // namespace

RosTimer::RosTimer(const measure::Clock& clock, const NodeHandle& node, const TimerSettings& settings,
                   TimerHandler& handler, bool queued)
    : clock_(clock),
      settings_(settings),
      handler_(handler),
      drops_(queued && settings.skip_missed),
      first_tick_(settings.regular() ? 1 + settings.from_ns / settings.period_ns : 0),
      last_tick_(settings.regular() ? settings.until_ns / settings.period_ns : 0),
      next_(first_tick_),
      upcoming_(first_tick_) {
  if (!settings.regular()) own_.emplace(settings, handler);
  const auto period = std::chrono::nanoseconds(std::max<Nanoseconds>(1, settings.period_ns));
#ifdef PERFLAB_HAS_TIMER_INFO
  const auto callback = [this](const rclcpp::TimerInfo& info) {
    own_ ? tick_of_own() : tick(number_at(info.expected_call_time.nanoseconds()));
  };
#else
  // Older versions of rcl only reported the next tick, so the previous callback determines which tick this
  // is. Executors that call a timer in one thread and run its callback in another are newer than that.
  const auto callback = [this] { own_ ? tick_of_own() : tick(std::exchange(upcoming_, follow())); };
#endif
  made_ = rclcpp::create_wall_timer(period, callback, nullptr, node.base().get(), node.timers().get());
  made_->cancel();
  if (never()) done_.store(true, std::memory_order_release);
  tell_next();
}

// rcl reads the time of the reset itself and adds the timer's current period for the first tick; later ticks
// follow at the period set afterwards.
void RosTimer::expire(Nanoseconds in_ns, Nanoseconds period_ns) {
  const rcl_timer_t* const timer = made_->get_timer_handle().get();
  const auto exchange = [timer](std::int64_t ns) {
    std::int64_t before = 0;
    if (rcl_timer_exchange_period(timer, ns, &before) != RCL_RET_OK)
      throw Error(Error::Kind::kFailed, "rclcpp: rcl refuses the period of a timer");
  };
  exchange(std::max<Nanoseconds>(1, in_ns));
  made_->reset();
  exchange(period_ns);
}

void RosTimer::reset() {
  if (own_) {
    expire(own_->next_due() - clock_.now(), kForNow);
    return;
  }
  expire(base_ + first_tick_ * settings_.period_ns - clock_.now(), settings_.period_ns);
  upcoming_ = std::max(follow(), first_tick_);
}

void RosTimer::tick_of_own() noexcept {
  if (done()) return;
  const Nanoseconds now = clock_.now();
  if (own_->next_due() <= now) own_->fire(now);
  if (own_->done()) {
    cancel();
    done_.store(true, std::memory_order_release);
    return;
  }
  try {
    expire(own_->next_due() - clock_.now(), kForNow);
  } catch (const std::exception&) {  // the timer is no longer valid: nothing will tick, and nothing waits for
                                     // it
    done_.store(true, std::memory_order_release);
  }
}

// Two clocks cannot be read at once; the quickest of several attempts counts.
std::int64_t RosTimer::follow() {
  constexpr int kTries = 5;
  constexpr Nanoseconds kQuick = 2'000;
  Nanoseconds quickest = std::numeric_limits<Nanoseconds>::max();
  Nanoseconds next = 0;
  for (int i = 0; i < kTries && quickest > kQuick; ++i) {
    const Nanoseconds before = clock_.now();
    const Nanoseconds left = made_->time_until_trigger().count();
    const Nanoseconds took = clock_.now() - before;
    if (took >= quickest) continue;
    quickest = took;
    next = before + took / 2 + left;
  }
  // The ticks start late, never early, so take the last tick before, not the nearest; the measured value may
  // be slightly too early.
  const Nanoseconds passed = next - base_ + quickest;
  const std::int64_t number = passed / settings_.period_ns - (passed % settings_.period_ns < 0 ? 1 : 0);
  behind_.store(std::max<Nanoseconds>(0, next - (base_ + number * settings_.period_ns)),
                std::memory_order_relaxed);
  return number;
}

void RosTimer::cancel() noexcept {
  try {
    made_->cancel();
  } catch (const std::exception&) {  // the timer is no longer valid: nothing will tick
  }
}

// A warm-up tick stays one, even if the ticks are late.
Nanoseconds RosTimer::due(std::int64_t number) const noexcept {
  return base_ + number * settings_.period_ns + (number >= 1 ? behind() : 0);
}

std::int64_t RosTimer::number_at(Nanoseconds instant) const noexcept {
  const Nanoseconds passed = instant - base_ - behind();
  const Nanoseconds half = settings_.period_ns / 2;
  return (passed >= 0 ? passed + half : passed - half) / settings_.period_ns;
}

// Handles ticks that rcl skipped. A flood catches up on recent ones, so that its mean rate is kept.
void RosTimer::skip(std::int64_t end) noexcept {
  std::int64_t kept = end;
  if (settings_.made_up_for_ns > 0) {
    const Nanoseconds oldest = clock_.now() - settings_.made_up_for_ns;
    while (kept > next_ && due(kept - 1) >= oldest) --kept;
  }
  if (kept > next_) handler_.on_skipped(due(next_), static_cast<std::uint64_t>(kept - next_));
  for (; kept < end; ++kept) handler_.on_tick(due(kept));
  next_ = end;
}

std::int64_t RosTimer::last_tick() const noexcept {
  if (settings_.end == nullptr) return last_tick_;
  return std::min(last_tick_, settings_.end->until_ns.load(std::memory_order_relaxed) / settings_.period_ns);
}

void RosTimer::tell_next() const noexcept {
  if (settings_.end == nullptr || own_) return;  // these report the end themselves
  settings_.end->next_ns.store(done() ? TimerEnd::kNone : next_ * settings_.period_ns, std::memory_order_release);
}

void RosTimer::tick(std::int64_t number) noexcept {
  if (done() || number < next_) return;
  const std::int64_t end = std::max(next_, last_tick() + 1);  // the end may be earlier by now
  // Of queued ticks, a skipping timer takes the latest.
  if (drops_ && number < end - 1 &&
      clock_.now() - due(number) - settings_.made_up_for_ns >= settings_.period_ns)
    return;
  if (number > next_) skip(std::min(number, end));
  if (number < end) {
    handler_.on_tick(due(number));
    next_ = number + 1;
  }
  if (next_ >= end) {
    cancel();
    done_.store(true, std::memory_order_release);
  }
  tell_next();
}

}  // namespace perflab::runtime::ros
