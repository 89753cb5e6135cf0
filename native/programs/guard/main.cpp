// perflab-guard: runs a command that must not outlive perflab.
//
//   perflab-guard --control-fd N [--grace-ms 2000] [--give-control] -- COMMAND ARG...
//
// COMMAND and all its descendants are ended, by SIGTERM and after the grace period by SIGKILL, when perflab
// requests it, when the control channel closes, when perflab ends, and on SIGTERM, SIGINT and SIGHUP
// (docs/formats.md).

#include <cstdio>

#include "base/options.h"
#include "base/program.h"
#include "programs/guard/guard.h"

int main(int argc, char** argv) {
  using namespace perflab;
  constexpr int kMostGraceMs = 3'600'000;
  constexpr const char* kUsage =
      "perflab-guard --control-fd N [--grace-ms MILLISECONDS] [--give-control] -- COMMAND [ARGUMENT...]";
  guard::Settings settings;
  int grace_ms = 2'000;
  Options options(kUsage);
  options.number(kControlOption, settings.control_fd, 0, kMostDescriptors)
      .number("grace-ms", grace_ms, 0, kMostGraceMs)
      .flag("give-control", settings.give_control);
  try {
    settings.command = options.parse(argc, argv);
    options.require(settings.control_fd >= 0 && !settings.command.empty());
  } catch (const BadInput&) {
    std::fprintf(stderr, "usage: %s\n", kUsage);
    return 2;
  }
  settings.grace_ns = Nanoseconds{grace_ms} * 1'000'000;
  return guard::Guard(settings).run();
}
