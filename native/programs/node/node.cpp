#include "programs/node/node.h"

#include <malloc.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "measure/histogram_codec.h"
#include "middleware/plugin.h"
#include "runtime/dds/dds_runtime.h"
#include "runtime/virtual/virtual_runtime.h"

namespace perflab::node {
namespace {

using nlohmann::json;

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kProgressPeriod = kNanosecondsPerSecond;
// While draining, so that perflab sees soon that all is at rest.
constexpr Nanoseconds kDrainProgressPeriod = 50 * kMillisecond;
// How long a node by itself, without perflab, waits for messages after the last one.
constexpr Nanoseconds kDrainQuiet = kNanosecondsPerSecond;

Nanoseconds wall_clock() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<Nanoseconds>(time.tv_sec) * kNanosecondsPerSecond + time.tv_nsec;
}

std::unique_ptr<runtime::Runtime> make_runtime(const Config& config, const measure::Clock& clock,
                                               runtime::EventSink& events) {
  if (config.runtime == "virtual") {
    return std::make_unique<runtime::VirtualRuntime>(config.middleware_options, config.seed);
  }
  try {
    return std::make_unique<runtime::DdsRuntime>(
        middleware::Plugin::load(config.middleware_library),
        middleware::ParticipantSettings{
            .domain = config.domain,
            .network = config.network,
            .participants_expected = static_cast<std::uint32_t>(config.graph.processes.size()),
            .options = config.middleware_options},
        clock, events);
  } catch (const middleware::Error& error) {
    throw runtime::Error(runtime::Error::Kind::kUnsupported, error.what());
  }
}

perflab_identity identity_from_hex(const std::string& text) {
  perflab_identity identity{};
  if (text.size() != 2 * sizeof identity.bytes ||
      text.find_first_not_of("0123456789abcdef") != std::string::npos) {
    throw runtime::Error(runtime::Error::Kind::kFailed, "control channel: '" + text + "' is no identity");
  }
  for (std::size_t i = 0; i < sizeof identity.bytes; ++i) {
    identity.bytes[i] = static_cast<std::uint8_t>(std::stoi(text.substr(2 * i, 2), nullptr, 16));
  }
  return identity;
}

json writer_list(const std::vector<graph::WriterName>& writers) {
  json list = json::array();
  for (const graph::WriterName& writer : writers) {
    list.push_back(
        {{"node", writer.node}, {"topic", writer.topic}, {"identity", middleware::to_hex(writer.identity)}});
  }
  return list;
}

}  // namespace

Node::Node(const Config& config, Control& control)
    : config_(config), control_(control), records_(config.records) {
  events_.note(clock_.now(), "process_started");
  // Before the middleware: start-up and discovery belong to the resources.
  if (config.runtime != "virtual") sampler_ = std::make_unique<Sampler>(clock_, config.sampling_ns, records_);
  runtime_ = make_runtime(config, clock_, events_);
  events_.note(clock_.now(), "participant_created");
  live_ = std::make_unique<graph::LiveGraph>(config.graph, config.process, *runtime_, message_events_,
                                             config.live);
  events_.note(clock_.now(), "endpoints_created");
  write_process_record();
  // Parsing the graph left much more free heap than the run needs.
  malloc_trim(0);
}

// The runtime's threads end before what their handlers use.
Node::~Node() { runtime_->stop(); }

void Node::write_process_record() {
  json executors = json::array();
  for (std::size_t p = 0; p < config_.graph.processes.size(); ++p) {
    if (config_.process && *config_.process != p) continue;
    for (const graph::Executor& executor : config_.graph.processes[p].executors) {
      const bool is_inline = config_.live.executor ? *config_.live.executor == runtime::ExecutorKind::kInline
                                                   : executor.kind == graph::ExecutorKind::kInline;
      executors.push_back({{"process", config_.graph.processes[p].name},
                           {"id", executor.id},
                           {"kind", is_inline ? "inline" : "single_threaded"}});
    }
  }
  records_.write({{"type", "process"},
                  {"pid", getpid()},
                  {"process", config_.process_name},
                  {"started_ns", clock_.now()},
                  {"wall_ns", wall_clock()},
                  {"middleware", json::parse(runtime_->describe())},
                  {"executors", std::move(executors)},
                  {"clock_cost_ns", measure::clock_cost(clock_)}});
}

void Node::run() {
  control_.send({{"type", "created"}, {"pid", getpid()}, {"writers", writer_list(live_->writers())}});
  const bool matched = await_discovery();
  const std::optional<Start> start = stop_asked_ ? std::nullopt : await_start(matched);
  if (!start) {
    finish();
    return;
  }
  live_->set_writers(start->writers);
  const Nanoseconds measured_from = start->at_ns + config_.live.warmup_ns;
  records_.write({{"type", "start"},
                  {"at_ns", start->at_ns},
                  {"measured_from_ns", measured_from},
                  {"measured_until_ns", measured_from + config_.live.duration_ns},
                  {"matched", matched}});
  // Whatever goes wrong from here on, what was measured is written.
  try {
    measure(start->at_ns, measured_from);
  } catch (...) {
    finish();
    throw;
  }
  finish();
  if (const std::string failure = events_.failure(); !failure.empty()) {
    throw runtime::Error(runtime::Error::Kind::kFailed, failure);
  }
}

// A process without timers of its own also waits for the end of the measured part before it reports as one
// that drains.
bool Node::publishing_ended(Nanoseconds measured_from) const {
  if (!runtime_->timers_done()) return false;
  return config_.runtime == "virtual" || clock_.now() >= measured_from + config_.live.duration_ns;
}

bool Node::await_discovery() {
  const Nanoseconds begin = clock_.now();
  Nanoseconds next_report = begin + kNanosecondsPerSecond;
  while (true) {
    const std::vector<std::string> unmatched = live_->unmatched();
    const Nanoseconds now = clock_.now();
    if (unmatched.empty()) {
      if (events_.last_participant_at() != kUnknownTime) {
        events_.note(events_.last_participant_at(), "all_participants_found",
                     std::to_string(events_.participants_found()));
      }
      // In virtual time nothing is discovered: everybody knows everybody from the beginning.
      if (config_.runtime != "virtual") {
        events_.note(events_.last_match_at() == kUnknownTime ? now : events_.last_match_at(),
                     "all_endpoints_matched");
      }
      return true;
    }
    if (now - begin >= config_.discovery_timeout_ns) return false;
    if (now >= next_report) {
      control_.send({{"type", "waiting"}, {"unmatched", unmatched}});
      next_report += kNanosecondsPerSecond;
    }
    // Nothing is asked of the node before it is ready, except to stop.
    const auto message = control_.receive(5 * kMillisecond);
    stop_asked_ = stop_asked_ || (message && message->at("type") == "stop");
    if (stop_asked_ || control_.closed()) return false;
  }
}

std::optional<Node::Start> Node::await_start(bool matched) {
  std::vector<std::string> unmatched = live_->unmatched();
  for (const std::string& line : events_.incompatibilities())
    unmatched.push_back("incompatible QoS on " + line);
  control_.send({{"type", "ready"}, {"matched", matched}, {"unmatched", unmatched}});
  if (!control_.attached()) return Start{clock_.now() + 100 * kMillisecond, live_->writers()};
  while (!control_.closed()) {
    const auto message = control_.receive(100 * kMillisecond);
    events_.flush(records_, message_events_);
    if (!message) continue;
    if (message->at("type") == "stop") return std::nullopt;
    if (message->at("type") != "start") continue;
    Start start{message->at("at_ns").get<Nanoseconds>(), {}};
    for (const json& writer : message->at("writers")) {
      start.writers.push_back({writer.at("node").get<std::string>(), writer.at("topic").get<std::string>(),
                               identity_from_hex(writer.at("identity").get<std::string>())});
    }
    return start;
  }
  return std::nullopt;
}

void Node::measure(Nanoseconds start_ns, Nanoseconds measured_from) {
  live_->start(measured_from);
  const Nanoseconds started = clock_.now();
  events_.note(started, "started");
  if (config_.runtime != "virtual" && started > start_ns) {
    // Others may have sent already what nobody here was ready to receive.
    throw runtime::Error(runtime::Error::Kind::kFailed,
                         "process " + config_.process_name + " was ready " +
                             std::to_string((started - start_ns) / kMillisecond + 1) +
                             " ms after the common start: the machine is too busy");
  }
  Nanoseconds next_progress = started + kProgressPeriod;
  // The first one soon: a trial that fails early has something to show.
  Nanoseconds next_checkpoint = started + std::min(config_.checkpoint_ns, kNanosecondsPerSecond);
  Nanoseconds last_change = started;
  std::uint64_t last_completed = 0;
  bool publishing = true;
  while (true) {
    const Nanoseconds wake = std::min(next_progress, next_checkpoint);
    const auto message = control_.receive(std::max<Nanoseconds>(
        0, std::min(wake - clock_.now(), publishing ? 100 * kMillisecond : kDrainProgressPeriod)));
    if (message && message->at("type") == "stop") break;
    if (control_.attached() && control_.closed()) break;
    if (!events_.failure().empty()) break;
    if (publishing && publishing_ended(measured_from)) {
      publishing = false;
      events_.note(clock_.now(), "publishing_ended");
      next_progress = clock_.now();
    }
    const Nanoseconds now = clock_.now();
    events_.flush(records_, message_events_);
    if (now >= next_progress) {
      send_progress(measured_from, publishing);
      next_progress = now + (publishing ? kProgressPeriod : kDrainProgressPeriod);
    }
    if (now >= next_checkpoint) {
      write_checkpoint(false);
      // A long trial writes more rarely, so that its file stays in proportion.
      next_checkpoint = now + std::max(config_.checkpoint_ns, (now - started) / 100);
    }
    if (!control_.attached() && !publishing) {
      const graph::Totals totals = live_->totals();
      if (totals.completed != last_completed) last_change = now;
      last_completed = totals.completed;
      if (totals.completed == totals.deliveries_expected || now - last_change > kDrainQuiet) break;
    }
  }
}

void Node::send_progress(Nanoseconds measured_from, bool publishing) {
  const graph::Totals totals = live_->totals();
  const Nanoseconds now = runtime_->clock().now();
  const std::string error = records_.error();
  control_.send({{"type", "progress"},
                 {"at_ns", now},
                 {"elapsed_ns", now - measured_from},
                 {"publishing", publishing},
                 {"sent", totals.sent},
                 {"deliveries_expected", totals.deliveries_expected},
                 {"received", totals.received},
                 {"completed", totals.completed},
                 {"lost", totals.lost},
                 {"latency", measure::encode_v2_base64(live_->merged_latency())},
                 {"checkpoint_error", error.empty() ? json(nullptr) : json(error)}});
}

void Node::write_checkpoint(bool final) {
  records_.write_line(checkpoint_line(*live_, runtime_->clock().now(), final));
}

void Node::finish() {
  runtime_->stop();
  events_.note(clock_.now(), "stopped");
  events_.flush(records_, message_events_);
  events_.finish(records_, message_events_, clock_.now());
  if (sampler_) sampler_->stop();
  write_checkpoint(true);
  records_.write(
      {{"type", "process_end"}, {"at_ns", clock_.now()}, {"middleware", json::parse(runtime_->describe())}});
  const std::string error = records_.error();
  if (!error.empty()) throw runtime::Error(runtime::Error::Kind::kFailed, error);
  control_.send({{"type", "done"}, {"files", json::array({records_.path()})}});
}

}  // namespace perflab::node
