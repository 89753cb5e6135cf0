// perflab-monitor: samples the threads of process trees and the CPUs, and writes the samples to a file.
//
//   perflab-monitor --control-fd N --interval-ns I --output FILE
//
// It follows perflab's requests on the control channel and ends with it:
// {"type":"watch","group":G,"root":PID}, {"type":"unwatch","group":G}, {"type":"stop"}. docs/observers.md
// describes the file.

#include <string>

#include "base/program.h"
#include "programs/monitor/monitor.h"
#include "realtime/thread.h"

int main(int argc, char** argv) {
  using namespace perflab;
  constexpr Nanoseconds kShortestInterval = 1'000'000;
  constexpr Nanoseconds kLongestInterval = 86'400 * kNanosecondsPerSecond;
  Nanoseconds interval_ns = 0;
  std::string output;
  Program program("perflab-monitor", "--control-fd N --interval-ns I --output FILE (I of 1000000 or more)",
                  WhenPerflabEnds::kFinish);
  program.options()
      .number("interval-ns", interval_ns, kShortestInterval, kLongestInterval)
      .text("output", output);
  return program.run(argc, argv, [&](Control& control) {
    program.options().require(control.attached() && interval_ns > 0 && !output.empty());
    realtime::name_this_thread("monitor");
    monitor::Monitor(output, interval_ns, control).run();
  });
}
