// The clock of every measurement: CLOCK_MONOTONIC, int64 nanoseconds. It is injected, so that tests can use a
// ManualClock with every measuring class.
#pragma once

#include "base/time.h"

namespace perflab::measure {

class Clock {
 public:
  Clock() = default;
  Clock(const Clock&) = delete;
  Clock& operator=(const Clock&) = delete;
  virtual ~Clock() = default;
  [[nodiscard]] virtual Nanoseconds now() const noexcept = 0;
};

// Reads the vDSO: no system call where the kernel's clock source allows it (tsc, kvm-clock, ...).
class MonotonicClock final : public Clock {
 public:
  [[nodiscard]] Nanoseconds now() const noexcept override {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return to_nanoseconds(time);
  }
};

// Stands still until set; for tests and virtual time.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(Nanoseconds now = 0) noexcept : now_(now) {}
  [[nodiscard]] Nanoseconds now() const noexcept override { return now_; }
  void set(Nanoseconds now) noexcept { now_ = now; }
  void advance(Nanoseconds by) noexcept { now_ += by; }

 private:
  Nanoseconds now_;
};

// Median time between two successive readings, ns: what one reading adds to a measured duration.
[[nodiscard]] Nanoseconds clock_cost(const Clock& clock);

}  // namespace perflab::measure
