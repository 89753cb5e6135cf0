#include "program/node.h"

#include <malloc.h>
#include <signal.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "graph/resolved.h"
#include "graph/vocabulary.h"
#include "measure/histogram_codec.h"
#include "middleware/host/plugin.h"
#include "realtime/thread.h"

namespace perflab::node {
namespace {

using nlohmann::json;

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kProgressPeriod = kNanosecondsPerSecond;
// While draining, so that perflab soon sees that nothing moves any more.
constexpr Nanoseconds kDrainProgressPeriod = 50 * kMillisecond;
// From the start line to the last check of the peers, and from then to the start.
constexpr Nanoseconds kSettling = 150 * kMillisecond;
// While all endpoints are matched, but some peer has another type.
constexpr Nanoseconds kBetweenLooksAtTypes = 100 * kMillisecond;
// How long a node on its own, without perflab, waits for messages after the last one.
constexpr Nanoseconds kDrainQuiet = kNanosecondsPerSecond;

json pass_by_json(graph::PassBy pass_by) {
  return pass_by == graph::PassBy::kUnspecified ? json(nullptr)
                                                : json(graph::word_of(graph::kPassByWords, pass_by));
}

// A thread and its requested scheduling.
struct WatchedThread {
  realtime::ThreadState state;
  const char* role;
  realtime::ThreadSettings asked;
};

std::vector<WatchedThread> watched_threads(const graph::Process& process, const std::vector<int>& tracer) {
  const std::vector<realtime::OwnThread> own = realtime::own_threads();
  std::vector<WatchedThread> threads;
  for (realtime::ThreadState& state : realtime::read_threads()) {
    const auto known = std::ranges::find(own, state.tid, &realtime::OwnThread::tid);
    if (std::ranges::find(tracer, state.tid) != tracer.end()) {
      threads.push_back({std::move(state), "tracer", {}});
    } else if (known == own.end()) {
      threads.push_back({std::move(state), "middleware", process.threads.middleware});
    } else {
      threads.push_back({std::move(state), realtime::to_text(known->role), known->asked});
    }
  }
  return threads;
}

[[noreturn]] void refuse(const std::string& process, const std::string& what) {
  throw Unsupported("process " + process + ", " + what);
}

// Tries the scheduling of all threads before anything is created.
void try_executors(const graph::Process& process) {
  const auto attempt = [&process](const std::string& who, const realtime::ThreadSettings& settings) {
    try {
      const realtime::Inherited trial(settings);
    } catch (const realtime::SchedulingError& error) {
      refuse(process.name, who + ": " + error.what());
    }
  };
  attempt("threads of executors", process.threads.executors);
  for (const auto& [name, settings] : process.threads.program) attempt("thread " + name, settings);
  for (const graph::Executor& executor : process.executors) {
    attempt("executor " + std::to_string(executor.id), executor.thread);
  }
}

perflab_identity identity_of(const std::string& text) {
  if (const auto identity = middleware::identity_from_hex(text)) return *identity;
  throw Failed("control channel: '" + text + "' is not an identity");
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

Node::Node(const Config& config, Control& control, const program::Make& make)
    : config_(config), control_(control), records_(config.records) {
  require_program(make != nullptr);
  events_.note(clock_.now(), "process_started");
  realtime::register_this_thread(realtime::Role::kPerflab);
  start_runtime();
  if (make) {
    const Nanoseconds duration_ns = config_.live.ends_by_itself() ? config_.live.duration_ns : config_.graph.limit_ns;
    host_ = std::make_unique<program::Host>(*processes().front(), *live_, config_.seed, config_.domain, duration_ns);
    host_->make(make);
  }
  write_process_record();
  // Parsing the graph left much more free heap than the run needs.
  malloc_trim(0);
}

void Node::require_program(bool has_application) const {
  for (const graph::Process* process : processes()) {
    if (!process->program.empty() && !real_time())
      refuse(process->name, "program: a program cannot run in virtual time; use a real middleware");
    if (!process->program.empty() && !has_application)
      throw BadInput("process " + process->name + ", program: this is perflab-node, which has no program; "
                                                  "right would be " +
                     process->program);
    if (process->program.empty() && has_application)
      throw BadInput("process " + process->name + ": has no 'program' in the graph, but this is a program; "
                                                  "right would be perflab-node");
  }
}

std::vector<const graph::Process*> Node::processes() const {
  std::vector<const graph::Process*> list;
  for (std::size_t p = 0; p < config_.graph.processes.size(); ++p) {
    if (!config_.process || *config_.process == p) list.push_back(&config_.graph.processes[p]);
  }
  return list;
}

void Node::refuse_what_it_cannot() const {
  const std::string name(config_.runtime->name);
  if (!real_time()) {
    if (config_.traced) {
      throw Unsupported(name +
                        ": tracing: a tracer does not use virtual time; use a real middleware");
    }
    for (const graph::Process* process : processes()) {
      const bool scheduled = !process->threads.executors.empty() || !process->threads.middleware.empty();
      if (!scheduled && !process->lock_memory) continue;
      refuse(process->name,
             "threads and lock_memory: virtual time has neither threads nor memory of its own; use a real "
             "middleware");
    }
  }
  for (const graph::Process* process : processes()) {
    if (process->threads.middleware.policy == realtime::Policy::kDeadline)
      throw BadInput("process " + process->name + ", threads of the middleware: DEADLINE is not inherited; use FIFO or RR");
  }
  if (config_.intra_process && !config_.runtime->can.intra_process)
    throw Unsupported(name + ": intra-process delivery is not modelled; use a real middleware");
  if (config_.hiccup_ns && !real_time()) {
    throw Unsupported(name +
                      ": hiccup_ns: virtual time has no thread that could oversleep; use a real middleware");
  }
}

// The order matters. The tracer comes first, so that its threads inherit no settings of others. Memory is locked before threads
// are created, so that it covers their stacks. The middleware's threads inherit the settings of the thread that creates them.
// Executors apply theirs when they start.
void Node::start_runtime() {
  refuse_what_it_cannot();
  if (config_.tracing_library) tracing_ = tracing::Library::load(*config_.tracing_library);
  if (real_time()) {
    const graph::Process& process = *processes().front();
    try {
      if (process.lock_memory) realtime::lock_memory();
    } catch (const realtime::SchedulingError& error) {
      refuse(process.name, std::string("lock_memory: ") + error.what());
    }
    try_executors(process);
  }
  try {
    create_runtime();
  } catch (const realtime::SchedulingError& error) {
    refuse(processes().front()->name, std::string("threads of the middleware: ") + error.what());
  } catch (const std::exception& error) {
    // With locked memory, a failure to create a thread or mapping is most likely due to the memlock limit.
    const bool failed = kind_of(error) == Error::Kind::kFailed;
    if (const auto limit = realtime::lock_limit_reached(error.what()); limit && failed)
      refuse(processes().front()->name, *limit);
    throw;
  }
  if (real_time()) check_threads();
}

void Node::create_runtime() {
  // Before the middleware, so that resources include its start-up and discovery.
  if (real_time()) sampler_ = std::make_unique<Sampler>(clock_, config_.sampling_ns, counters_, records_);
  // Also before: created later, the thread would inherit the settings for the middleware's.
  if (config_.hiccup_ns) hiccup_ = std::make_unique<Hiccup>(clock_, *config_.hiccup_ns);
  if (config_.live.recording) {
    const graph::LiveSettings::Recording& recording = *config_.live.recording;
    const graph::RecordingNeeds needs = graph::recording_needs(config_.graph, config_.process, recording);
    ring_ = std::make_unique<measure::MessageRing>(measure::ring_bytes(recording.buffer_bytes, needs.longest_bytes), needs.ends,
                                                   recording.waits);
    const std::string& records = config_.records;
    message_log_ = std::make_unique<MessageLog>(
        *ring_, clock_, MessageLog::Settings{records.substr(0, records.rfind(".jsonl")), config_.message_limit_bytes});
  }
  // Also before: the library may start a tracer's threads.
  if (config_.runtime->can.loaded) plugin_ = runtime::Plugin::load(config_.middleware_library);
  const realtime::ThreadSettings inherited =
      real_time() ? processes().front()->threads.middleware : realtime::ThreadSettings{};
  const realtime::Inherited for_middleware(inherited);
  runtime_ = config_.runtime->make({.config = config_,
                                    .plugin = plugin_ ? &*plugin_ : nullptr,
                                    .trace = tracing_ ? tracing_->tracepoints() : nullptr,
                                    .clock = clock_,
                                    .sink = events_});
  events_.note(clock_.now(), "participant_created");
  live_ = std::make_unique<graph::LiveGraph>(config_.graph, config_.process, *runtime_, message_events_,
                                             config_.live, ring_.get());
  events_.note(clock_.now(), "endpoints_created");
  if (message_log_) write_message_log_record();
}

// Describes the numbers in the rows, and how to decode the contents.
void Node::write_message_log_record() {
  json publishers = json::array(), edges = json::array(), services = json::array();
  json definitions = json::object();
  message::Formats& formats = *config_.graph.messages;
  for (const graph::PublisherView& view : live_->publishers()) {
    const std::string& type = formats.find(view.publisher->type)->type->name;
    publishers.push_back({{"node", view.node->qualified_name()}, {"topic", view.publisher->topic}, {"type", type}});
    if (definitions.contains(type)) continue;
    definitions[type] = formats.library().texts_of(type);
  }
  for (const graph::EdgeView& view : live_->edges()) {
    edges.push_back({{"publisher", view.publisher_node->qualified_name()},
                     {"topic", view.subscription->topic},
                     {"subscription", view.subscription_node->name_of(*view.subscription)}});
  }
  for (const graph::ServiceView& view : live_->services()) {
    services.push_back({{"client", view.client_node->qualified_name()},
                        {"service", view.client->service},
                        {"server", view.server_node->qualified_name()}});
  }
  records_.write({{"type", "message_log"},
                  {"publishers", std::move(publishers)},
                  {"edges", std::move(edges)},
                  {"services", std::move(services)},
                  {"definitions", std::move(definitions)}});
}

const std::vector<int>& Node::tracer_threads() const noexcept {
  static const std::vector<int> none;
  if (plugin_) return plugin_->threads();
  return tracing_ ? tracing_->threads() : none;
}

void Node::adopt_threads() const {
  if (!plugin_) return;
  for (const realtime::OwnThread& thread : plugin_->own_threads()) realtime::adopt_thread(thread);
}

void Node::check_threads() const {
  adopt_threads();
  const graph::Process& process = *processes().front();
  for (const WatchedThread& thread : watched_threads(process, tracer_threads())) {
    const std::string difference = realtime::difference(thread.asked, thread.state);
    if (difference.empty()) continue;
    refuse(process.name, std::string(thread.role) + " thread " + thread.state.name + " (" +
                             std::to_string(thread.state.tid) + "): " + difference +
                             "; something in this process or the middleware's configuration set it so");
  }
}

void Node::write_thread_record(const char* when) {
  adopt_threads();
  json threads = json::array();
  for (const WatchedThread& thread : watched_threads(*processes().front(), tracer_threads())) {
    threads.push_back({{"tid", thread.state.tid},
                       {"name", thread.state.name},
                       {"role", thread.role},
                       {"asked", json(graph::thread_settings_to_json(thread.asked))},
                       {"policy", thread.state.policy},
                       {"priority", thread.state.priority},
                       {"nice", thread.state.nice},
                       {"runtime_ns", thread.state.runtime_ns},
                       {"deadline_ns", thread.state.deadline_ns},
                       {"period_ns", thread.state.period_ns},
                       {"cpus", thread.state.cpus}});
  }
  const std::optional<std::int64_t> locked = realtime::locked_memory_kb();
  records_.write({{"type", "threads"},
                  {"at_ns", clock_.now()},
                  {"when", when},
                  {"locked_memory_kb", locked ? json(*locked) : json(nullptr)},
                  {"threads", std::move(threads)}});
}

void Node::write_passing_record() {
  json publishers = json::array();
  for (const graph::PassingView& view : live_->passing()) {
    publishers.push_back({{"node", view.node->qualified_name()},
                          {"topic", view.publisher->topic},
                          {"asked", pass_by_json(view.asked)},
                          {"intra_process", view.passing.intra_process},
                          {"copies", view.passing.copies},
                          {"middleware", view.passing.middleware},
                          {"loaned", view.passing.loaned}});
  }
  records_.write({{"type", "passing"}, {"at_ns", clock_.now()}, {"publishers", std::move(publishers)}});
}

// The runtime's threads must end before objects used by their handlers are destroyed.
Node::~Node() {
  if (runtime_) runtime_->stop();
}

// A runtime with its own tracepoints needs no library, and does not report whether a tracer is recording.
json Node::tracing_record() const {
  if (tracing_) return {{"library", *config_.tracing_library}, {"recorded", tracing_->recorded()}};
  return config_.traced ? json{{"library", nullptr}, {"recorded", nullptr}} : json(nullptr);
}

void Node::write_process_record() {
  json executors = json::array();
  for (const graph::ExecutorView& view : live_->executors()) {
    const bool several = view.kind == runtime::ExecutorKind::kMultiThreaded;
    executors.push_back({{"process", config_.graph.processes[view.process].name},
                         {"id", view.executor->id},
                         {"kind", graph::word_of(graph::kExecutorWords, view.kind)},
                         {"threads", several && view.threads > 0 ? json(view.threads) : json(nullptr)},
                         {"period_ns", view.period_ns > 0 ? json(view.period_ns) : json(nullptr)},
                         {"nodes", view.nodes}});
  }
  json timers = json::array();
  for (const graph::TimerView& view : live_->timers()) {
    timers.push_back({{"node", view.node->qualified_name()},
                      {"name", view.name},
                      {"period_ns", view.period_ns},
                      {"phase", graph::word_of(graph::kPhaseWords, view.phase)},
                      {"offset_ns", view.offset_ns}});
  }
  const bool services = std::ranges::any_of(processes(), [](const graph::Process* process) {
    return std::ranges::any_of(process->nodes, [](const graph::Node& node) {
      return !node.clients.empty() || !node.servers.empty();
    });
  });
  records_.write(
      {{"type", "process"},
       {"pid", getpid()},
       {"process", config_.process_name},
       {"started_ns", clock_.now()},
       {"wall_ns", read_clock(CLOCK_REALTIME)},
       {"middleware", json::parse(runtime_->describe())},
       {"executors", std::move(executors)},
       {"timers", std::move(timers)},
       {"intra_process", config_.intra_process},
       {"tracing", tracing_record()},
       {"service_framing",
        services ? json(graph::word_of(graph::kFramingWords, runtime_->service_framing())) : json(nullptr)},
       {"clock_cost_ns", measure::clock_cost(clock_)}});
}

void Node::run() {
  // A program that ends the measured part counts as well, if there is no perflab.
  const bool ends = std::ranges::any_of(processes(), [](const graph::Process* process) { return process->ends; });
  if (!config_.live.ends_by_itself() && !control_.attached() && !ends)
    throw BadInput("duration_ns: null requires a control channel that ends the measured part; right would be "
                   "a number");
  // Files that the middleware leaves in /dev/shm if this process is killed, if it reports them.
  json shared_memory =
      json::parse(runtime_->describe())["effective"].value("shared_memory_files", json::array());
  control_.send({{"type", "created"},
                 {"pid", getpid()},
                 {"writers", writer_list(live_->writers())},
                 {"shared_memory", shared_memory}});
  const bool matched = await_discovery();
  const std::optional<Start> start = stop_asked_ ? std::nullopt : await_start(matched);
  if (!start) {
    finish();
    send_done();
    return;
  }
  live_->set_writers(start->writers);
  if (matched && real_time()) {
    // An unexpected endpoint may have been counted instead of an expected one, which comes a little later.
    const Nanoseconds until = std::min(clock_.now() + kSettling, start->at_ns - kSettling);
    while (clock_.now() < until && !control_.closed() && !stop_asked_) {
      const auto message = control_.receive(until - clock_.now());
      stop_asked_ = message && message->at("type") == "stop";
    }
    if (stop_asked_) {
      finish();
      send_done();
      return;
    }
    check_strangers();
  }
  const Nanoseconds measured_from = start->at_ns + config_.live.warmup_ns;
  measured_until_ = measured_from + config_.live.duration_ns;
  records_.write({{"type", "start"},
                  {"at_ns", start->at_ns},
                  {"measured_from_ns", measured_from},
                  {"measured_until_ns", config_.live.ends_by_itself() ? json(measured_until_) : json(nullptr)},
                  {"matched", matched}});
  // If anything fails from here on, what was measured is still written.
  try {
    measure(start->at_ns, measured_from);
  } catch (...) {
    try {
      finish();
    } catch (const std::exception&) {  // the first error is the one to report
    }
    throw;
  }
  finish();
  if (const std::string failure = events_.failure(); !failure.empty()) {
    throw Failed(failure);
  }
  if (host_ && !host_->failure().empty()) throw Failed(host_->failure());
  if (matched && !config_.peers_change) check_strangers();
  send_done();
}

void Node::check_strangers() {
  const std::vector<std::string> strangers = live_->strangers();
  if (!strangers.empty()) throw Failed(strangers.front());
}

void Node::send_done() { control_.send({{"type", "done"}, {"files", json::array({records_.path()})}}); }

// A process without timers of its own also waits for the end of the measured part before it reports draining.
// A triggered waitable has its callback first.
bool Node::publishing_ended() const {
  if (!live_->timers_done() || live_->triggered()) return false;
  return !real_time() || clock_.now() >= measured_until_;
}

bool Node::await_discovery() {
  const Nanoseconds begin = clock_.now();
  Nanoseconds next_report = begin + kNanosecondsPerSecond;
  Nanoseconds next_look_at_types = begin;
  while (true) {
    std::vector<std::string> unmatched = live_->unmatched();
    const Nanoseconds now = clock_.now();
    // Types are only compared now and then, because the list is long.
    if (unmatched.empty() && now >= next_look_at_types) {
      unmatched = live_->type_differences();
      if (!unmatched.empty()) next_look_at_types = now + kBetweenLooksAtTypes;
    }
    if (unmatched.empty() && now >= next_look_at_types) {
      if (events_.last_participant_at() != kUnknownTime) {
        events_.note(events_.last_participant_at(), "all_participants_found",
                     std::to_string(events_.participants_found()));
      }
      // Virtual time has no discovery: all endpoints know each other from the beginning.
      if (real_time()) {
        events_.note(events_.last_match_at() == kUnknownTime ? now : events_.last_match_at(),
                     "all_endpoints_matched");
      }
      return true;
    }
    if (now - begin >= config_.discovery_timeout_ns) return false;
    if (now >= next_report) {
      control_.send_replaceable({{"type", "waiting"}, {"unmatched", unmatched}});
      next_report += kNanosecondsPerSecond;
    }
    // Before it is ready, the node only accepts a request to stop.
    const auto message = control_.receive(5 * kMillisecond);
    stop_asked_ = stop_asked_ || (message && message->at("type") == "stop");
    if (stop_asked_ || control_.closed()) return false;
  }
}

std::optional<Node::Start> Node::await_start(bool matched) {
  std::vector<std::string> unmatched;
  if (!matched) {  // the reason comes before the endpoints
    unmatched = live_->type_differences();
    std::ranges::move(live_->unmatched(), std::back_inserter(unmatched));
  }
  for (const std::string& line : events_.incompatibilities())
    unmatched.push_back("incompatible QoS on " + line);
  control_.send({{"type", "ready"}, {"matched", matched}, {"unmatched", unmatched}});
  if (!control_.attached()) {
    // Virtual time starts on request; real threads must be ready by then.
    const Nanoseconds lead = real_time() ? 100 * kMillisecond : 0;
    return Start{clock_.now() + lead, live_->writers()};
  }
  while (!control_.closed()) {
    const auto message = control_.receive(100 * kMillisecond);
    events_.flush(records_, message_events_);
    if (!message) continue;
    if (message->at("type") == "stop") return std::nullopt;
    if (message->at("type") != "start") continue;
    Start start{message->at("at_ns").get<Nanoseconds>(), {}};
    for (const json& writer : message->at("writers")) {
      start.writers.push_back({writer.at("node").get<std::string>(), writer.at("topic").get<std::string>(),
                               identity_of(writer.at("identity").get<std::string>())});
    }
    return start;
  }
  return std::nullopt;
}

void Node::measure(Nanoseconds start_ns, Nanoseconds measured_from) {
  write_passing_record();  // before the start: only one thread at a time may query endpoints
  if (hiccup_) hiccup_->start(measured_from, measured_until_);
  if (sampler_ && config_.allocation_sites) sampler_->watch_allocations();
  if (sampler_) sampler_->measure_cost(measured_from, measured_until_, tracer_threads());
  live_->measure_from(measured_from);
  if (host_) host_->begin({start_ns, measured_from});
  live_->start(measured_from);
  if (host_) host_->release();
  const Nanoseconds started = clock_.now();
  events_.note(started, "started");
  if (real_time()) {
    check_threads();
    write_thread_record("start");
  }
  // If there are other processes, they may have sent messages that nobody here was ready to receive; a node
  // on its own is merely late.
  if (real_time() && control_.attached() && !config_.rejoins && started > start_ns) {
    throw Failed("process " + config_.process_name + " was ready " +
                 std::to_string((started - start_ns) / kMillisecond + 1) +
                 " ms after the common start: the machine is too busy");
  }
  Nanoseconds next_progress = started + kProgressPeriod;
  // The first one soon, so that a trial that fails early has something to show.
  Nanoseconds next_checkpoint = started + std::min(config_.checkpoint_ns, kNanosecondsPerSecond);
  Nanoseconds last_change = started;
  std::uint64_t last_completed = 0;
  bool publishing = true;
  while (true) {
    // In virtual time a node on its own ends as soon as nothing is left to happen.
    const bool nothing_to_wait_for = !real_time() && !control_.attached();
    if (nothing_to_wait_for && publishing_ended()) break;
    const Nanoseconds wake = std::min(next_progress, next_checkpoint);
    const Nanoseconds patience = nothing_to_wait_for ? kMillisecond
                                 : publishing        ? 100 * kMillisecond
                                                     : kDrainProgressPeriod;
    const Nanoseconds wait = std::max<Nanoseconds>(0, std::min(wake - clock_.now(), patience));
    const auto message = host_ ? control_.receive(wait, {host_->news()}) : control_.receive(wait);
    if (host_) {
      pass_on(false);
      if (!host_->failure().empty()) break;
    }
    if (message && message->at("type") == "stop") break;
    if (message && message->at("type") == "end") end_at(message->at("at_ns").get<Nanoseconds>());
    if (message && message->at("type") == "crash") crash();
    if (control_.attached() && control_.closed()) break;
    if (!events_.failure().empty()) break;
    if (publishing && publishing_ended()) {
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
      // A long trial writes less often, to limit the size of its file.
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

void Node::end_at(Nanoseconds at_ns) {
  if (config_.live.ends_by_itself()) throw Failed("the measured part ends by itself, but was asked to end");
  measured_until_ = at_ns;
  live_->end_at(at_ns);
  if (host_) host_->end_at(at_ns);
  if (hiccup_) hiccup_->end_at(at_ns);
  if (sampler_) sampler_->end_at(at_ns);
  records_.write({{"type", "end"}, {"at_ns", clock_.now()}, {"measured_until_ns", at_ns}});
}

void Node::pass_on(bool with_times) {
  host_->clear_news();
  if (const json record = host_->take_record(clock_.now(), with_times); !record.is_null()) records_.write(record);
  const std::optional<Nanoseconds> ended = host_->take_end();
  if (!ended) return;
  control_.send({{"type", "ended"}, {"at_ns", *ended}});
  if (!control_.attached() && !config_.live.ends_by_itself()) end_at(*ended);
}

void Node::send_progress(Nanoseconds measured_from, bool publishing) {
  const graph::Totals totals = live_->totals();
  const Nanoseconds now = runtime_->clock().now();
  const measure::Histogram& latency = live_->merged_latency();
  json progress = {{"type", "progress"},
                   {"at_ns", now},
                   {"elapsed_ns", now - measured_from},
                   {"publishing", publishing},
                   {"sent", totals.sent},
                   {"deliveries_expected", totals.deliveries_expected},
                   {"received", totals.received},
                   {"completed", totals.completed},
                   {"lost", totals.lost},
                   {"received_bytes", totals.received_bytes},
                   {"latency_count", latency.count()},
                   {"latency_sum", latency.sum()},
                   {"latency", measure::encode_v2_base64(latency)}};
  // While draining there are many messages; the last checkpoint contains the same histogram.
  if (publishing) progress["response"] = measure::encode_v2_base64(live_->merged_response());
  if (const auto totals_of = live_->condition_totals(); !totals_of.empty()) {
    json& conditions = progress["conditions"];
    for (const graph::ConditionTotals& condition : totals_of) {
      conditions[condition.condition] = {{"sent", condition.sent},
                                         {"not_sent", condition.not_sent},
                                         {"deliveries_expected", condition.deliveries_expected},
                                         {"received", condition.received}};
    }
  }
  if (publishing) records_.write(progress);
  const std::string error = records_.error();
  progress["checkpoint_error"] = error.empty() ? json(nullptr) : json(error);
  control_.send_replaceable(progress);
}

void Node::write_checkpoint(bool final) {
  const Nanoseconds now = runtime_->clock().now();
  loops_.write(records_, *live_, now);
  throttles_.write(records_, *live_, now);
  if (message_log_) {
    message_log_->flush();
    records_.write(message_log_->counts(now));
  }
  if (host_) pass_on(true);
  write_checkpoint_record(records_, *live_, hiccup_.get(), now, final);
}

void Node::crash() {
  if (sampler_) sampler_->end_cost();
  events_.note(clock_.now(), "crashed");
  events_.flush(records_, message_events_);
  write_checkpoint(false);
  kill(getpid(), SIGKILL);
  while (true) pause();
}

void Node::finish() {
  if (sampler_) sampler_->end_cost();
  if (real_time()) write_thread_record("end");
  if (host_) host_->stop();
  runtime_->stop();
  events_.note(clock_.now(), "stopped");
  events_.flush(records_, message_events_);
  events_.finish(records_, message_events_, clock_.now());
  if (hiccup_) hiccup_->stop();
  if (sampler_) sampler_->stop();
  if (message_log_) message_log_->stop();
  write_checkpoint(true);
  records_.write(
      {{"type", "process_end"}, {"at_ns", clock_.now()}, {"middleware", json::parse(runtime_->describe())}});
  const std::string error = records_.error();
  if (!error.empty()) throw Failed(error);
}

}  // namespace perflab::node
