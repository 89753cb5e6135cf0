// Sees to it that real-time threads of a trial do not keep perflab from running.
//
// perflab is kept from running when it is ready (state R of proc(5)), or waits in the kernel (D), and its CPU
// time has not grown for as long as the limit: sleeping is no such state. Then every process below perflab that
// has a thread with FIFO or RR is killed, and nobody else: those that are left end the trial in order. The same
// is done to whoever of them still lives a while after perflab has ended.
#pragma once

#include <sys/types.h>

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "base/control.h"
#include "base/descendants.h"
#include "base/descriptor.h"
#include "base/proc.h"
#include "base/time.h"
#include "measure/clock.h"

namespace perflab::watchdog {

struct Settings {
  pid_t perflab = 0;
  Nanoseconds limit_ns = 0;
  std::vector<int> cpus{};  // its own; empty: as started
};

class Watchdog {
 public:
  // Takes the highest priority that this user may have. Throws Error.
  explicit Watchdog(const Settings& settings);

  // Until it is told to end, or perflab is gone and nothing is left that could take the machine.
  void run(Control& control);

 private:
  [[nodiscard]] nlohmann::json ready() const;
  void look(Control& control);
  void note_children();
  void outlive(const Descriptor& signals);
  // Below these processes, and of them; the numbers and names of those that were killed.
  nlohmann::json kill_real_time(const std::vector<pid_t>& of) const;

  const Settings settings_;
  const measure::MonotonicClock clock_;
  Descriptor perflab_;
  Descriptor stat_;
  Descriptor schedstat_;
  Descriptor children_;
  std::map<pid_t, std::uint64_t> known_;  // children of perflab so far, with their start in ticks
  proc::SchedStat last_;
  Nanoseconds stuck_since_ns_ = kUnknownTime;
};

}  // namespace perflab::watchdog
