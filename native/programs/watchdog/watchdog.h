// Ensures that real-time threads of a trial do not keep perflab from running.
//
// perflab is kept from running when it is runnable (state R of proc(5)) or waits in the kernel (D), and its
// CPU time has not grown for the whole limit; sleeping does not count. Then every process below perflab that
// has a FIFO or RR thread is killed, and no other: the remaining ones end the trial in order. The same
// happens to those that are still alive some time after perflab has ended.
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
  std::vector<int> cpus{};  // CPUs of its own thread; empty: as started
};

class Watchdog {
 public:
  // Takes the highest priority that this user may have. Throws Error.
  explicit Watchdog(const Settings& settings);

  // Runs until told to end, or until perflab has ended and no process is left that could monopolize the
  // machine.
  void run(Control& control);

 private:
  [[nodiscard]] nlohmann::json ready() const;
  void look(Control& control);
  void note_children();
  void outlive(const Descriptor& signals);
  // Kills the real-time processes among these and their descendants; returns the pids and names of those
  // killed.
  nlohmann::json kill_real_time(const std::vector<pid_t>& of) const;

  const Settings settings_;
  const measure::MonotonicClock clock_;
  Descriptor perflab_;
  Descriptor stat_;
  Descriptor schedstat_;
  Descriptor children_;
  std::map<pid_t, std::uint64_t> known_;  // known children of perflab, with their start time in ticks
  proc::SchedStat last_;
  Nanoseconds stuck_since_ns_ = kUnknownTime;
};

}  // namespace perflab::watchdog
