// perflab-scheduler-recorder: what the scheduler does on all CPUs, as CTF with the names of LTTng's kernel
// tracer.
//
//   perflab-scheduler-recorder --output DIR [--source perf_event|ebpf] [--root PID]... [--buffer-bytes N]
//                              [--flight-recorder BYTES] [--control-fd N] [--duration-s S]
//   perflab-scheduler-recorder --check [--source perf_event|ebpf]
//
// With --check nothing is recorded: it says whether it could be.
// Ends when told so on the control channel, when that closes, with its parent, on SIGTERM and SIGINT, and
// after the duration; what was recorded is then on disk (docs/recording.md).

#include <getopt.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/control.h"
#include "measure/clock.h"
#include "realtime/thread.h"
#include "tracing/scheduler/recording.h"
#include "tracing/scheduler/source.h"

namespace {

using nlohmann::json;
using perflab::Control;
using perflab::Nanoseconds;
using namespace perflab::tracing;

constexpr const char* kUsage =
    "usage: perflab-scheduler-recorder --output DIR [--source perf_event|ebpf] [--root PID]... "
    "[--buffer-bytes N]"
    " [--flight-recorder BYTES] [--control-fd N] [--duration-s S] | --check [--source perf_event|ebpf]";
// Buffers are looked at that often even when they are not a quarter full, and what they held is on disk after
// a second.
constexpr Nanoseconds kStep = 100'000'000;
constexpr Nanoseconds kFlush = 1'000'000'000;

volatile std::sig_atomic_t told_to_end = 0;

void on_signal(int) { told_to_end = 1; }

struct Arguments {
  int control_fd = -1;
  bool check = false;
  std::string source = "perf_event";
  std::optional<double> duration_s;
  SourceSettings source_settings;
  RecordingSettings recording;
};

template <typename Number>
Number number(std::string_view option, std::string_view text, Number lowest, Number highest) {
  Number value{};
  const auto [rest, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem == std::errc() && rest == text.data() + text.size() && value >= lowest && value <= highest)
    return value;
  throw std::invalid_argument("--" + std::string(option) + " " + std::string(text) +
                              ": must be a number from " + json(lowest).dump() + " to " +
                              json(highest).dump());
}

void set(Arguments& arguments, std::string_view option, std::string_view text) {
  if (option == "output") {
    arguments.recording.folder = text;
  } else if (option == "source") {
    if (text != "perf_event" && text != "ebpf")
      throw std::invalid_argument("--source " + std::string(text) + ": must be perf_event or ebpf");
    arguments.source = text;
  } else if (option == "root") {
    arguments.recording.roots.push_back(
        number<std::int32_t>(option, text, 1, std::numeric_limits<std::int32_t>::max()));
  } else if (option == "buffer-bytes") {
    arguments.source_settings.buffer_bytes = number<std::size_t>(option, text, 4096, std::size_t{1} << 30U);
  } else if (option == "flight-recorder") {
    arguments.recording.flight_recorder_bytes =
        number<std::size_t>(option, text, 65536, std::size_t{1} << 36U);
  } else if (option == "control-fd") {
    arguments.control_fd = number<int>(option, text, 0, 1'000'000);
  } else if (option == "duration-s") {
    arguments.duration_s = number<double>(option, text, 0.0, 1e9);
  }
}

// The control channel may be known although the rest is wrong: errors go there, too.
void parse(Arguments& arguments, int argc, char** argv) {
  static constexpr std::array<const char*, 7> kNames{"control-fd",   "output",          "source",    "root",
                                                     "buffer-bytes", "flight-recorder", "duration-s"};
  constexpr int kCheck = kNames.size();
  std::array<option, kNames.size() + 2> options{};
  for (std::size_t i = 0; i < kNames.size(); ++i)
    options[i] = {kNames[i], required_argument, nullptr, static_cast<int>(i)};
  options[kCheck] = {"check", no_argument, nullptr, kCheck};
  std::optional<std::invalid_argument> wrong;
  for (int found = 0; (found = getopt_long(argc, argv, "", options.data(), nullptr)) != -1;) {
    if (found == '?') {
      wrong = std::invalid_argument(kUsage);
      continue;
    }
    if (found == kCheck) {
      arguments.check = true;
      continue;
    }
    try {
      set(arguments, kNames[static_cast<std::size_t>(found)], optarg);
    } catch (const std::invalid_argument& error) {
      if (!wrong) wrong = error;
    }
  }
  if (wrong) throw std::invalid_argument(*wrong);
  if (optind != argc || arguments.recording.folder.empty() != arguments.check)
    throw std::invalid_argument(kUsage);
}

std::unique_ptr<Source> open_source(const Arguments& arguments) {
  SourceSettings settings = arguments.source_settings;
  if (arguments.source == "ebpf") {
#ifdef PERFLAB_EBPF_SOURCE
    return open_ebpf_source(settings);
#else
    throw Unavailable(
        "this build has no eBPF source: `apt install clang libbpf-dev` and build it again with `make`, or "
        "use "
        "--source perf_event");
#endif
  }
  return open_perf_source(settings);
}

// Where the kernel leaves events out, what follows on what cannot be checked.
json done(const RecordingTotals& totals, bool kernel_filters) {
  json by_event = json::object();
  for (std::size_t i = 0; i < kEventNames.size(); ++i) by_event[kEventNames[i]] = totals.by_event[i];
  json losses = json::array();
  for (const Loss& loss : totals.losses)
    losses.push_back({{"cpu", loss.cpu ? json(*loss.cpu) : json(nullptr)},
                      {"after_ns", loss.after_ns},
                      {"before_ns", loss.before_ns},
                      {"events", loss.events}});
  return {{"type", "done"},
          {"events", totals.events},
          {"by_event", by_event},
          {"lost", totals.lost},
          {"losses", losses},
          {"bytes", totals.bytes},
          {"filtered_out", totals.filtered_out},
          {"chain_breaks", kernel_filters ? json(nullptr) : json(totals.chain_breaks)},
          {"recovered", totals.recovered},
          {"withheld", totals.withheld},
          {"backwards", totals.backwards}};
}

// What perflab says meanwhile. True: it is over.
bool heard_the_end(Control& control, Recording& recording) {
  if (!control.attached()) return false;
  while (const auto message = control.receive(0)) {
    if (*message == json{{"type", "stop"}}) return true;
    const bool is_root = message->is_object() && message->value("type", "") == "root" &&
                         message->contains("pid") && message->at("pid").is_number_integer();
    if (!is_root)
      throw std::runtime_error("control channel: unexpected line: " + message->dump().substr(0, 80));
    try {
      recording.add_root(message->at("pid").get<std::int32_t>());
    } catch (const std::invalid_argument& gone) {
      // It has ended since: nothing of it can be recorded, and the rest goes on.
      control.send({{"type", "gone"}, {"pid", message->at("pid")}, {"text", gone.what()}});
    }
  }
  return control.closed();
}

void run(const Arguments& arguments, Control& control) {
  const perflab::measure::MonotonicClock clock;
  const std::unique_ptr<Source> source = open_source(arguments);
  if (arguments.check) return;
  std::optional<Recording> recording;
  try {
    recording.emplace(arguments.recording, *source);
  } catch (const CtfOutputError& error) {
    throw std::invalid_argument(std::string("--output ") + error.what());
  }
  source->start();
  const Nanoseconds begin = clock.now();
  control.send(
      {{"type", "recording"}, {"source", source->name()}, {"cpus", source->cpus().size()}, {"at_ns", begin}});
  const Nanoseconds end = arguments.duration_s
                              ? begin + static_cast<Nanoseconds>(std::llround(*arguments.duration_s * 1e9))
                              : std::numeric_limits<Nanoseconds>::max();
  Nanoseconds flushed = begin;
  try {
    while (told_to_end == 0 && !heard_the_end(control, *recording)) {
      const Nanoseconds now = clock.now();
      if (now >= end) break;
      recording->step(std::min(kStep, end - now));
      if (now - flushed < kFlush) continue;
      recording->flush();
      flushed = now;
    }
  } catch (const CtfOutputError&) {
    throw;  // nothing more can be written
  } catch (...) {
    // Whatever went wrong, what was recorded until then is kept; the first reason is the one to tell.
    try {
      recording->stop();
    } catch (const std::exception&) {
    }
    throw;
  }
  recording->stop();
  const json line = done(recording->totals(), source->filters() && !arguments.recording.roots.empty());
  control.send(line);
  if (!control.attached()) std::printf("%s\n", line.dump().c_str());
}

int report(Control& control, int status, const char* text) {
  const char* const kind = status == 2 ? "bad_input" : status == 3 ? "unsupported" : "failed";
  std::fprintf(stderr, "perflab-scheduler-recorder: %s\n", text);
  control.send({{"type", "error"}, {"kind", kind}, {"text", text}});
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  std::optional<std::invalid_argument> wrong;
  opterr = 0;  // the usage says it
  try {
    parse(arguments, argc, argv);
  } catch (const std::invalid_argument& error) {
    wrong = error;
  }
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART: a signal ends the wait for events
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  // A file size limit is an error of a write like any other, not the end of the process.
  std::signal(SIGXFSZ, SIG_IGN);
  const pid_t parent = getppid();
  // In order: what was recorded until then is worth keeping.
  if (arguments.control_fd >= 0 && (prctl(PR_SET_PDEATHSIG, SIGTERM) != 0 || getppid() != parent)) {
    std::fprintf(stderr, "perflab-scheduler-recorder: perflab is gone\n");
    return 1;
  }
  perflab::realtime::name_this_thread("sched_recorder");
  Control control(arguments.control_fd);
  try {
    if (wrong) throw std::invalid_argument(*wrong);
    run(arguments, control);
    return 0;
  } catch (const std::invalid_argument& error) {
    return report(control, 2, error.what());
  } catch (const Unavailable& error) {
    return report(control, 3, error.what());
  } catch (const std::exception& error) {
    return report(control, 1, error.what());
  }
}
