// perflab-churn: discovery churn during a workload, on its own topics (perflab_churn_1, ...).
//
//   perflab-churn --config FILE [--control-fd N]
//
// Lines out: {"type":"ready","at_ns"}, {"type":"progress","created","deleted","skipped","at_ns"} every 200 ms
// (to the file `records` if configured), {"type":"done",...} as the last line; errors as in perflab-node. It
// ends on {"type":"stop"}, SIGTERM, SIGINT, or when the channel closes, and deletes everything first: a
// killed participant remains in its domain until its lease ends.

#include <algorithm>
#include <csignal>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/line_file.h"
#include "base/program.h"
#include "programs/churn/churn.h"
#include "programs/churn/config.h"

namespace perflab::churn {
namespace {

using nlohmann::json;

constexpr Nanoseconds kProgressPeriod = 200'000'000;

json counts_line(const char* type, const Churn& churn, Nanoseconds at_ns) {
  return {{"type", type},
          {"at_ns", at_ns},
          {"created", churn.counts().created},
          {"deleted", churn.counts().deleted},
          {"skipped", churn.counts().skipped}};
}

// Writes progress to the file, or to the control channel if there is none.
class Progress {
 public:
  Progress(const std::string& file, Control& control) : control_(control) {
    if (!file.empty()) file_.emplace(file);
  }

  void write(const json& line) {
    if (!file_) {
      control_.send_replaceable(line);
    } else if (!file_->write(line.dump() + "\n")) {
      throw Failed(file_->error());
    }
  }

 private:
  Control& control_;
  std::optional<LineFile> file_;
};

void run(const Config& config, Control& control) {
  // For all threads, which inherit it.
  const Descriptor signals = take_signals({SIGTERM, SIGINT});
  const measure::MonotonicClock clock;
  Churn churn(config, clock);
  Progress progress(config.records, control);
  control.send({{"type", "ready"}, {"at_ns", clock.now()}});
  churn.start(clock.now());
  Nanoseconds next_progress = clock.now();
  while (next_signal(signals) == 0 && !control.closed()) {
    Nanoseconds now = clock.now();
    if (now >= next_progress) {
      progress.write(counts_line("progress", churn, now));
      next_progress = std::max(next_progress + kProgressPeriod, now);
    }
    if (churn.next_due() <= now) churn.run_cycle(now);
    const Nanoseconds left = std::min(churn.next_due(), next_progress) - clock.now();
    const auto message = control.receive(std::max<Nanoseconds>(0, left), {signals.number()});
    if (message && message->value("type", "") == "stop") break;
  }
  progress.write(counts_line("progress", churn, clock.now()));
  churn.clear();
  control.send(counts_line("done", churn, clock.now()));
}

}  // namespace
}  // namespace perflab::churn

int main(int argc, char** argv) {
  using namespace perflab;
  std::string config_file;
  Program program("perflab-churn", "--config FILE [--control-fd N]", WhenPerflabEnds::kFinish);
  program.options().text("config", config_file);
  return program.run(argc, argv, [&](Control& control) {
    program.options().require(!config_file.empty());
    churn::run(churn::read_config(config_file), control);
  });
}
