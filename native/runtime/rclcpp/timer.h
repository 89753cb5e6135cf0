// An rclcpp timer with the tick times of a graph.
//
// rclcpp's timers count periods from their reset and skip missed ticks: that is ROS 2's rule and is kept.
// Here the first period after the reset is the time until the first tick; from then on rcl reports when each
// tick was due, which gives its number. Skipped ticks are reported with the next tick. (Timers of
// EventsExecutor have a thread of their own: while the executor is busy their ticks queue, and while that
// thread is late they skip like others.)
//
// For non-periodic ticks perflab re-arms the timer for each tick, and catches up on missed ones or skips them
// like perflab's own runtime.
#pragma once

#include <atomic>
#include <optional>

#include "runtime/rclcpp/entities.h"
#include "runtime/timer.h"

namespace perflab::runtime::ros {

class RosTimer {
 public:
  // The timer sleeps until reset(). `queued`: its executor queues ticks while busy.
  RosTimer(const measure::Clock& clock, const NodeHandle& node, const TimerSettings& settings,
           TimerHandler& handler, bool queued);

  void set_base(Nanoseconds base_ns) noexcept {
    base_ = base_ns + settings_.shift_ns;
    if (own_) own_->set_base(base_ns);
  }
  [[nodiscard]] bool never() const noexcept { return own_ ? own_->done() : last_tick_ < first_tick_; }
  // Starts ticking, first when the graph requires. Call before its executor runs.
  void reset();
  void cancel() noexcept;
  // The pointer by which executors know it.
  [[nodiscard]] const void* executable() const noexcept { return made_.get(); }
  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  // Offset of its tick times from those of the graph.
  [[nodiscard]] Nanoseconds behind() const noexcept { return behind_.load(std::memory_order_relaxed); }

 private:
  // Used if perflab schedules the ticks.
  void tick_of_own() noexcept;
  // Expires after `in_ns`, and again after each further `period_ns`.
  void expire(Nanoseconds in_ns, Nanoseconds period_ns);
  void tick(std::int64_t number) noexcept;
  [[nodiscard]] std::int64_t last_tick() const noexcept;
  void tell_next() const noexcept;
  void skip(std::int64_t end) noexcept;
  // The number of the next tick in rcl. Needed if rcl does not report which tick a callback is for: then its
  // clock is uncorrected (CLOCK_MONOTONIC_RAW), and its ticks drift against those of the graph.
  [[nodiscard]] std::int64_t follow();
  [[nodiscard]] Nanoseconds due(std::int64_t number) const noexcept;
  // The number of the tick that rcl reports as due at this instant.
  [[nodiscard]] std::int64_t number_at(Nanoseconds instant) const noexcept;

  const measure::Clock& clock_;
  const TimerSettings settings_;
  TimerHandler& handler_;
  const bool drops_;
  std::optional<TimerSchedule> own_;
  const std::int64_t first_tick_;  // <= 0 for ticks before the measured part
  const std::int64_t last_tick_;
  rclcpp::TimerBase::SharedPtr made_;
  Nanoseconds base_ = 0;  // shifted by `shift`
  std::atomic<Nanoseconds> behind_{0};
  std::int64_t next_ = 0;
  std::int64_t upcoming_ = 0;  // used if rcl does not report which tick a callback is for
  std::atomic<bool> done_{false};
};

}  // namespace perflab::runtime::ros
