// perflab-monitor: what the threads of process trees and the CPUs do, sample by sample, into a file.
//
//   perflab-monitor --control-fd N --interval-ns I --output FILE
//
// It does what perflab says on the control channel and ends with it: {"type":"watch","group":G,"root":PID},
// {"type":"unwatch","group":G}, {"type":"stop"}. What it writes is in docs/observers.md.

#include <getopt.h>
#include <signal.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "programs/control/control.h"
#include "programs/monitor/monitor.h"
#include "realtime/thread.h"
#include "runtime/runtime.h"

namespace {

using perflab::Nanoseconds;
using perflab::runtime::Error;

constexpr Nanoseconds kShortestInterval = 1'000'000;
constexpr const char* kUsage =
    "usage: perflab-monitor --control-fd N --interval-ns I --output FILE (I of 1000000 or more)";

struct Arguments {
  int control_fd = -1;
  Nanoseconds interval_ns = 0;
  std::string output;
};

template <typename Number>
bool parse(const char* text, Number& number) {
  const char* const end = text + std::strlen(text);
  const auto result = std::from_chars(text, end, number);
  return result.ec == std::errc{} && result.ptr == end;
}

std::optional<Arguments> parse_arguments(int argc, char** argv) {
  static constexpr std::array<option, 4> kOptions{{{"control-fd", required_argument, nullptr, 'f'},
                                                   {"interval-ns", required_argument, nullptr, 'i'},
                                                   {"output", required_argument, nullptr, 'o'},
                                                   {nullptr, 0, nullptr, 0}}};
  Arguments arguments;
  for (int letter = 0; (letter = getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (letter == 'f') {
      if (!parse(optarg, arguments.control_fd)) return std::nullopt;
    } else if (letter == 'i') {
      if (!parse(optarg, arguments.interval_ns)) return std::nullopt;
    } else if (letter == 'o') {
      arguments.output = optarg;
    } else {
      return std::nullopt;
    }
  }
  const bool complete = arguments.control_fd >= 0 && arguments.interval_ns >= kShortestInterval &&
                        !arguments.output.empty() && optind == argc;
  return complete ? std::optional(arguments) : std::nullopt;
}

int report(perflab::control::Control& control, bool unsupported, const char* text) {
  std::fprintf(stderr, "perflab-monitor: %s\n", text);
  control.send({{"type", "error"}, {"kind", unsupported ? "unsupported" : "failed"}, {"text", text}});
  return unsupported ? 3 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse_arguments(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "%s\n", kUsage);
    return 2;
  }
  if (!perflab::realtime::end_with_parent()) {
    std::fprintf(stderr, "perflab-monitor: perflab is gone\n");
    return 1;
  }
  // A file size limit is an error of a write like any other, not the end of the process.
  signal(SIGXFSZ, SIG_IGN);
  perflab::realtime::name_this_thread("monitor");
  perflab::control::Control control(arguments->control_fd);
  try {
    perflab::monitor::Monitor(arguments->output, arguments->interval_ns, control).run();
    return 0;
  } catch (const Error& error) {
    return report(control, error.kind() == Error::Kind::kUnsupported, error.what());
  } catch (const std::exception& error) {
    return report(control, false, error.what());
  }
}
