// perflab-guard: runs a command that must not outlive perflab.
//
//   perflab-guard --control-fd N [--grace-ms 2000] [--give-control] -- COMMAND ARG...
//
// COMMAND and all its descendants are ended, by SIGTERM and after the grace by SIGKILL, when perflab says so,
// when the control channel is closed, when perflab ends, and on SIGTERM, SIGINT and SIGHUP (docs/formats.md).

#include <getopt.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>

#include "programs/guard/guard.h"

namespace {

using perflab::guard::Settings;

constexpr const char* kUsage =
    "usage: perflab-guard --control-fd N [--grace-ms MILLISECONDS] [--give-control] -- COMMAND [ARGUMENT...]";
constexpr int kMaxGraceMs = 3'600'000;

std::optional<int> whole_number(const char* text) {
  int number = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, problem] = std::from_chars(text, end, number);
  if (problem != std::errc() || rest != end || number < 0) return std::nullopt;
  return number;
}

std::optional<Settings> parse_arguments(int argc, char** argv) {
  static constexpr std::array<option, 4> kOptions{{{"control-fd", required_argument, nullptr, 'f'},
                                                   {"grace-ms", required_argument, nullptr, 'g'},
                                                   {"give-control", no_argument, nullptr, 'c'},
                                                   {nullptr, 0, nullptr, 0}}};
  Settings settings;
  // "+": the command's own options are not ours.
  for (int letter = 0; (letter = getopt_long(argc, argv, "+", kOptions.data(), nullptr)) != -1;) {
    const std::optional<int> number = optarg != nullptr ? whole_number(optarg) : std::nullopt;
    if (letter == 'f' && number) {
      settings.control_fd = *number;
    } else if (letter == 'g' && number && *number <= kMaxGraceMs) {
      settings.grace_ns = perflab::Nanoseconds{*number} * 1'000'000;
    } else if (letter == 'c') {
      settings.give_control = true;
    } else {
      return std::nullopt;
    }
  }
  settings.command.assign(argv + optind, argv + argc);
  if (settings.control_fd < 0 || settings.command.empty()) return std::nullopt;
  return settings;
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Settings> settings = parse_arguments(argc, argv);
  if (!settings) {
    std::fprintf(stderr, "%s\n", kUsage);
    return 2;
  }
  perflab::guard::Guard guard(*settings);
  return guard.run();
}
