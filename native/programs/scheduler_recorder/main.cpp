// perflab-scheduler-recorder: records scheduler events of all CPUs as CTF with the names of LTTng's kernel
// tracer.
//
//   perflab-scheduler-recorder --output DIR [--source perf_event|ebpf] [--root PID]... [--locks]
//                              [--buffer-bytes N] [--flight-recorder BYTES] [--control-fd N] [--duration-s S]
//   perflab-scheduler-recorder --check [--source perf_event|ebpf] [--locks]
//
// --check records nothing, and reports whether recording is possible. Ends when told to on the control
// channel, when that closes, with its parent, on SIGTERM and SIGINT, and after the duration; the recording is
// then on disk (docs/recording.md).

#include <cmath>
#include <csignal>
#include <cstdio>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/program.h"
#include "base/time.h"
#include "realtime/thread.h"
#include "tracing/scheduler/recording.h"
#include "tracing/scheduler/source.h"

namespace {

using namespace perflab;
using namespace perflab::tracing;
using nlohmann::json;

constexpr const char* kArguments =
    "--output DIR [--source perf_event|ebpf] [--root PID]... [--locks] [--buffer-bytes N] [--flight-recorder "
    "BYTES] [--control-fd N] [--duration-s S] | --check [--source perf_event|ebpf] [--locks]";
constexpr int kMostPid = std::numeric_limits<int>::max();
// Interval for reading buffers that are not a quarter full; their content is on disk within a second.
constexpr Nanoseconds kStep = 100'000'000;
constexpr Nanoseconds kFlush = 1'000'000'000;

volatile std::sig_atomic_t told_to_end = 0;

struct Arguments {
  bool check = false;
  std::string source = "perf_event";
  std::optional<double> duration_s;
  SourceSettings source_settings;
  RecordingSettings recording;
};

void set_options(Options& options, Arguments& arguments) {
  options.flag("check", arguments.check)
      .flag("locks", arguments.source_settings.futexes)
      .text("output", arguments.recording.folder)
      .value("source",
             [&](std::string_view text) {
               if (text != "perf_event" && text != "ebpf")
                 throw BadInput("--source " + std::string(text) + ": must be perf_event or ebpf");
               arguments.source = text;
             })
      .value("root",
             [&](std::string_view text) {
               arguments.recording.roots.push_back(parse_number("root", text, 1, kMostPid));
             })
      .number("buffer-bytes", arguments.source_settings.buffer_bytes, std::size_t{4096},
              std::size_t{1} << 30U)
      .number("flight-recorder", arguments.recording.flight_recorder_bytes, std::size_t{65536},
              std::size_t{1} << 36U)
      .value("duration-s", [&](std::string_view text) {
        arguments.duration_s = parse_number("duration-s", text, 0.0, 1e9);
      });
}

std::unique_ptr<Source> open_source(const Arguments& arguments) {
  SourceSettings settings = arguments.source_settings;
  if (arguments.source == "ebpf") {
#ifdef PERFLAB_EBPF_SOURCE
    return open_ebpf_source(settings);
#else
    throw Unsupported(
        "this build has no eBPF source: `apt install clang libbpf-dev` and rebuild with `make`, or "
        "use "
        "--source perf_event");
#endif
  }
  return open_perf_source(settings);
}

// If the kernel filters, the sequence of switches on a CPU cannot be checked.
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
          {"recovered_wakeups", totals.recovered_wakeups ? json(*totals.recovered_wakeups) : json(nullptr)},
          {"withheld", totals.withheld},
          {"backwards", totals.backwards}};
}

// Handles perflab's messages. True: end.
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
    } catch (const BadInput& gone) {
      // It has ended meanwhile: it cannot be recorded, and the recording continues.
      control.send({{"type", "gone"}, {"pid", message->at("pid")}, {"text", gone.what()}});
    }
  }
  return control.closed();
}

void run(const Arguments& arguments, Control& control) {
  const std::unique_ptr<Source> source = open_source(arguments);
  if (arguments.check) return;
  std::optional<Recording> recording;
  try {
    recording.emplace(arguments.recording, *source);
  } catch (const CtfOutputError& error) {
    throw BadInput(std::string("--output ") + error.what());
  }
  source->start();
  const Nanoseconds begin = read_clock(CLOCK_MONOTONIC);
  control.send(
      {{"type", "recording"}, {"source", source->name()}, {"cpus", source->cpus().size()}, {"at_ns", begin}});
  const Nanoseconds end = arguments.duration_s
                              ? begin + static_cast<Nanoseconds>(std::llround(*arguments.duration_s * 1e9))
                              : std::numeric_limits<Nanoseconds>::max();
  Nanoseconds flushed = begin;
  try {
    while (told_to_end == 0 && !heard_the_end(control, *recording)) {
      const Nanoseconds now = read_clock(CLOCK_MONOTONIC);
      if (now >= end) break;
      recording->step(std::min(kStep, end - now));
      if (now - flushed < kFlush) continue;
      recording->flush();
      flushed = now;
    }
  } catch (const CtfOutputError&) {
    throw;  // no further output is possible
  } catch (...) {
    // After any error, what was recorded until then is kept; the first error is the one to report.
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

}  // namespace

int main(int argc, char** argv) {
  struct sigaction action {};
  action.sa_handler = [](int) { told_to_end = 1; };  // without SA_RESTART: a signal ends the wait for events
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
  Arguments arguments;
  // Orderly: what was recorded until perflab ended is worth keeping.
  Program program("perflab-scheduler-recorder", kArguments, WhenPerflabEnds::kTerminate);
  set_options(program.options(), arguments);
  return program.run(argc, argv, [&](Control& control) {
    program.options().require(arguments.recording.folder.empty() == arguments.check);
    realtime::name_this_thread("sched_recorder");
    run(arguments, control);
  });
}
