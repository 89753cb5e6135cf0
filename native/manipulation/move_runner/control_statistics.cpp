#include "manipulation/move_runner/control_statistics.h"

#include <algorithm>
#include <cmath>

namespace perflab::manipulation {
namespace {

using messages::pal_statistics_msgs::msg::StatisticsNames;
using messages::pal_statistics_msgs::msg::StatisticsValues;

constexpr const char* kTopic = "/controller_manager/statistics";

}  // namespace

ControlStatistics::ControlStatistics(program::Context& context, const std::string& node, const std::string& controller)
    : context_(context),
      frequency_(controller + ".stats/periodicity/current_value"),
      cycles_(controller + ".stats/periodicity/sample_count"),
      total_("controller_manager.total_time"),
      period_times_(context.times("control_period")),
      execution_times_(context.times("control_execution")) {
  context.on_message<StatisticsNames>(node, std::string(kTopic) + "/names",
                                      [this](const StatisticsNames& names, const program::Received&) { take(names); });
  context.on_message<StatisticsValues>(
      node, std::string(kTopic) + "/values",
      [this](const StatisticsValues& values, const program::Received& how) { take(values, how.callback_ns); });
}

void ControlStatistics::measure_from(Nanoseconds from_ns) {
  const std::scoped_lock lock(mutex_);
  from_ns_ = from_ns;
}

void ControlStatistics::take(const StatisticsNames& names) {
  const auto place = [&names](const std::string& name) -> std::optional<std::size_t> {
    const auto found =
        std::find_if(names.names.begin(), names.names.end(), [&](const auto& each) { return each.view() == name; });
    if (found == names.names.end()) return std::nullopt;
    return static_cast<std::size_t>(found - names.names.begin());
  };
  const auto frequency = place(frequency_);
  const auto cycles = place(cycles_);
  const auto total = place(total_);
  const std::scoped_lock lock(mutex_);
  columns_.reset();
  if (frequency && cycles && total) columns_ = Columns{names.names_version, *frequency, *cycles, *total};
}

void ControlStatistics::take(const StatisticsValues& values, Nanoseconds at_ns) {
  const std::scoped_lock lock(mutex_);
  if (from_ns_ == kUnknownTime || at_ns < from_ns_) return;
  if (!columns_ || columns_->version != values.names_version) return;  // the names of these are still to come
  if (std::max({columns_->frequency, columns_->cycles, columns_->total}) >= values.values.size()) return;
  const double frequency = values.values[columns_->frequency];  // Hz
  const double cycle = values.values[columns_->cycles];
  const double total = values.values[columns_->total];  // us
  if (!(frequency > 0.0) || !std::isfinite(frequency) || !(total >= 0.0) || !std::isfinite(total)) return;
  if (last_ && cycle <= *last_) return;  // the controller did not run in this cycle
  if (last_) ++seen_;
  if (!first_) first_ = cycle;
  last_ = cycle;
  period_times_.record(std::llround(static_cast<double>(kNanosecondsPerSecond) / frequency), at_ns);
  execution_times_.record(std::llround(total * 1e3), at_ns);
}

void ControlStatistics::finish() {
  const std::scoped_lock lock(mutex_);
  from_ns_ = kUnknownTime;
  if (!first_ || *last_ <= *first_) return;
  context_.figure("control_seen", static_cast<double>(seen_) / (*last_ - *first_));
  first_.reset();
}

}  // namespace perflab::manipulation
