#include "program/host.h"

#include <cmath>

#include "base/text.h"
#include "graph/units.h"
#include "graph/vocabulary.h"
#include "program/records.h"
#include "realtime/thread.h"

namespace perflab::program {

using nlohmann::json;

// ---- functions called by programs ----

void Clock::sleep_until(Nanoseconds instant) noexcept { realtime::sleep_until(instant); }

void Times::record(Nanoseconds took_ns, Nanoseconds at_ns) noexcept { state_.record(took_ns, at_ns); }

void Series::record(Nanoseconds at_ns, std::span<const double> row) noexcept { state_.record(at_ns, row); }

json Series::State::take() {
  const std::size_t until = written_.load(std::memory_order_acquire);
  std::size_t next = taken_.load(std::memory_order_relaxed);
  const std::uint64_t left_out = left_out_.load(std::memory_order_relaxed);
  if (next == until && left_out == left_out_taken_) return nullptr;
  left_out_taken_ = left_out;
  json at_ns = json::array(), rows = json::array();
  for (; next < until; ++next) {
    const std::size_t place = next % kRoom;
    json row = json::array();
    // To a micrometre or a microradian: finer digits are invisible, and take most of the space.
    const double* const values = values_.data() + place * columns_.size();
    for (std::size_t i = 0; i < columns_.size(); ++i) row.push_back(std::round(values[i] * 1e6) / 1e6);
    at_ns.push_back(at_ns_[place]);
    rows.push_back(std::move(row));
  }
  taken_.store(until, std::memory_order_release);
  return {{"name", name_}, {"columns", columns_}, {"at_ns", std::move(at_ns)}, {"rows", std::move(rows)},
          {"left_out", left_out}};
}

namespace detail {

void* message_of(PublisherEnd& end) noexcept { return end.message(); }
bool publish(PublisherEnd& end, Nanoseconds due_ns) noexcept { return end.publish_due(due_ns); }
std::size_t readers_of(PublisherEnd& end) noexcept { return end.matched(); }
bool publish(PublisherEnd& end, const void* message, Nanoseconds due_ns) noexcept {
  return end.publish_copy(message, due_ns);
}
void begin_span(runtime::Span& span, Nanoseconds due_ns) noexcept { span.begin(due_ns); }
void end_span(runtime::Span& span) noexcept { span.end(); }
bool reply(ServerRequest& request, const void* response) noexcept { return request.reply(response); }
bool call(ClientEnd& end, const void* request, Nanoseconds due_ns, OnReply on_reply) {
  return end.call(request, due_ns, std::move(on_reply));
}

bool ClientEnd::call(const void* request, Nanoseconds due_ns, OnReply on_reply) {
  return end_.call(request, due_ns,
                   [this, then = std::move(on_reply)](const void* response, Nanoseconds requested_ns, Nanoseconds callback_ns) {
                     host_.guarded(who_, then, response, Replied{requested_ns, callback_ns});
                   });
}

}  // namespace detail

// ---- life cycle ----

Host::Host(const graph::Process& process, graph::LiveGraph& live, std::uint64_t seed, std::uint32_t domain,
           Nanoseconds duration_ns)
    : process_(process),
      live_(live),
      seed_(seed),
      domain_(domain),
      duration_ns_(duration_ns),
      options_(json::parse(process.options), "process " + process.name + ", options") {}

Host::~Host() { stop(); }

void Host::make(const Make& make) {
  making_ = true;
  application_ = make(*this);
  making_ = false;
  if (const std::string server = live_.unhandled_action_server(); !server.empty())
    throw BadInput("process " + process_.name + ": " + server + " has no handlers in the program; right would be on_goals()");
  options_.finish();
  require_order_of_handlers();
  for (const auto& [name, settings] : process_.threads.program) {
    const auto called = [&](const Thread& thread) { return thread.name == name; };
    if (entered_.contains(name) || std::ranges::any_of(threads_, called)) continue;
    std::vector<std::string_view> known;
    for (const Thread& thread : threads_) known.emplace_back(thread.name);
    known.insert(known.end(), entered_.begin(), entered_.end());
    throw BadInput("process " + process_.name + ", threads: the program has no thread " + name +
                   (known.empty() ? "; it has none of its own" : "; it has " + list_of(known)));
  }
}

void Host::begin(const Start& start) {
  measured_.from_ns.store(start.measured_from_ns, std::memory_order_relaxed);
  for (Thread& thread : threads_) thread.thread = std::thread([this, &thread, start] { run(thread, start); });
  std::unique_lock lock(gate_mutex_);
  gate_changed_.wait(lock, [this] { return scheduled_ == threads_.size(); });
  if (!refused_.empty()) throw Unsupported("process " + process_.name + ", " + refused_);
  lock.unlock();
  if (application_) guarded("start", [&] { application_->start(start); });
}

void Host::run(Thread& thread, const Start& start) noexcept {
  realtime::name_this_thread(thread.name);
  const realtime::ThreadSettings& settings = settings_of(thread.name);
  std::string refused;
  try {
    realtime::apply(settings);
    realtime::register_this_thread(realtime::Role::kProgram, settings);
  } catch (const std::exception& error) {
    refused = "thread " + thread.name + ": " + error.what();
  }
  {
    std::unique_lock lock(gate_mutex_);
    ++scheduled_;
    if (refused_.empty()) refused_ = refused;
    gate_changed_.notify_all();
    gate_changed_.wait(lock, [this] { return gate_ != Gate::kClosed; });
    if (gate_ == Gate::kStopped || !refused.empty()) return;
  }
  guarded("thread " + thread.name, thread.function, Running(stopped_, start));
}

void Host::release() {
  const std::lock_guard lock(gate_mutex_);
  if (gate_ == Gate::kClosed) gate_ = Gate::kOpen;
  gate_changed_.notify_all();
}

void Host::end_at(Nanoseconds at_ns) {
  measured_.until_ns.store(at_ns, std::memory_order_relaxed);
  if (application_) guarded("end", [&] { application_->end(at_ns); });
}

void Host::stop() {
  if (stopping_) return;
  stopping_ = true;
  if (application_ && gate_ == Gate::kOpen) guarded("stop", [&] { application_->stop(); });
  stopped_.store(true, std::memory_order_release);
  {
    const std::lock_guard lock(gate_mutex_);
    if (gate_ == Gate::kClosed) gate_ = Gate::kStopped;
    gate_changed_.notify_all();
  }
  for (Thread& thread : threads_) {
    if (thread.thread.joinable()) thread.thread.join();
  }
}

std::string Host::failure() const {
  const std::lock_guard lock(said_mutex_);
  return failure_;
}

std::optional<Nanoseconds> Host::take_end() {
  const std::lock_guard lock(said_mutex_);
  if (!end_ || end_taken_) return std::nullopt;
  end_taken_ = true;
  return end_;
}

json Host::take_record(Nanoseconds at_ns, bool with_times) {
  json record = {{"type", "program"}, {"at_ns", at_ns}};
  bool any = with_times && !recorders_.empty();
  if (with_times) {
    for (auto& [name, merged] : merged_) merged.histogram.clear();
    for (const Recorder& recorder : recorders_) merged_[recorder.name].histogram.merge(recorder.state->histogram());
    record["times"] = json::object();
    for (const auto& [name, merged] : merged_) record["times"][name] = node::histogram_record(merged.histogram);
  }
  json series = json::array();
  for (const Film& film : series_) {
    if (json rows = film.state->take(); !rows.is_null()) series.push_back(std::move(rows));
  }
  if (!series.empty()) {
    record["series"] = std::move(series);
    any = true;
  }
  const std::lock_guard lock(said_mutex_);
  if (!scene_.is_null()) {
    record["scene"] = std::exchange(scene_, nullptr);
    any = true;
  }
  if (!moments_.empty()) {
    record["moments"] = std::exchange(moments_, json::array());
    any = true;
  }
  if (!figures_.empty()) {
    record["figures"] = std::exchange(figures_, {});
    any = true;
  }
  if (outcome_ && !outcome_written_) {
    record["outcome"] = {{"name", outcome_->name}, {"reason", outcome_->reason}, {"at_ns", outcome_->at_ns}};
    outcome_written_ = any = true;
  }
  return any ? record : json(nullptr);
}

// ---- context ----

void Host::require_making(const char* what) const {
  if (!making_)
    throw Failed("process " + process_.name + ": " + what + " was called too late; call it in the "
                                                            "application's constructor");
}

const realtime::ThreadSettings& Host::settings_of(const std::string& thread) const {
  return process_.threads.program.at(thread);
}

void Host::require(const std::string& what, const message::Format& format, const detail::TypeInfo& type) {
  require(what, *format.type, type);
}

void Host::require(const std::string& what, const message::Type& graphs, const detail::TypeInfo& type) {
  const std::string where = "process " + process_.name + ", " + what + ": ";
  if (graphs.name != type.name)
    throw BadInput(where + "the program has type " + type.name + ", but the graph " + graphs.name +
                   "; right would be one type");
  const std::string hash = live_.type_hash(graphs);
  if (hash != type.hash || graphs.size != type.size)
    throw BadInput(where + std::string(type.name) + " is " + hash + " in the graph, and " + type.hash +
                   " in the program as built; right would be to build it with the same definition");
}

detail::PublisherEnd& Host::publisher_end(const std::string& node, const std::string& topic, const detail::TypeInfo& type) {
  require_making("a publisher");
  graph::PublisherEnd& end = live_.publisher_end(node, topic);
  require("publisher " + topic + " of " + node, end.format(), type);
  return end;
}

void Host::set_message_handler(const std::string& node, const std::string& topic, const detail::TypeInfo& type,
                               std::function<void(const void*, const Received&)> handler) {
  require_making("a handler of messages");
  graph::SubscriptionEnd& end = live_.subscription_end(node, topic);
  const std::string who = "subscription " + topic + " of " + node;
  require(who, end.format(), type);
  end.set_handler([this, who, then = std::move(handler)](const void* message, const graph::Received& how) {
    guarded(who, then, message, Received{how.due_ns, how.published_ns, how.arrived_ns, how.callback_ns, how.from});
  });
}

detail::ClientEnd& Host::client_end(const std::string& node, const std::string& service, const detail::TypeInfo& request,
                                    const detail::TypeInfo& response) {
  require_making("a client");
  graph::ClientEnd& end = live_.client_end(node, service);
  const std::string who = "client " + service + " of " + node;
  require(who, end.request_format(), request);
  require(who, end.response_format(), response);
  return clients_.emplace_back(*this, end, who);
}

void Host::set_request_handler(const std::string& node, const std::string& service, const detail::TypeInfo& request,
                               const detail::TypeInfo& response,
                               std::function<void(const void*, std::shared_ptr<detail::ServerRequest>)> handler) {
  require_making("a handler of requests");
  graph::ServerEnd& end = live_.server_end(node, service);
  const std::string who = "server " + service + " of " + node;
  require(who, end.request_format(), request);
  require(who, end.response_format(), response);
  end.set_handler([this, who, then = std::move(handler)](const void* asked, std::shared_ptr<graph::OpenRequest> open) {
    guarded(who, then, asked, std::move(open));
  });
}

void Host::reentrant() {
  require_making("reentrant()");
  reentrant_ = true;
}

void Host::require_order_of_handlers() const {
  if (reentrant_) return;
  for (const graph::ExecutorView& view : live_.executors()) {
    if (view.nodes.empty() || !runtime::concurrent_callbacks(view.kind)) continue;
    throw BadInput("process " + process_.name + ", executor " + std::to_string(view.executor->id) + ": " +
                   std::string(graph::word_of(graph::kExecutorWords, view.kind)) +
                   " runs handlers of a node at the same time, but the program " + process_.program +
                   " is not reentrant; right would be another executor");
  }
}

void Host::timer(const std::string& node, const std::string& name, Nanoseconds period_ns,
                 std::function<void(Nanoseconds)> handler, bool skip_missed) {
  require_making("a timer");
  if (period_ns < graph::kShortestPeriod)
    throw BadInput("timer " + name + " of " + node + ": its period is " + std::to_string(period_ns) +
                   " ns; right would be at least " + std::to_string(graph::kShortestPeriod));
  live_.add_timer(node, name, period_ns, skip_missed,
                  [this, who = "timer " + name + " of " + node, then = std::move(handler)](Nanoseconds due_ns) {
                    guarded(who, then, due_ns);
                  });
}

void Host::require_thread(const std::string& name) const {
  if (process_.threads.program.contains(name)) return;
  throw BadInput("process " + process_.name + ", threads: " + name + " of the program is missing; right would be '" + name +
                 ": {}' among the process's threads");
}

void Host::thread(const std::string& name, std::function<void(const Running&)> function) {
  require_making("a thread");
  require_thread(name);
  threads_.push_back({name, std::move(function)});
}

void Host::thread_name(const std::string& name) {
  require_making("the name of a thread");
  require_thread(name);
  entered_.insert(name);
}

void Host::enter_thread(const std::string& name) {
  require_thread(name);
  // The kernel reuses thread ids.
  struct Registered {
    ~Registered() { realtime::forget_this_thread(); }
  };
  realtime::name_this_thread(name);
  try {
    realtime::apply(settings_of(name));
  } catch (const realtime::SchedulingError& error) {
    throw Unsupported("process " + process_.name + ", thread " + name + ": " + error.what());
  }
  realtime::forget_this_thread();
  realtime::register_this_thread(realtime::Role::kProgram, settings_of(name));
  static thread_local const Registered registered;
  static_cast<void>(registered);
}

Span Host::span(const std::string& node, const std::string& name, Nanoseconds period_ns) {
  require_making("a span");
  return Span(live_.add_span(node, name, period_ns));
}

Times& Host::times(const std::string& name) {
  require_making("a recorder of times");
  Recorder& recorder = recorders_.emplace_back();
  recorder.name = name;
  recorder.state = std::make_unique<Times::State>(measured_, duration_ns_);
  recorder.times = std::make_unique<Times>(*recorder.state);
  merged_.try_emplace(name);
  return *recorder.times;
}

void Host::figure(const std::string& name, double value) {
  if (!std::isfinite(value)) {
    fail("figure " + name + " is not a finite number");
    return;
  }
  {
    const std::lock_guard lock(said_mutex_);
    figures_[name].push_back(value);
  }
  news_.notify();
}

Series& Host::series(const std::string& name, const std::vector<std::string>& columns) {
  require_making("a series");
  Film& film = series_.emplace_back();
  film.state = std::make_unique<Series::State>(name, columns);
  film.series = std::make_unique<Series>(*film.state);
  return *film.series;
}

void Host::moment(const std::string& words) {
  {
    const std::lock_guard lock(said_mutex_);
    moments_.push_back({{"at_ns", clock().now()}, {"words", one_line(words)}});
  }
  news_.notify();
}

void Host::scene(const json& scene) {
  require_making("a scene");
  const std::lock_guard lock(said_mutex_);
  scene_ = scene;
}

void Host::outcome(const std::string& name, const std::string& reason) {
  {
    const std::lock_guard lock(said_mutex_);
    if (!outcome_) outcome_ = Said{name, one_line(reason), clock().now()};
  }
  news_.notify();
}

void Host::end() {
  if (!process_.ends) {
    fail("the program ends the measured part, but the graph does not allow it; right would be 'ends: true' "
         "in the process");
    return;
  }
  {
    const std::lock_guard lock(said_mutex_);
    if (!end_) end_ = clock().now();
  }
  news_.notify();
}

void Host::fail(const std::string& reason) noexcept {
  try {
    const std::lock_guard lock(said_mutex_);
    if (failure_.empty()) failure_ = one_line(reason);
  } catch (const std::bad_alloc&) {
    std::abort();  // no memory to report it
  }
  news_.notify();
}

}  // namespace perflab::program
