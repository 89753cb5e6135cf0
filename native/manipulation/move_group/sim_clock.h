// move_group's clock: /clock, as with use_sim_time, or the wall clock.
#pragma once

#include <atomic>

#include "base/time.h"

namespace perflab::manipulation {

// Thread-safe.
class SimClock {
 public:
  explicit SimClock(bool sim_time) noexcept : sim_time_(sim_time) {}

  // Takes a message of /clock, and when it was published (CLOCK_MONOTONIC, or kUnknownTime).
  void set(Nanoseconds now, Nanoseconds published_ns) noexcept {
    now_.store(now, std::memory_order_release);
    published_ns_.store(published_ns, std::memory_order_release);
  }
  // Time of the last message, 0 before the first one, like rclcpp::Clock; without sim time CLOCK_REALTIME.
  [[nodiscard]] Nanoseconds now() const noexcept {
    return sim_time_ ? now_.load(std::memory_order_acquire) : read_clock(CLOCK_REALTIME);
  }
  [[nodiscard]] bool sim_time() const noexcept { return sim_time_; }
  // When the last message was published.
  [[nodiscard]] Nanoseconds published_ns() const noexcept { return published_ns_.load(std::memory_order_acquire); }

 private:
  const bool sim_time_;
  std::atomic<Nanoseconds> now_{0};
  std::atomic<Nanoseconds> published_ns_{kUnknownTime};
};

}  // namespace perflab::manipulation
