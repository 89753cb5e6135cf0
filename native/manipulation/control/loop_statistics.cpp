#include "manipulation/control/loop_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace perflab::manipulation {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();

double microseconds(Nanoseconds time_ns) noexcept { return static_cast<double>(time_ns) / 1e3; }

}  // namespace

void RunningStatistics::add(double value) noexcept {
  max_ = count_ == 0 ? value : std::max(max_, value);
  min_ = count_ == 0 ? value : std::min(min_, value);
  ++count_;
  const double before = average_;
  average_ += (value - average_) / static_cast<double>(count_);
  squares_ += (value - before) * (value - average_);
  last_ = value;
}

double RunningStatistics::max() const noexcept { return count_ == 0 ? kNothing : max_; }
double RunningStatistics::min() const noexcept { return count_ == 0 ? kNothing : min_; }
double RunningStatistics::average() const noexcept { return count_ == 0 ? kNothing : average_; }
double RunningStatistics::last() const noexcept { return count_ == 0 ? kNothing : last_; }
double RunningStatistics::standard_deviation() const noexcept {
  return count_ == 0 ? kNothing : std::sqrt(squares_ / static_cast<double>(count_));
}

LoopStatistics::LoopStatistics(const std::string& manager, const std::string& hardware,
                               const std::vector<std::string>& controllers)
    : controllers_(controllers.size()) {
  for (const char* const part : {"read_time", "update_time", "write_time", "total_time", "switch_time"}) {
    names_.push_back(manager + "." + part);
  }
  name(hardware + ".stats/read_cycle");
  name(hardware + ".stats/write_cycle");
  for (const std::string& controller : controllers) name(controller + ".stats");
  values_.assign(names_.size(), kNothing);
}

void LoopStatistics::name(const std::string& what) {
  for (const char* const of : {"/execution_time", "/periodicity"}) {
    for (const char* const each : {"/max", "/min", "/average", "/standard_deviation", "/sample_count", "/current_value"}) {
      names_.push_back(what + of + each);
    }
  }
}

void LoopStatistics::Repeated::add(Nanoseconds from_ns, Nanoseconds until_ns) noexcept {
  execution_time.add(microseconds(until_ns - from_ns));
  if (last_ns != kUnknownTime && from_ns > last_ns) periodicity.add(1e9 / static_cast<double>(from_ns - last_ns));
  last_ns = from_ns;
}

void LoopStatistics::hardware_read(Nanoseconds from_ns, Nanoseconds until_ns) noexcept {
  read_.add(from_ns, until_ns);
  read_time_ = microseconds(until_ns - from_ns);
  update_time_ = switch_time_ = 0.0;
}

void LoopStatistics::switched(Nanoseconds took_ns) noexcept { switch_time_ = microseconds(took_ns); }

void LoopStatistics::controller_updated(std::size_t controller, Nanoseconds from_ns, Nanoseconds until_ns) noexcept {
  controllers_[controller].add(from_ns, until_ns);
  update_time_ += microseconds(until_ns - from_ns);
}

void LoopStatistics::hardware_written(Nanoseconds from_ns, Nanoseconds until_ns) noexcept {
  write_.add(from_ns, until_ns);
  const double write_time = microseconds(until_ns - from_ns);
  double* to = values_.data();
  for (const double value : {read_time_, update_time_, write_time, read_time_ + update_time_ + write_time, switch_time_}) {
    *to++ = value;
  }
  const auto write = [&to](const RunningStatistics& of) {
    for (const double value : {of.max(), of.min(), of.average(), of.standard_deviation(), static_cast<double>(of.count()),
                               of.last()}) {
      *to++ = value;
    }
  };
  const auto write_both = [&write](const Repeated& of) {
    write(of.execution_time);
    write(of.periodicity);
  };
  write_both(read_);
  write_both(write_);
  for (const Repeated& each : controllers_) write_both(each);
}

}  // namespace perflab::manipulation
