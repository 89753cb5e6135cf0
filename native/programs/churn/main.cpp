// perflab-churn: discovery churn beside a workload, on topics of its own (perflab_churn_1, ...).
//
//   perflab-churn --config FILE [--control-fd N]
//
// Lines out: {"type":"ready","at_ns"}, {"type":"progress","created","deleted","skipped","at_ns"} every 200 ms
// (to the file `records` where the configuration names one), {"type":"done",...} as last line; errors as
// perflab-node's. It ends on {"type":"stop"}, SIGTERM, SIGINT, or when the channel closes, and takes
// everything back first: a participant that is killed haunts its domain until its lease ends.

#include <getopt.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "programs/churn/churn.h"
#include "programs/churn/config.h"
#include "programs/control/control.h"
#include "realtime/thread.h"
#include "runtime/runtime.h"

namespace {

using nlohmann::json;
using perflab::Nanoseconds;
using perflab::churn::Churn;
using perflab::churn::Config;
using perflab::control::Control;
using perflab::runtime::Error;

constexpr Nanoseconds kProgressPeriod = 200'000'000;
// How long a signal may wait to be noticed.
constexpr Nanoseconds kLongestSleep = 50'000'000;

volatile std::sig_atomic_t asked_to_end = 0;

constexpr const char* kUsage = "usage: perflab-churn --config FILE [--control-fd N]";

struct Arguments {
  std::string config_file;
  int control_fd = -1;
};

// Null after a bad option.
std::optional<Arguments> parse_arguments(int argc, char** argv) {
  static constexpr std::array<option, 3> kOptions{{{"config", required_argument, nullptr, 'c'},
                                                   {"control-fd", required_argument, nullptr, 'f'},
                                                   {nullptr, 0, nullptr, 0}}};
  Arguments arguments;
  for (int letter = 0; (letter = getopt_long(argc, argv, "", kOptions.data(), nullptr)) != -1;) {
    if (letter == 'c') {
      arguments.config_file = optarg;
    } else if (letter == 'f') {
      char* end = nullptr;
      arguments.control_fd = static_cast<int>(std::strtol(optarg, &end, 10));
      if (end == optarg || *end != '\0' || arguments.control_fd < 0) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.config_file.empty() || optind != argc) return std::nullopt;
  return arguments;
}

int report(Control& control, int code, const char* kind, const char* text) {
  std::fprintf(stderr, "perflab-churn: %s\n", text);
  control.send({{"type", "error"}, {"kind", kind}, {"text", text}});
  return code;
}

json counts_line(const char* type, const Churn& churn, Nanoseconds at_ns) {
  return {{"type", type},
          {"at_ns", at_ns},
          {"created", churn.counts().created},
          {"deleted", churn.counts().deleted},
          {"skipped", churn.counts().skipped}};
}

// Where progress goes: the file, or else the control channel.
class Progress {
 public:
  Progress(const std::string& file, Control& control) : file_name_(file), control_(control) {
    if (file.empty()) return;
    file_.open(file, std::ios::trunc);
    require_good();
  }

  void write(const json& line) {
    if (file_name_.empty()) {
      control_.send_replaceable(line);
      return;
    }
    file_ << line.dump() << '\n' << std::flush;
    require_good();
  }

 private:
  void require_good() const {
    if (!file_) throw Error(Error::Kind::kFailed, file_name_ + ": cannot be written");
  }

  std::string file_name_;
  Control& control_;
  std::ofstream file_;
};

void run(const Config& config, Control& control) {
  const perflab::measure::MonotonicClock clock;
  Churn churn(config, clock);
  Progress progress(config.records, control);
  control.send({{"type", "ready"}, {"at_ns", clock.now()}});
  churn.start(clock.now());
  Nanoseconds next_progress = clock.now();
  while (asked_to_end == 0 && !control.closed()) {
    Nanoseconds now = clock.now();
    if (now >= next_progress) {
      progress.write(counts_line("progress", churn, now));
      next_progress = std::max(next_progress + kProgressPeriod, now);
    }
    if (churn.next_due() <= now) churn.run_cycle(now);
    now = clock.now();
    const Nanoseconds wake = std::min({churn.next_due(), next_progress, now + kLongestSleep});
    const auto message = control.receive(std::max<Nanoseconds>(0, wake - now));
    if (message && message->value("type", "") == "stop") break;
  }
  progress.write(counts_line("progress", churn, clock.now()));
  churn.clear();
  control.send(counts_line("done", churn, clock.now()));
}

}  // namespace

int main(int argc, char** argv) {
  const std::optional<Arguments> arguments = parse_arguments(argc, argv);
  if (!arguments) {
    std::fprintf(stderr, "%s\n", kUsage);
    return 2;
  }
  if (arguments->control_fd >= 0 && !perflab::realtime::end_with_parent()) {
    std::fprintf(stderr, "perflab-churn: perflab is gone\n");
    return 1;
  }
  std::signal(SIGTERM, [](int) { asked_to_end = 1; });
  std::signal(SIGINT, [](int) { asked_to_end = 1; });
  std::signal(SIGXFSZ, SIG_IGN);
  Control control(arguments->control_fd);
  try {
    run(perflab::churn::read_config(arguments->config_file), control);
    return 0;
  } catch (const Error& error) {
    const bool bad_input = error.kind() == Error::Kind::kBadInput;
    return report(control, bad_input ? 2 : 1, bad_input ? "bad_input" : "failed", error.what());
  } catch (const perflab::middleware::Error& error) {
    using Kind = perflab::middleware::Error::Kind;
    if (error.kind() == Kind::unsupported) return report(control, 3, "unsupported", error.what());
    if (error.kind() == Kind::bad_option) return report(control, 2, "bad_input", error.what());
    return report(control, 1, "failed", error.what());
  } catch (const std::exception& error) {
    return report(control, 1, "failed", error.what());
  }
}
