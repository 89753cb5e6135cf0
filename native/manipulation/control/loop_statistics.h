// Running statistics of a control loop, with the names of ros2_control's controller_manager (Jazzy):
// `controller_manager.total_time`, `panda_arm_controller.stats/execution_time/max`. As there, times are in µs
// and periodicities in Hz. Values not seen yet are NaN.
//
// After construction nothing here allocates, locks or throws, because the control loop calls it.
//
// Example:
//   LoopStatistics loop("controller_manager", "panda", {"joint_state_broadcaster", "panda_arm_controller"});
//   loop.hardware_read(woken_ns, now_ns);
//   loop.controller_updated(1, now_ns, then_ns);
//   loop.hardware_written(then_ns, end_ns);       // the cycle is over
//   publish(loop.names(), loop.values());
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"

namespace perflab::manipulation {

// As libstatistics_collector's MovingAverageStatistics, whose deviation is the population's. Source: Welford 1962.
class RunningStatistics {
 public:
  void add(double value) noexcept;
  [[nodiscard]] double max() const noexcept;
  [[nodiscard]] double min() const noexcept;
  [[nodiscard]] double average() const noexcept;
  [[nodiscard]] double standard_deviation() const noexcept;
  [[nodiscard]] std::uint64_t count() const noexcept { return count_; }
  [[nodiscard]] double last() const noexcept;

 private:
  std::uint64_t count_ = 0;
  double max_ = 0.0, min_ = 0.0, average_ = 0.0, squares_ = 0.0, last_ = 0.0;
};

class LoopStatistics {
 public:
  LoopStatistics(const std::string& manager, const std::string& hardware, const std::vector<std::string>& controllers);

  [[nodiscard]] const std::vector<std::string>& names() const noexcept { return names_; }
  // In the order of names(), for the last completed cycle.
  [[nodiscard]] std::span<const double> values() const noexcept { return values_; }

  // The steps of one cycle, in this order. Reading the hardware starts when the loop starts the cycle.
  void hardware_read(Nanoseconds from_ns, Nanoseconds until_ns) noexcept;
  // Controllers were started or stopped; only in cycles in which that happened.
  void switched(Nanoseconds took_ns) noexcept;
  // `controller` is the index in the list; only for running controllers.
  void controller_updated(std::size_t controller, Nanoseconds from_ns, Nanoseconds until_ns) noexcept;
  void hardware_written(Nanoseconds from_ns, Nanoseconds until_ns) noexcept;

 private:
  struct Repeated {
    RunningStatistics execution_time, periodicity;
    Nanoseconds last_ns = kUnknownTime;
    void add(Nanoseconds from_ns, Nanoseconds until_ns) noexcept;
  };
  void name(const std::string& what);

  std::vector<std::string> names_;
  std::vector<double> values_;
  double read_time_ = 0.0, update_time_ = 0.0, switch_time_ = 0.0;  // of this cycle
  Repeated read_, write_;
  std::vector<Repeated> controllers_;
};

}  // namespace perflab::manipulation
