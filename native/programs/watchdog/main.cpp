// perflab-watchdog: kills the real-time processes of a trial if they keep perflab from running.
//
//   perflab-watchdog [--control-fd N] --perflab PID --limit-ns N [--cpus 0,1]
//
// It sends `ready` with its own policy and priority, and `fired` with the processes that it has killed
// (docs/formats.md).

#include <algorithm>
#include <string>
#include <string_view>

#include "base/program.h"
#include "programs/watchdog/watchdog.h"

int main(int argc, char** argv) {
  using namespace perflab;
  constexpr Nanoseconds kLongestLimit = 3'600 * kNanosecondsPerSecond;
  constexpr Nanoseconds kShortestLimit = 100'000'000;
  watchdog::Settings settings;
  Program program("perflab-watchdog", "[--control-fd N] --perflab PID --limit-ns N [--cpus 0,1]",
                  WhenPerflabEnds::kTerminate);
  Options& options = program.options();
  options.number("perflab", settings.perflab, 1, 1 << 30)
      .number("limit-ns", settings.limit_ns, kShortestLimit, kLongestLimit)
      .value("cpus", [&](std::string_view text) {
        while (!text.empty()) {
          const std::size_t comma = std::min(text.find(','), text.size());
          settings.cpus.push_back(parse_number("cpus", text.substr(0, comma), 0, 1'000'000));
          text.remove_prefix(std::min(comma + 1, text.size()));
        }
        std::ranges::sort(settings.cpus);
      });
  return program.run(argc, argv, [&](Control& control) {
    options.require(settings.perflab > 0 && settings.limit_ns > 0);
    watchdog::Watchdog(settings).run(control);
  });
}
