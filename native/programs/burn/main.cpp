// perflab-burn: uses CPU time with a policy and a priority, for a limited time.
//
//   perflab-burn [--control-fd N] --cpus 0,1 --limit-ns L [--policy OTHER|FIFO|RR] [--priority P] [--nice N]
//                [--load PERCENT] [--period-ns N] [--amount-ns N]
//
// Ends when told to on the control channel, when that closes, with its parent, on SIGTERM, SIGINT and SIGHUP,
// and in any case when the limit is reached (docs/formats.md). Without a control channel it runs on its own.

#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "base/program.h"
#include "programs/burn/burn.h"
#include "programs/burn/watchdog.h"

namespace perflab::burn {
namespace {

using nlohmann::json;

constexpr const char* kArguments =
    "[--control-fd N] --cpus 0,1 --limit-ns N [--policy OTHER|FIFO|RR] [--priority P] [--nice N]"
    " [--load PERCENT] [--period-ns N] [--amount-ns N]";
constexpr Nanoseconds kShortestPeriod = 100'000;
constexpr Nanoseconds kLongestPeriod = 60 * kNanosecondsPerSecond;
constexpr Nanoseconds kLongestLimit = 366 * 86'400 * kNanosecondsPerSecond;

std::vector<int> cpu_list(std::string_view text) {
  std::vector<int> cpus;
  while (true) {
    const std::size_t comma = text.find(',');
    cpus.push_back(parse_number("cpus", text.substr(0, comma), 0, 1'000'000));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  std::ranges::sort(cpus);
  const auto twice = std::ranges::adjacent_find(cpus);
  if (twice == cpus.end()) return cpus;
  throw BadInput("--cpus: CPU " + std::to_string(*twice) + " is named twice");
}

realtime::Policy policy(std::string_view text) {
  const auto known = realtime::policy_from_text(text);
  if (known && *known != realtime::Policy::kDeadline) return *known;
  throw BadInput("--policy " + std::string(text) + ": must be OTHER, FIFO or RR");
}

json ready(const Burn& burn) {
  json threads = json::array();
  for (const realtime::ThreadState& thread : burn.threads())
    threads.push_back({{"tid", thread.tid},
                       {"policy", thread.policy},
                       {"priority", thread.priority},
                       {"nice", thread.nice},
                       {"cpus", thread.cpus}});
  return {{"type", "ready"}, {"threads", threads}};
}

// Reports when a finite amount has been used: the burning threads have ended, and the program waits to be
// asked.
void wait_for_the_end(Control& control, const Burn& burn, const Watchdog& watchdog, const Descriptor& signals) {
  auto message =
      control.receive(Control::kForever, {watchdog.descriptor(), signals.number(), burn.spent_descriptor()});
  if (const auto spent_at = burn.spent_at(); !message && spent_at && !Watchdog::limit_reached()) {
    control.send({{"type", "spent"}, {"at_ns", *spent_at}});
    if (!control.attached()) return;  // nobody will ask
    message = control.receive(Control::kForever, {watchdog.descriptor(), signals.number()});
  }
  if (!message || *message == json{{"type", "stop"}}) return;
  throw Failed("control channel: unexpected line: " + message->dump().substr(0, 80));
}

void run(const Settings& settings, Nanoseconds limit_ns, Control& control) {
  // For all threads, which inherit it.
  const Descriptor signals = take_signals({SIGTERM, SIGINT, SIGHUP});
  const Watchdog watchdog(limit_ns);
  Burn burn(settings, watchdog);
  control.send(ready(burn));
  burn.begin();
  wait_for_the_end(control, burn, watchdog, signals);
  const Nanoseconds cpu_ns = burn.end();
  control.send({{"type", "done"}, {"cpu_ns", cpu_ns}, {"limit_reached", Watchdog::limit_reached()}});
}

}  // namespace
}  // namespace perflab::burn

int main(int argc, char** argv) {
  using namespace perflab;
  burn::Settings settings;
  Nanoseconds limit_ns = 0;
  // Burning threads must not outlive perflab, and need no orderly end.
  Program program("perflab-burn", burn::kArguments, WhenPerflabEnds::kKill);
  Options& options = program.options();
  options.number("limit-ns", limit_ns, Nanoseconds{1}, burn::kLongestLimit)
      .number("priority", settings.priority, -1'000'000, 1'000'000)  // the kernel checks the range
      .number("nice", settings.nice, -20, 19)
      .number("amount-ns", settings.amount_ns, Nanoseconds{1}, burn::kLongestLimit)
      .number("period-ns", settings.period_ns, burn::kShortestPeriod, burn::kLongestPeriod)
      .value("policy", [&](std::string_view text) { settings.policy = burn::policy(text); })
      .value("cpus", [&](std::string_view text) { settings.cpus = burn::cpu_list(text); })
      .value("load",
             [&](std::string_view text) { settings.load = parse_number("load", text, 0.1, 100.0) / 100.0; });
  return program.run(argc, argv, [&](Control& control) {
    options.require(!settings.cpus.empty() && limit_ns > 0);
    burn::run(settings, limit_ns, control);
  });
}
