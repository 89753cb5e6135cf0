// perflab-burn: spends CPU time with a policy and a priority, for a limited time.
//
//   perflab-burn [--control-fd N] --cpus 0,1 --limit-ns L [--policy OTHER|FIFO|RR] [--priority P] [--nice N]
//                [--load PERCENT] [--period-ns N]
//
// Ends when told so on the control channel, when that closes, with its parent, on SIGTERM, SIGINT and SIGHUP,
// and whatever happens when the limit is reached (docs/formats.md). Without a control channel it runs by
// itself.

#include <getopt.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "programs/burn/burn.h"
#include "programs/burn/watchdog.h"
#include "programs/control/control.h"
#include "runtime/runtime.h"

namespace {

using nlohmann::json;
using perflab::Nanoseconds;
using perflab::burn::Burn;
using perflab::burn::Settings;
using perflab::burn::Watchdog;
using perflab::control::Control;
using perflab::runtime::Error;

constexpr const char* kUsage =
    "usage: perflab-burn [--control-fd N] --cpus 0,1 --limit-ns N [--policy OTHER|FIFO|RR] [--priority P]"
    " [--nice N] [--load PERCENT] [--period-ns N]";
constexpr Nanoseconds kShortestPeriod = 100'000;
constexpr Nanoseconds kLongestPeriod = 60 * perflab::kNanosecondsPerSecond;
constexpr Nanoseconds kLongestLimit = 366 * 86'400 * perflab::kNanosecondsPerSecond;

struct Arguments {
  int control_fd = -1;
  Nanoseconds limit_ns = 0;
  Settings settings{};
};

// Throws a line that says what would be right.
template <typename Number>
Number number(std::string_view option, std::string_view text, Number lowest, Number highest) {
  Number value{};
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc() && rest == text.data() + text.size() && value >= lowest && value <= highest)
    return value;
  throw Error(Error::Kind::kBadInput, "--" + std::string(option) + " " + std::string(text) +
                                          ": must be a number from " + json(lowest).dump() + " to " +
                                          json(highest).dump());
}

std::vector<int> cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (true) {
    const std::size_t comma = text.find(',');
    cpus.push_back(number<int>("cpus", text.substr(0, comma), 0, 1'000'000));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::ranges::sort(cpus);
  const auto twice = std::ranges::adjacent_find(cpus);
  if (twice == cpus.end()) return cpus;
  throw Error(Error::Kind::kBadInput, "--cpus: CPU " + std::to_string(*twice) + " is named twice");
}

void set(Arguments& arguments, std::string_view option, std::string_view text) {
  Settings& settings = arguments.settings;
  if (option == "control-fd") {
    arguments.control_fd = number<int>(option, text, 0, 1'000'000);
  } else if (option == "limit-ns") {
    arguments.limit_ns = number<Nanoseconds>(option, text, 1, kLongestLimit);
  } else if (option == "policy") {
    const auto policy = perflab::realtime::policy_from_text(text);
    if (!policy)
      throw Error(Error::Kind::kBadInput, "--policy " + std::string(text) + ": must be OTHER, FIFO or RR");
    settings.policy = *policy;
  } else if (option == "priority") {
    settings.priority = number<int>(option, text, -1'000'000, 1'000'000);  // the kernel judges
  } else if (option == "nice") {
    settings.nice = number<int>(option, text, -20, 19);
  } else if (option == "cpus") {
    settings.cpus = cpu_list(text);
  } else if (option == "load") {
    settings.load = number<double>(option, text, 0.1, 100.0) / 100.0;
  } else if (option == "period-ns") {
    settings.period_ns = number<Nanoseconds>(option, text, kShortestPeriod, kLongestPeriod);
  }
}

// The control channel may be known although the rest is wrong: errors go there, too.
void parse(Arguments& arguments, int argc, char** argv) {
  static constexpr std::array<const char*, 8> kNames{"control-fd", "limit-ns", "policy", "priority",
                                                     "nice",       "cpus",     "load",   "period-ns"};
  std::array<option, kNames.size() + 1> options{};
  for (std::size_t i = 0; i < kNames.size(); ++i)
    options[i] = {kNames[i], required_argument, nullptr, static_cast<int>(i)};
  for (int found = 0; (found = getopt_long(argc, argv, "", options.data(), nullptr)) != -1;) {
    if (found == '?') throw Error(Error::Kind::kBadInput, kUsage);
    set(arguments, kNames[static_cast<std::size_t>(found)], optarg);
  }
  if (optind != argc || arguments.settings.cpus.empty() || arguments.limit_ns == 0)
    throw Error(Error::Kind::kBadInput, kUsage);
}

// SIGTERM, SIGINT and SIGHUP of all threads, to be read.
int blocked_signals() {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&taken, number);
  pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  return signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK);
}

json ready(const Burn& burn) {
  json threads = json::array();
  for (const perflab::realtime::ThreadState& thread : burn.threads())
    threads.push_back({{"tid", thread.tid},
                       {"policy", thread.policy},
                       {"priority", thread.priority},
                       {"nice", thread.nice},
                       {"cpus", thread.cpus}});
  return {{"type", "ready"}, {"threads", threads}};
}

// True if perflab told us to stop, or is gone.
bool told_to_stop(Control& control) {
  while (const auto message = control.receive(0)) {
    if (*message == json{{"type", "stop"}}) return true;
    throw Error(Error::Kind::kFailed, "control channel: unexpected line: " + message->dump().substr(0, 80));
  }
  return control.closed();
}

void wait_for_the_end(Control& control, const Watchdog& watchdog, int signals) {
  while (true) {
    // A descriptor of -1, as without a control channel, is left out.
    std::array<pollfd, 3> waiting{pollfd{control.descriptor(), POLLIN, 0},
                                  pollfd{watchdog.descriptor(), POLLIN, 0}, pollfd{signals, POLLIN, 0}};
    if (poll(waiting.data(), waiting.size(), -1) < 0 && errno != EINTR)
      throw Error(Error::Kind::kFailed, std::string("poll: ") + std::strerror(errno));
    if (waiting[1].revents != 0 || waiting[2].revents != 0) return;
    if (waiting[0].revents != 0 && told_to_stop(control)) return;
  }
}

void run(const Arguments& arguments, Control& control, int signals) {
  const Watchdog watchdog(arguments.limit_ns);
  Burn burn(arguments.settings, watchdog);
  control.send(ready(burn));
  burn.begin();
  wait_for_the_end(control, watchdog, signals);
  const Nanoseconds cpu_ns = burn.end();
  control.send({{"type", "done"}, {"cpu_ns", cpu_ns}, {"limit_reached", Watchdog::limit_reached()}});
}

int exit_code(Error::Kind kind) {
  if (kind == Error::Kind::kBadInput) return 2;
  return kind == Error::Kind::kUnsupported ? 3 : 1;
}

const char* text_of(Error::Kind kind) {
  if (kind == Error::Kind::kBadInput) return "bad_input";
  return kind == Error::Kind::kUnsupported ? "unsupported" : "failed";
}

int report(Control& control, Error::Kind kind, const char* text) {
  std::fprintf(stderr, "perflab-burn: %s\n", text);
  control.send({{"type", "error"}, {"kind", text_of(kind)}, {"text", text}});
  return exit_code(kind);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  std::optional<Error> wrong;
  opterr = 0;  // the usage says it
  try {
    parse(arguments, argc, argv);
  } catch (const Error& error) {
    wrong = error;
  }
  const pid_t parent = getppid();
  // At once: what burns must not be left alone. Nothing of ours needs an orderly end.
  if (arguments.control_fd >= 0 && (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)) {
    std::fprintf(stderr, "perflab-burn: perflab is gone\n");
    return 1;
  }
  const int signals = blocked_signals();
  Control control(arguments.control_fd);
  try {
    if (wrong) throw Error(*wrong);
    run(arguments, control, signals);
    return 0;
  } catch (const Error& error) {
    return report(control, error.kind(), error.what());
  } catch (const std::exception& error) {
    return report(control, Error::Kind::kFailed, error.what());
  }
}
