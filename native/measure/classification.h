// Classifies a latency by the period of its publisher: on_time, late or too_late.
//
// With period p: late_threshold = min(late_ns, late_percent/100 * p), too_late_threshold likewise; too_late
// if latency > too_late_threshold, else late if latency > late_threshold, else on_time (strictly greater, as
// in irobot_benchmark). Without a period only the absolute thresholds apply. Unlike irobot_benchmark, periods
// are not truncated to microseconds, and too_late messages stay in every statistic.
#pragma once

#include <algorithm>

#include "measure/clock.h"

namespace perflab::measure {

struct ThresholdSettings {
  double late_percent = 20.0;
  Nanoseconds late_ns = 5'000'000;
  double too_late_percent = 100.0;
  Nanoseconds too_late_ns = 50'000'000;
};

enum class Punctuality { kOnTime, kLate, kTooLate };

class Thresholds {
 public:
  // `frequency_hz` of the publisher; 0: it has no period.
  Thresholds(const ThresholdSettings& settings, double frequency_hz) noexcept
      : late_(limit(settings.late_ns, settings.late_percent, frequency_hz)),
        too_late_(limit(settings.too_late_ns, settings.too_late_percent, frequency_hz)) {}

  [[nodiscard]] Punctuality classify(Nanoseconds latency) const noexcept {
    if (latency > too_late_) return Punctuality::kTooLate;
    return latency > late_ ? Punctuality::kLate : Punctuality::kOnTime;
  }
  [[nodiscard]] Nanoseconds late() const noexcept { return late_; }
  [[nodiscard]] Nanoseconds too_late() const noexcept { return too_late_; }

 private:
  static Nanoseconds limit(Nanoseconds absolute, double percent, double frequency_hz) noexcept {
    if (frequency_hz <= 0.0) return absolute;
    const double relative = percent / 100.0 * static_cast<double>(kNanosecondsPerSecond) / frequency_hz;
    return relative >= static_cast<double>(absolute) ? absolute : static_cast<Nanoseconds>(relative);
  }

  Nanoseconds late_;
  Nanoseconds too_late_;
};

}  // namespace perflab::measure
