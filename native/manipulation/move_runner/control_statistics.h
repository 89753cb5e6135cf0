// What a stack that is none of perflab's says of its control loop (T3): each cycle's period and execution, by ros2_control's
// /controller_manager/statistics (Jazzy).
//
// Subscriptions of the runner's node: /controller_manager/statistics/names, values (pal_statistics_msgs).
// Times: control_period, control_execution. Figure: control_seen, the share of cycles of which they came: a publisher that
// is late leaves cycles out. When a cycle was due is not said, so there is no lateness.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "messages/pal_statistics_msgs/msg/statistics_names.h"
#include "messages/pal_statistics_msgs/msg/statistics_values.h"
#include "program/program.h"

namespace perflab::manipulation {

class ControlStatistics {
 public:
  // `controller`: the name of one that runs in each cycle.
  ControlStatistics(program::Context& context, const std::string& node, const std::string& controller);

  // Of cycles before this nothing is recorded.
  void measure_from(Nanoseconds from_ns);
  // Records nothing more, and reports the share; none where nothing came.
  void finish();

 private:
  void take(const messages::pal_statistics_msgs::msg::StatisticsNames& names);
  void take(const messages::pal_statistics_msgs::msg::StatisticsValues& values, Nanoseconds at_ns);

  // Where a message of values has what is read of it.
  struct Columns {
    std::uint32_t version;
    std::size_t frequency, cycles, total;
  };

  program::Context& context_;
  const std::string frequency_, cycles_, total_;  // names of values
  program::Times& period_times_;
  program::Times& execution_times_;

  std::mutex mutex_;
  std::optional<Columns> columns_;
  Nanoseconds from_ns_ = kUnknownTime;  // kUnknownTime: nothing is recorded
  std::optional<double> first_, last_;  // cycles since the loop began
  std::uint64_t seen_ = 0;              // after the first one
};

}  // namespace perflab::manipulation
