// perflab-node: one process of a graph, measured.
//
//   perflab-node --config FILE [--control-fd N] [--check]
//
// With a control channel it does what perflab says (docs/formats.md, section 3) and ends with it. Without one
// it runs by itself, which is of use under a debugger or a profiler. With --check it creates everything and
// ends.

#include <getopt.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>

#include "programs/control/control.h"
#include "programs/node/config.h"
#include "programs/node/node.h"
#include "realtime/thread.h"

namespace {

using perflab::runtime::Error;

struct Exit {
  int code;
  const char* kind;
};

Exit exit_of(Error::Kind kind) {
  switch (kind) {
    case Error::Kind::kBadInput:
      return {2, "bad_input"};
    case Error::Kind::kUnsupported:
      return {3, "unsupported"};
    case Error::Kind::kFailed:
      break;
  }
  return {1, "failed"};
}

int report(perflab::control::Control& control, Error::Kind kind, const char* text) {
  const Exit exit = exit_of(kind);
  std::fprintf(stderr, "perflab-node: %s\n", text);
  control.send({{"type", "error"}, {"kind", exit.kind}, {"text", text}});
  return exit.code;
}

constexpr const char* kUsage = "usage: perflab-node --config FILE [--control-fd N] [--check]";

struct Arguments {
  std::string config_file;
  int control_fd = -1;
  bool check = false;
};

// Plain getopt: this program's own memory is part of what it measures. Null after a bad or a help option.
std::optional<Arguments> parse_arguments(int argc, char** argv) {
  static constexpr std::array<option, 4> kOptions{{{"config", required_argument, nullptr, 'c'},
                                                   {"control-fd", required_argument, nullptr, 'f'},
                                                   {"check", no_argument, nullptr, 'k'},
                                                   {nullptr, 0, nullptr, 0}}};
  Arguments arguments;
  for (int letter = 0; (letter = getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (letter == 'c') {
      arguments.config_file = optarg;
    } else if (letter == 'f') {
      char* end = nullptr;
      arguments.control_fd = static_cast<int>(std::strtol(optarg, &end, 10));
      if (end == optarg || *end != '\0' || arguments.control_fd < 0) return std::nullopt;
    } else if (letter == 'k') {
      arguments.check = true;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.config_file.empty() || optind != argc) return std::nullopt;
  return arguments;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse_arguments(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "%s\n", kUsage);
    return 2;
  }
  const int control_fd = arguments->control_fd;
  if (control_fd >= 0 && !perflab::realtime::end_with_parent()) {
    std::fprintf(stderr, "perflab-node: perflab is gone\n");
    return 1;
  }
  // A file size limit is an error of a write like any other, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  perflab::control::Control control(control_fd);
  try {
    const perflab::node::Config config = perflab::node::read_config(arguments->config_file);
    perflab::node::Node node(config, control);
    if (!arguments->check) node.run();
    return 0;
  } catch (const Error& error) {
    return report(control, error.kind(), error.what());
  } catch (const std::exception& error) {
    return report(control, Error::Kind::kFailed, error.what());
  }
}
