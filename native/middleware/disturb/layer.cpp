#include "middleware/disturb/layer.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

#include "middleware/disturb/disturb.h"
#include "middleware/support/plugin_table.h"
#include "middleware/types.h"

namespace perflab::middleware::disturb {
namespace {

// The only mark left at a gate: there may be something to do.
constexpr Gate::Marks kAny = 1;

// From one writer to one reader; for a reader with keep_all, from all writers together.
constexpr std::size_t kMostMessages = 16384;
constexpr std::size_t kMostBytes = std::size_t{512} << 20;

// FNV-1a: the same number for a topic in every run, so that a seed has the same effect in every run.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  return value;
}

// Refuses settings that the layer cannot preserve.
void refuse_what_is_not_kept(const perflab_endpoint_settings& settings) {
  if (settings.key != nullptr) {
    throw Unsupported(std::string("disturbance: topic '") + settings.topic +
                      "' is keyed, but the disturbance does not support instances; right would be a topic "
                      "without keys");
  }
  if (!settings.loans) return;
  throw Unsupported(std::string("disturbance: topic '") + settings.topic +
                    "' shall pass loaned messages, which cannot be held back; right "
                    "would be unique or shared");
}

nlohmann::json to_json(const DelayStatistics& delay) {
  nlohmann::json json{{"count", delay.count}, {"min", nullptr}, {"mean", nullptr}, {"max", nullptr}};
  if (delay.count > 0) {
    json["min"] = delay.min_ns;
    json["mean"] = delay.sum_ns / static_cast<double>(delay.count);
    json["max"] = delay.max_ns;
  }
  return json;
}

}  // namespace

// ---- writer ----

Writer::Writer(Participant& participant, const perflab_endpoint_settings& settings,
               const perflab_listener* listener)
    : below_(participant.below()) {
  refuse_what_is_not_kept(settings);
  perflab_error error{};
  require_ok(below_.create_writer(participant.handle(), &settings, listener, &writer_, &error), error);
}

// ---- reader ----

Reader::Reader(Participant& participant, const perflab_endpoint_settings& settings,
               const perflab_listener* listener)
    : Attachment("disturbance"),
      participant_(participant),
      below_(participant.below()),
      qos_(settings.qos),
      topic_(settings.topic != nullptr ? settings.topic : ""),
      type_(settings.type != nullptr ? settings.type : ""),
      listener_(listener != nullptr ? *listener : perflab_listener{}) {
  refuse_what_is_not_kept(settings);
  const perflab_listener own{
      .on_data = [](void* context) { static_cast<Reader*>(context)->pull(); },
      .on_event = [](void* context,
                     const perflab_event* event) { static_cast<Reader*>(context)->below_reports(*event); },
      .context = this};
  perflab_reader* made = nullptr;
  perflab_error error{};
  const perflab_status status = below_.create_reader(participant.handle(), &settings, &own, &made, &error);
  if (status < 0) {
    participant_.scheduler().cancel(this);
    throw Error(kind_of(status), error.text);
  }
  {
    const std::lock_guard lock(participant_.mutex());
    reader_ = made;
    for (const auto& [writer, edge] : edges_) edge->reader = identity();
  }
  pull();  // messages that came before this reader was fully constructed
}

Reader::~Reader() {
  // The order matters: first nothing comes in any more, then nothing is in flight, then nothing uses the
  // reader below.
  pulling_.close();
  {
    const std::lock_guard lock(participant_.mutex());
    for (const auto& [writer, edge] : edges_) edge->held.reset();
  }
  participant_.scheduler().cancel(this);
  below_.destroy_reader(reader_);
  calling_.close();
}

bool Reader::is_full() const noexcept {
  return qos_.history == PERFLAB_KEEP_ALL && (live_ >= kMostMessages || live_bytes_ >= kMostBytes);
}

// Takes everything from the plug-in below; called whenever there may be more, from any thread.
void Reader::pull() noexcept {
  perflab_reader* const reader = reader_;
  if (reader == nullptr) return;
  pulling_.pass(kAny, [&](Gate::Marks) noexcept {
    perflab_error error{};
    perflab_sample sample{};
    perflab_status status = PERFLAB_OK;
    while (status == PERFLAB_OK) {
      // Set before the check, so that a thread that makes room first sees it.
      stopped_ = is_full();
      if (stopped_ && is_full()) return;
      status = support::guarded(&error, [&] {
        const perflab_status taken = below_.take(reader, &sample, &error);
        if (taken != PERFLAB_OK) return taken;
        const auto back = [&](perflab_sample* one) { below_.return_sample(reader, one); };
        const std::unique_ptr<perflab_sample, decltype(back)> owned(&sample, back);
        offer(sample);
        return PERFLAB_OK;
      });
    }
    if (status < 0) fail(error.text);
  });
}

void Reader::offer(const perflab_sample& sample) {
  const std::int64_t now_ns = monotonic_ns();
  bool overflowed = false;
  bool has_data = false;
  {
    std::unique_lock lock(participant_.mutex());
    Edge& edge = edge_of(sample.writer);
    if (!edge.lifespan_ns) {
      lock.unlock();
      const std::int64_t lifespan_ns = below_.lifespan(reader_, &sample.writer);
      lock.lock();
      edge.lifespan_ns = lifespan_ns;
    }
    overflowed = qos_.history == PERFLAB_KEEP_LAST &&
                 (edge.pending >= kMostMessages || edge.pending_bytes >= kMostBytes);
    if (overflowed) {
      ++edge.overflowed;
    } else {
      has_data = disturb(edge, copy_of(sample, *edge.lifespan_ns, now_ns));
    }
  }
  if (overflowed) report(PERFLAB_SAMPLE_LOST, sample.writer);
  if (has_data) call_back();
}

bool Reader::disturb(Edge& edge, std::unique_ptr<Message> message) {
  Disturbance::Arrivals arrivals;
  switch (edge.disturbance.offer(message.get(), message->offered_ns, arrivals)) {
    case Disturbance::Outcome::lost:
      forget(std::move(message));
      return false;
    case Disturbance::Outcome::held:
      edge.held = std::move(message);
      edge.held_number = edge.disturbance.offered();
      participant_.scheduler().push({.due_ns = edge.disturbance.held_until_ns(),
                                     .kind = Job::Kind::flush,
                                     .reader = this,
                                     .edge = &edge,
                                     .number = edge.held_number});
      return false;
    case Disturbance::Outcome::passed:
      break;
  }
  return send(edge, arrivals, std::move(message));
}

// No message followed the one held for reordering.
bool Reader::flush(Edge& edge, std::uint64_t number) {
  if (!edge.held || edge.held_number != number) return false;
  Disturbance::Arrivals arrivals;
  edge.disturbance.release(arrivals);
  return send(edge, arrivals, nullptr);
}

// The arrivals are `offered` and a message held until now, each possibly followed by its copy. What is due
// and overtakes nothing in flight is delivered at once.
bool Reader::send(Edge& edge, const Disturbance::Arrivals& arrivals, std::unique_ptr<Message> offered) {
  const bool in_order = edge.pending == 0;
  const std::int64_t now_ns = monotonic_ns();
  const Message* const itself = offered.get();
  bool has_data = false;
  std::unique_ptr<Message> copy;
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const Disturbance::Arrival& arrival = arrivals.begin()[i];
    std::unique_ptr<Message> message =
        std::move(arrival.copy ? copy : arrival.message == itself ? offered : edge.held);
    message->copy = arrival.copy;
    message->overtaken = arrival.overtaken;
    message->stalled = arrival.stalled;
    if (i + 1 < arrivals.size() && arrivals.begin()[i + 1].copy) copy = copy_of(*message);
    if (in_order && arrival.due_ns <= now_ns) {
      has_data |= deliver(edge, std::move(message));
      continue;
    }
    ++edge.pending;
    edge.pending_bytes += message->bytes.size();
    participant_.scheduler().push({.due_ns = arrival.due_ns,
                                   .kind = Job::Kind::deliver,
                                   .reader = this,
                                   .edge = &edge,
                                   .message = std::move(message)});
  }
  return has_data;
}

// False if there is nothing to take.
bool Reader::deliver(Edge& edge, std::unique_ptr<Message> message) {
  const std::int64_t now_ns = monotonic_ns();
  if (message->expires_ns <= now_ns) {
    if (!message->copy) ++edge.expired;
    forget(std::move(message));
    return false;
  }
  ++(message->copy ? edge.duplicated : edge.delivered);
  if (!message->copy) {
    edge.reordered += message->overtaken ? 1 : 0;
    edge.stalled += message->stalled ? 1 : 0;
  }
  edge.delay.add(now_ns - message->offered_ns);
  if (qos_.deadline_ns != PERFLAB_DURATION_INFINITE) {
    if (deadline_from_ns_ == 0) {
      participant_.scheduler().push(
          {.due_ns = now_ns + qos_.deadline_ns, .kind = Job::Kind::watch_deadline, .reader = this});
    }
    deadline_from_ns_ = now_ns;
  }
  // If the plug-in below reports reception times, this message is received now.
  if (participant_.tells_reception()) message->sample.reception_ns = participant_.host_now_ns();
  const std::lock_guard lock(mutex_);
  if (qos_.history == PERFLAB_KEEP_LAST && cache_.size() >= static_cast<std::size_t>(qos_.depth)) drop_first();
  cache_.push_back(std::move(message));
  data_ = true;
  ready();
  return true;
}

void Reader::run(Job& job) noexcept {
  try {
    bool has_data = false;
    switch (job.kind) {
      case Job::Kind::deliver: {
        const std::lock_guard lock(participant_.mutex());
        --job.edge->pending;
        job.edge->pending_bytes -= job.message->bytes.size();
        has_data = deliver(*job.edge, std::move(job.message));
        break;
      }
      case Job::Kind::flush: {
        const std::lock_guard lock(participant_.mutex());
        has_data = flush(*job.edge, job.number);
        break;
      }
      case Job::Kind::watch_deadline:
        watch_deadline();
        break;
    }
    if (has_data) call_back();
    if (stopped_) pull();  // expired messages made room
  } catch (const std::exception& failure) {
    fail(failure.what());
  }
}

void Reader::watch_deadline() {
  bool missed = false;
  const bool promised = matched() > 0;
  {
    const std::lock_guard lock(participant_.mutex());
    if (!promised) {  // the next message starts afresh
      deadline_from_ns_ = 0;
      return;
    }
    missed = monotonic_ns() - deadline_from_ns_ >= qos_.deadline_ns;
    if (missed) deadline_from_ns_ += qos_.deadline_ns;
    participant_.scheduler().push({.due_ns = deadline_from_ns_ + qos_.deadline_ns,
                                   .kind = Job::Kind::watch_deadline,
                                   .reader = this});
  }
  if (missed) report(PERFLAB_DEADLINE_MISSED, {});
}

Edge& Reader::edge_of(const perflab_identity& writer) {
  const auto known = edges_.find(writer);
  if (known != edges_.end()) return *known->second;
  Edge& edge = participant_.add_edge(writer, topic_);
  if (reader_ != nullptr) edge.reader = identity();
  edges_.emplace(writer, &edge);
  return edge;
}

// ---- reuse of messages ----

std::unique_ptr<Message> Reader::copy_of(const perflab_sample& sample, std::int64_t lifespan_ns,
                                         std::int64_t now_ns) {
  std::unique_ptr<Message> message;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      message = std::move(free_.back());
      free_.pop_back();
    }
  }
  if (!message) message = std::make_unique<Message>();
  message->bytes.assign(sample.data, sample.data + sample.size);
  message->sample = sample;
  message->sample.data = message->bytes.data();
  message->offered_ns = now_ns;
  message->expires_ns = INT64_MAX;
  if (lifespan_ns != PERFLAB_DURATION_INFINITE) {
    const bool is_dated = sample.source_timestamp_ns != PERFLAB_TIME_UNKNOWN;
    const std::int64_t age_ns = is_dated ? read_clock(CLOCK_REALTIME) - sample.source_timestamp_ns : 0;
    message->expires_ns = now_ns + lifespan_ns - age_ns;
  }
  ++live_;
  live_bytes_ += message->bytes.size();
  return message;
}

std::unique_ptr<Message> Reader::copy_of(const Message& message) {
  std::unique_ptr<Message> copy = copy_of(message.sample, PERFLAB_DURATION_INFINITE, message.offered_ns);
  copy->expires_ns = message.expires_ns;
  return copy;
}

void Reader::forget(std::unique_ptr<Message> message) noexcept {
  const std::lock_guard lock(mutex_);
  keep_for_reuse(std::move(message));
}

// Requires mutex_.
void Reader::keep_for_reuse(std::unique_ptr<Message> message) noexcept {
  --live_;
  live_bytes_ -= message->bytes.size();
  try {
    free_.push_back(std::move(message));
  } catch (const std::bad_alloc&) {  // freed instead of kept
  }
}

// ---- the host's side ----

perflab_status Reader::take(perflab_sample* sample, perflab_error* error) {
  std::unique_ptr<Message> message;
  std::string failure;
  const auto look = [&] {
    const std::lock_guard lock(mutex_);
    drop_expired();
    if (!cache_.empty()) {
      message = cache_.pop_front();
    } else {
      failure.swap(failure_);
    }
  };
  look();
  if (!message && failure.empty() && stopped_) {  // expired messages made room
    pull();
    look();
  }
  if (!message && failure.empty()) return PERFLAB_NO_DATA;
  if (!message) {
    support::set_error(error, failure);
    pull();  // there may be messages behind the failed one
    return PERFLAB_FAILED;
  }
  *sample = message->sample;
  sample->loan = message.release();
  return PERFLAB_OK;
}

void Reader::return_sample(perflab_sample* sample) noexcept {
  forget(std::unique_ptr<Message>(static_cast<Message*>(sample->loan)));
  sample->loan = nullptr;
  sample->data = nullptr;
  if (stopped_) pull();
}

bool Reader::has_data() noexcept {
  bool has = false;
  {
    const std::lock_guard lock(mutex_);
    drop_expired();
    has = !cache_.empty() || !failure_.empty();
  }
  if (!has && stopped_) pull();
  return has;
}

// Requires mutex_, like drop_first().
void Reader::drop_expired() noexcept {
  if (cache_.empty() || cache_[0]->expires_ns == INT64_MAX) return;
  const std::int64_t now_ns = monotonic_ns();
  while (!cache_.empty() && cache_[0]->expires_ns <= now_ns) drop_first();
}

void Reader::drop_first() noexcept { keep_for_reuse(cache_.pop_front()); }

// ---- callbacks ----

void Reader::below_reports(const perflab_event& event) noexcept {
  if (event.kind == PERFLAB_DEADLINE_MISSED) return;  // counts arrivals, not deliveries
  try {
    if (event.kind == PERFLAB_MATCHED) {  // so that the report includes edges without messages
      const std::lock_guard lock(participant_.mutex());
      edge_of(event.peer);
    }
    note(event);
  } catch (const std::exception& failure) {
    fail(failure.what());
  }
}

void Reader::report(perflab_event_kind kind, const perflab_identity& peer) {
  perflab_event event{};
  event.kind = kind;
  event.at_ns = participant_.host_now_ns();
  event.peer = peer;
  event.count = 1;
  note(event);
}

void Reader::note(const perflab_event& event) {
  if (listener_.on_event == nullptr) return;
  {
    const std::lock_guard lock(mutex_);
    events_.push_back({event, event.policy != nullptr ? std::optional<std::string>(event.policy) : std::nullopt});
  }
  call_back();
}

void Reader::fail(const char* what) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    failure_ = what;
    data_ = true;
    ready();
  } catch (const std::bad_alloc&) {  // the next failure is reported
  }
  call_back();
}

void Reader::call_back() noexcept {
  calling_.pass(kAny, [&](Gate::Marks) noexcept {
    std::vector<Event> events;
    bool data = false;
    {
      const std::lock_guard lock(mutex_);
      events.swap(events_);
      data = std::exchange(data_, false);
    }
    for (Event& one : events) {
      one.event.topic = topic_.c_str();
      one.event.type = type_.c_str();
      one.event.policy = one.policy ? one.policy->c_str() : nullptr;
      listener_.on_event(listener_.context, &one.event);
    }
    if (data && listener_.on_data != nullptr) listener_.on_data(listener_.context);
  });
}

// ---- participant ----

Participant::Participant(const perflab_middleware& below, const perflab_host& host, Program program,
                         const perflab_participant_settings& settings)
    : below_(below),
      tells_reception_(below.capabilities().reception_timestamps),
      host_(host),
      program_(std::move(program)),
      scheduler_([](Job& job) { job.reader->run(job); }) {
  perflab_error error{};
  require_ok(below_.open(&host_, &settings, &participant_, &error), error);
}

Participant::~Participant() { below_.close(participant_); }

Edge& Participant::add_edge(const perflab_identity& writer, const std::string& topic) {
  const std::uint64_t stream = hash(topic) + edges_of_topic_[topic]++;
  edges_.push_back(std::make_unique<Edge>(writer, topic, program_.concerns(topic) ? program_ : Program{}, stream));
  return *edges_.back();
}

const char* Participant::describe() {
  const char* const said = below_.describe(participant_);
  nlohmann::json json = nlohmann::json::parse(said, nullptr, false);
  if (!json.is_object()) json = {{"description", said}};
  nlohmann::json per_edge = nlohmann::json::array();
  DelayStatistics all;
  const std::lock_guard lock(mutex_);
  for (const auto& edge : edges_) {
    per_edge.push_back({{"writer", to_hex(edge->writer)},
                        {"reader", to_hex(edge->reader)},
                        {"topic", edge->topic},
                        {"offered", edge->disturbance.offered() + edge->overflowed},
                        {"delivered", edge->delivered},
                        {"lost", edge->disturbance.lost()},
                        {"reordered", edge->reordered},
                        {"duplicated", edge->duplicated},
                        {"stalled", edge->stalled},
                        {"expired", edge->expired},
                        {"overflowed", edge->overflowed},
                        {"delay_ns", to_json(edge->delay)}});
    all.add(edge->delay);
  }
  json["disturb"] = disturb::to_json(program_);
  json["injected"] = {{"per_edge", std::move(per_edge)}, {"delay_ns", to_json(all)}};
  description_ = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return description_.c_str();
}

}  // namespace perflab::middleware::disturb

// The types behind the C interface (support/plugin_table.h).
PERFLAB_MIDDLEWARE_CLASSES(perflab::middleware::disturb::Participant, perflab::middleware::disturb::Writer,
                           perflab::middleware::disturb::Reader,
                           perflab::middleware::support::WaitSet<perflab::middleware::disturb::Reader>)

namespace perflab::middleware::disturb {
namespace {

// The QoS policies of the plug-in below that the layer preserves.
const perflab_policy* policies() {
  using namespace perflab::middleware::support;
  static constexpr perflab_policy kPolicies[] = {
      supported("history"),  supported("reliability"),
      supported("durability"), supported("deadline"),
      supported("lifespan"),   supported("liveliness"),
      supported("partition"),  supported("user_data"),
      supported("topic_data"), supported("group_data"),
      kLastPolicy};
  return kPolicies;
}

constexpr perflab_middleware kTable = support::plugin_table<nullptr>(
    {.name = "disturb",
     .summary = "delay, loss, reordering, duplication and stalls over any plug-in",
     .version = nullptr,
     .capabilities = nullptr,
     .policies = policies});

}  // namespace

bool is_asked_for(std::span<const perflab_option> options) noexcept {
  return std::ranges::any_of(options, [](const perflab_option& one) {
    return one.key != nullptr && is_of_disturbance(one.key);
  });
}

perflab_status open(const perflab_middleware& below, const perflab_host& host,
                    const perflab_participant_settings& settings, perflab_participant** participant,
                    perflab_error* error) {
  return support::guarded(error, [&] {
    if (settings.ignore_local_endpoints) {
      throw Unsupported("disturbance: messages within a process would bypass it; right would be --ipc off");
    }
    if (!below.capabilities().data_ready_callbacks) {
      throw Unsupported(std::string("disturbance: ") + below.name +
                        " has no data-ready callbacks, without which arriving "
                        "messages are not noticed in time");
    }
    std::vector<perflab_option> own;
    std::vector<perflab_option> others;
    for (const perflab_option& one : std::span(settings.options, settings.option_count))
      (one.key != nullptr && is_of_disturbance(one.key) ? own : others).push_back(one);
    perflab_participant_settings given = settings;
    given.options = others.data();
    given.option_count = others.size();
    *participant = new perflab_participant(below, host, read_program(own), given);
    return PERFLAB_OK;
  });
}

const perflab_middleware& table() noexcept { return kTable; }

}  // namespace perflab::middleware::disturb
