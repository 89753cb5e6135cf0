// A timer of rclcpp that ticks as a graph says.
//
// rclcpp's timers count their periods from the moment of their reset, and leave out what they missed: that is
// ROS 2's rule, and it stays. Here the first period after the reset is what is left until the first tick, and from
// then on each tick is known by its number, because rcl says when it was due. What a timer leaves out is told with
// the next tick. (The timers of EventsExecutor have a thread of their own: while the executor is busy their ticks
// queue, and while that thread is late they leave out as others do.)
//
// Ticks that do not come one period after the other are perflab's: the timer is set anew for each, and makes up for what
// it missed, or leaves it out, as perflab's own runtime does.
#pragma once

#include <atomic>
#include <optional>

#include "runtime/rclcpp/entities.h"
#include "runtime/timer.h"

namespace perflab::runtime::ros {

class RosTimer {
 public:
  // The timer sleeps until reset(). `queued`: its executor queues ticks while it is busy.
  RosTimer(const measure::Clock& clock, const NodeHandle& node, const TimerSettings& settings,
           TimerHandler& handler, bool queued);

  void set_base(Nanoseconds base_ns) noexcept {
    base_ = base_ns + settings_.shift_ns;
    if (own_) own_->set_base(base_ns);
  }
  [[nodiscard]] bool never() const noexcept { return own_ ? own_->done() : last_tick_ < first_tick_; }
  // From now on it ticks, at first when the graph says. Before its executor runs.
  void reset();
  void cancel() noexcept;
  // By which executors know it.
  [[nodiscard]] const void* executable() const noexcept { return made_.get(); }
  [[nodiscard]] bool done() const noexcept { return done_.load(std::memory_order_acquire); }
  // How far its grid of ticks is behind that of the graph.
  [[nodiscard]] Nanoseconds behind() const noexcept { return behind_.load(std::memory_order_relaxed); }

 private:
  // Where the schedule is perflab's.
  void tick_of_own() noexcept;
  // It expires so long from now, and again after each further `period_ns`.
  void expire(Nanoseconds in_ns, Nanoseconds period_ns);
  void tick(std::int64_t number) noexcept;
  [[nodiscard]] std::int64_t last_tick() const noexcept;
  void tell_next() const noexcept;
  void skip(std::int64_t end) noexcept;
  // Which tick rcl has as its next. Where it does not tell with a tick which one it is, its clock is one that is not
  // corrected (CLOCK_MONOTONIC_RAW), and its grid moves against that of the graph.
  [[nodiscard]] std::int64_t follow();
  [[nodiscard]] Nanoseconds due(std::int64_t number) const noexcept;
  // Of the tick that was due at that instant, as rcl has it.
  [[nodiscard]] std::int64_t number_at(Nanoseconds instant) const noexcept;

  const measure::Clock& clock_;
  const TimerSettings settings_;
  TimerHandler& handler_;
  const bool drops_;
  std::optional<TimerSchedule> own_;
  const std::int64_t first_tick_;  // <= 0 for ticks before the measured part
  const std::int64_t last_tick_;
  rclcpp::TimerBase::SharedPtr made_;
  Nanoseconds base_ = 0;  // shifted
  std::atomic<Nanoseconds> behind_{0};
  std::int64_t next_ = 0;
  std::int64_t upcoming_ = 0;  // where rcl does not tell with a tick which one it is
  std::atomic<bool> done_{false};
};

}  // namespace perflab::runtime::ros
