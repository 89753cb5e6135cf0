#include "runtime/virtual/virtual_runtime.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "middleware/disturb/disturbance.h"
#include "middleware/disturb/program.h"
#include "middleware/policies.h"
#include "middleware/support/options.h"
#include "middleware/support/status.h"
#include "middleware/types.h"
#include "realtime/thread.h"
#include "runtime/action_client.h"
#include "runtime/action_server.h"
#include "runtime/guard.h"
#include "runtime/names.h"
#include "runtime/parts.h"
#include "runtime/service.h"

namespace perflab::runtime {

// Virtual time that creating an endpoint takes, so that timers have an instant of creation.
constexpr Nanoseconds kCreation = 250'000;

// The settings in the options.
struct VirtualRuntime::Programme {
  middleware::disturb::Program link;
  Nanoseconds service = 0;
  Nanoseconds publish_call = 0;
};

struct VirtualRuntime::Message {
  std::vector<std::uint8_t> bytes;
  perflab_identity writer{};
  std::int64_t sequence = 0;
  perflab_sample_identity related{};
  std::int64_t source_timestamp_ns = kUnknownTime;  // if the sender set one
  Nanoseconds sent_ns = 0;
};

// One writer to one reader: disturbance is applied and counted here.
struct VirtualRuntime::Link {
  Link(const Writer& from, Reader& to, const middleware::disturb::Program& program, std::uint64_t number)
      : writer(&from), reader(&to), disturbance(program, number) {}

  const Writer* writer;
  Reader* reader;
  middleware::disturb::Disturbance disturbance;
  middleware::disturb::Disturbance::Arrivals arrivals;  // of the last message offered
  std::shared_ptr<Message> held;                        // held back until its successor is sent
  std::uint64_t delivered = 0;
  std::uint64_t reordered = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t stalled = 0;

  void count(const middleware::disturb::Disturbance::Arrival& arrival) noexcept {
    reordered += !arrival.copy && arrival.overtaken ? 1 : 0;
    stalled += !arrival.copy && arrival.stalled ? 1 : 0;
  }
};

// A source of callbacks, besides timers.
struct VirtualRuntime::Source {
  virtual ~Source() = default;
  [[nodiscard]] virtual bool ready() const noexcept = 0;
  // Takes one message or trigger, if there is one, and runs its callback.
  void run_one() noexcept {
    if (!ready()) return;
    take_one();
    run_taken();
  }
  // run_one() in two steps. Precondition: there is one.
  virtual void take_one() noexcept = 0;
  virtual void run_taken() noexcept = 0;

  Lane* lane = nullptr;
  std::size_t group = 0;
  std::size_t rank = 0;  // order of creation within its lane, including timers
  int priority = 0;
  Nanoseconds since_ns = 0;  // when it was queued
  bool queued = false;  // in the lane's arrivals, or in its group's queue
};

struct VirtualRuntime::Reader final : Subscription, Source {
  struct Arrived {
    std::shared_ptr<Message> message;
    Nanoseconds at = 0;
  };
  [[nodiscard]] perflab_identity identity() const noexcept override { return id; }
  [[nodiscard]] std::size_t matched() noexcept override { return writers; }
  [[nodiscard]] bool ready() const noexcept override { return !history.empty(); }
  void take_one() noexcept override {
    taken = std::move(history.front());
    history.pop_front();
  }
  void run_taken() noexcept override {
    const Arrived arrived = std::exchange(taken, {});
    const Message& message = *arrived.message;
    handler->on_message(
        {message.bytes, message.writer, message.sequence, message.related, arrived.at, message.source_timestamp_ns});
  }

  MessageHandler* handler = nullptr;
  std::size_t writers = 0;
  std::size_t depth = 0;  // 0: unlimited
  perflab_qos qos{};
  std::uint64_t overwritten = 0;
  perflab_identity id{};
  std::deque<Arrived> history;
  Arrived taken;
};

// Triggered by a callback, which runs to its end ahead of other entities' virtual time: the trigger takes
// effect at its own time, and only then it is known whether an earlier one is still unanswered.
struct VirtualRuntime::Guarded final : Waitable, Source {
  void trigger(Nanoseconds due_ns) noexcept override;
  [[nodiscard]] bool ready() const noexcept override { return guard.triggered(); }
  void take_one() noexcept override { taken_due_ns = guard.take().value_or(0); }
  void run_taken() noexcept override { handler->on_triggered(taken_due_ns); }

  VirtualRuntime* runtime = nullptr;
  WaitableHandler* handler = nullptr;
  Guard guard;
  Nanoseconds taken_due_ns = 0;
};

struct VirtualRuntime::Writer final : Publisher {
  bool publish(const Outgoing& message) noexcept override {
    ++sent;
    runtime->send(*this, Parts(message).span(), {}, message.source_timestamp_ns);
    return true;
  }
  bool publish_related(std::span<const perflab_bytes> parts, const perflab_sample_identity* related,
                       std::int64_t* sequence) noexcept override {
    ++sent;
    runtime->send(*this, parts, related != nullptr ? *related : perflab_sample_identity{}, 0);
    if (sequence != nullptr) *sequence = sent;
    return true;
  }
  // Every message goes over a link.
  [[nodiscard]] Passing passing() noexcept override {
    return {.intra_process = 0, .copies = 0, .middleware = links.size(), .loaned = false};
  }
  [[nodiscard]] perflab_identity identity() const noexcept override { return id; }
  [[nodiscard]] std::size_t matched() noexcept override { return links.size(); }

  VirtualRuntime* runtime = nullptr;
  perflab_identity id{};
  std::int64_t sent = 0;
  std::string topic;
  perflab_qos qos{};
  std::vector<Link*> links;
};

// The threads of a multi-threaded executor and their shared state. As in the real one
// (dds/multi_threaded_executor.cpp): idle groups with work are queued, and each has a queue of its own.
struct VirtualRuntime::Pool {
  struct Group;
  struct Timer {
    TimerSchedule schedule;
    Group* group;
    bool queued = false;
  };
  // Exactly one of the two is set.
  struct Ready {
    Timer* timer = nullptr;
    Source* source = nullptr;
  };
  struct Group {
    std::deque<Ready> ready;
    std::optional<Ready> running;
    Nanoseconds busy_until = std::numeric_limits<Nanoseconds>::min();
    bool listed = false;
  };

  void list(Group& group) {
    if (group.listed || group.running || group.ready.empty()) return;
    group.listed = true;
    listed.push_back(&group);
  }
  void push(Source& source) {
    if (source.queued) return;
    source.queued = true;
    Group& group = groups[source.group];
    group.ready.push_back({nullptr, &source});
    list(group);
  }
  void push_due(Nanoseconds now) {
    std::vector<Timer*> due;
    for (Timer& timer : timers) {
      if (!timer.queued && !timer.schedule.done() && timer.schedule.next_due() <= now) due.push_back(&timer);
    }
    std::ranges::stable_sort(due, {}, [](const Timer* timer) { return timer->schedule.next_due(); });
    for (auto timer = due.rbegin(); timer != due.rend(); ++timer) {
      (*timer)->queued = true;
      Group& group = *(*timer)->group;
      group.ready.push_front({*timer, nullptr});
      if (group.listed || group.running) continue;
      group.listed = true;
      listed.push_front(&group);
    }
  }
  // Handles callbacks that have ended by now; their remaining work goes to the end of the queues.
  void finish(Nanoseconds now) {
    for (auto& [name, group] : groups) {
      if (!group.running || group.busy_until > now) continue;
      const Ready done = *std::exchange(group.running, std::nullopt);
      if (done.source != nullptr) {
        if (done.source->ready()) push(*done.source);
      } else if (!done.timer->schedule.done() && done.timer->schedule.next_due() <= group.busy_until) {
        group.ready.push_back(done);
      } else {
        done.timer->queued = false;
      }
      list(group);
    }
  }
  // When something may start if nothing arrives.
  [[nodiscard]] Nanoseconds next() const {
    Nanoseconds next = std::numeric_limits<Nanoseconds>::max();
    for (const auto& [name, group] : groups) {
      if (group.running) next = std::min(next, group.busy_until);
    }
    for (const Timer& timer : timers) {
      if (!timer.queued && !timer.schedule.done()) next = std::min(next, timer.schedule.next_due());
    }
    return next;
  }

  std::vector<Nanoseconds> servers;  // when each server becomes free
  std::map<std::size_t, Group> groups;
  std::deque<Group*> listed;
  std::deque<Timer> timers;
};

// Runs one callback at a time: an executor with one thread, or one thread of an inline one. With a pool: an
// executor with several threads.
struct VirtualRuntime::Lane {
  // single_threaded; the receive thread of inline; events; priority; let
  enum class Order { kCycles, kMessages, kEvents, kPriority, kLet };
  struct Timer : TimerSchedule {
    Timer(const TimerSettings& settings, TimerHandler& handler, std::size_t created)
        : TimerSchedule(settings, handler), rank(created), priority(settings.priority) {}
    // A tick that was due while the previous one was served queues behind what already waits.
    [[nodiscard]] Nanoseconds since_ns() const noexcept { return std::max(next_due(), served_ns); }

    std::size_t rank;  // rank as in Source
    int priority;
    Nanoseconds served_ns = std::numeric_limits<Nanoseconds>::min();
  };
  Order order = Order::kCycles;
  std::unique_ptr<Pool> pool;
  std::size_t members = 0;  // timers and sources
  std::vector<Timer> timers;
  std::vector<Source*> sources;
  std::deque<Source*> arrivals;
  Source* last =
      nullptr;  // for orders with a queue: the timer whose callback ran last; its next turn is behind what
                // already waits
  // A source is in the queue at most once.
  [[nodiscard]] bool queues() const noexcept { return order == Order::kEvents || order == Order::kPriority; }
  void push(Source& source, Nanoseconds now) {
    if (std::exchange(source.queued, true)) return;
    source.since_ns = now;
    arrivals.push_back(&source);
  }
  void add(Source& source) {
    source.rank = members++;
    sources.push_back(&source);
  }
  // The entities collected for this cycle.
  struct Ready {
    Timer* timer;
    Source* source;

    [[nodiscard]] std::size_t rank() const noexcept { return timer != nullptr ? timer->rank : source->rank; }
    [[nodiscard]] int priority() const noexcept { return timer != nullptr ? timer->priority : source->priority; }
    [[nodiscard]] Nanoseconds since_ns() const noexcept {
      return timer != nullptr ? timer->since_ns() : source->since_ns;
    }
  };
  std::vector<Ready> ready;
  std::size_t next_ready = 0;
  // For kLet: start of the current activation; with a period, no other starts before `next_begin`.
  Nanoseconds begin = 0;
  Nanoseconds period = 0;
  Nanoseconds base = 0;
  Nanoseconds next_begin = std::numeric_limits<Nanoseconds>::min();
  Nanoseconds free_at = std::numeric_limits<Nanoseconds>::min();
  Nanoseconds step_at = std::numeric_limits<Nanoseconds>::max();  // time of the scheduled step
};

// One of: a step of `lane`; `message` sent by `writer`; `message` arriving over `link`; the end of a hold on
// `link`; a trigger of `waitable`.
struct VirtualRuntime::Event {
  Nanoseconds at = 0;
  std::uint64_t order = 0;
  Lane* lane = nullptr;
  Writer* writer = nullptr;
  Link* link = nullptr;
  std::shared_ptr<Message> message{};
  Guarded* waitable = nullptr;
  Nanoseconds due_ns = 0;
  bool copy = false;  // the message arrives a second time
};

// The next event first. Sorting the heap moves only time and index of each event.
class VirtualRuntime::EventQueue {
 public:
  [[nodiscard]] bool empty() const noexcept { return keys_.empty(); }

  void push(Event&& event) {
    std::size_t slot = events_.size();
    if (free_.empty()) {
      keys_.push_back({event.at, event.order, slot});
      events_.push_back(std::move(event));
    } else {
      slot = free_.back();
      free_.pop_back();
      keys_.push_back({event.at, event.order, slot});
      events_[slot] = std::move(event);
    }
    std::ranges::push_heap(keys_, later);
  }

  Event pop() {
    std::ranges::pop_heap(keys_, later);
    const std::size_t slot = keys_.back().slot;
    keys_.pop_back();
    free_.push_back(slot);
    return std::move(events_[slot]);
  }

 private:
  struct Key {
    Nanoseconds at;
    std::uint64_t order;
    std::size_t slot;
  };
  static bool later(const Key& a, const Key& b) noexcept { return a.at != b.at ? a.at > b.at : a.order > b.order; }

  std::vector<Key> keys_;  // a heap
  std::vector<Event> events_;
  std::vector<std::size_t> free_;
};

void VirtualRuntime::Guarded::trigger(Nanoseconds due_ns) noexcept {
  runtime->events_->push({.at = runtime->clock_.now(),
                          .order = runtime->next_order_++,
                          .waitable = this,
                          .due_ns = due_ns});
}

namespace {

perflab_identity make_identity(std::uint8_t kind, std::uint64_t number) {
  perflab_identity identity{};
  identity.bytes[0] = kind;
  for (std::size_t i = 0; i < 8; ++i) identity.bytes[15 - i] = static_cast<std::uint8_t>(number >> (8 * i));
  return identity;
}

}  // namespace

VirtualRuntime::VirtualRuntime(const Options& options, std::uint64_t seed)
    : programme_(std::make_unique<Programme>()),
      events_(std::make_unique<EventQueue>()) {
  std::vector<perflab_option> disturbance;
  std::vector<perflab_option> own;
  for (const auto& [key, value] : options)
    (middleware::disturb::is_of_disturbance(key) ? disturbance : own).push_back({key.c_str(), value.c_str()});
  programme_->link = middleware::disturb::read_program(disturbance, seed);
  const middleware::support::Options read("virtual", own, {"service", "publish_call"});
  programme_->service = read.duration_ns("service").value_or(0);
  programme_->publish_call = read.duration_ns("publish_call").value_or(0);
}

VirtualRuntime::~VirtualRuntime() { VirtualRuntime::stop(); }

std::size_t VirtualRuntime::add_executor(const ExecutorSettings& settings) {
  if (!settings.thread.empty()) {
    throw Unsupported(settings.name + ": " + realtime::describe(settings.thread) +
                      ": virtual time has no threads to schedule");
  }
  const std::size_t first = lanes_.size();
  std::size_t timers = first;
  lanes_.push_back(std::make_unique<Lane>());
  Lane& lane = *lanes_.back();
  switch (settings.kind) {
    case ExecutorKind::kStaticSingleThreaded:
      throw Unsupported(settings.name +
                        ": static_single_threaded is an executor of rclcpp; right would be "
                        "single_threaded");
    case ExecutorKind::kPolling:
      throw Unsupported(settings.name +
                        ": polling: in virtual time polling takes no time; right would be single_threaded");
    case ExecutorKind::kSingleThreaded:
      break;
    case ExecutorKind::kPriority:
      lane.order = Lane::Order::kPriority;
      break;
    case ExecutorKind::kLet:
      lane.order = Lane::Order::kLet;
      lane.period = settings.period_ns;
      break;
    case ExecutorKind::kEvents:
      lane.order = Lane::Order::kEvents;
      break;
    case ExecutorKind::kInline:
      lane.order = Lane::Order::kMessages;
      lanes_.push_back(std::make_unique<Lane>());
      ++timers;
      break;
    case ExecutorKind::kMultiThreaded:
      if (settings.threads <= 0) {
        throw Unsupported(settings.name +
                          ": one thread per CPU: virtual time has no CPUs; right would be a number");
      }
      lane.pool = std::make_unique<Pool>();
      lane.pool->servers.assign(static_cast<std::size_t>(settings.threads),
                                std::numeric_limits<Nanoseconds>::min());
      break;
  }
  executors_.push_back({first, timers});
  return executors_.size() - 1;
}

void VirtualRuntime::connect(Writer& writer, Reader& reader) {
  if (middleware::incompatible_policy(writer.qos, reader.qos) != nullptr) return;
  const bool concerned = programme_->link.concerns(writer.topic);
  auto link = std::make_unique<Link>(
      writer, reader, concerned ? programme_->link : middleware::disturb::Program{}, links_.size());
  writer.links.push_back(link.get());
  links_.push_back(std::move(link));
  ++reader.writers;
}

namespace {

void refuse_loans(const EndpointSettings& settings) {
  if (settings.pass_by != PassBy::kLoaned) return;
  throw Unsupported("virtual: topic '" + settings.topic +
                    "' shall pass loaned messages, which virtual time does not support; right would be "
                    "unique or shared");
}

}  // namespace

Publisher& VirtualRuntime::create_publisher(const EndpointSettings& settings) {
  refuse_loans(settings);
  middleware::require_ros2_policies("virtual", settings.topic, settings.qos);
  auto writer = std::make_unique<Writer>();
  writer->runtime = this;
  writer->id = make_identity(1, writers_.size());
  const std::string name = wire_name(settings);
  clock_.set(clock_.now() + kCreation);
  writer->qos = settings.qos;
  writer->topic = settings.kind == TopicKind::kTopic ? settings.topic : name;
  for (Reader* reader : readers_by_topic_[name]) {
    connect(*writer, *reader);
  }
  writers_by_topic_[name].push_back(writer.get());
  writers_.push_back(std::move(writer));
  return *writers_.back();
}

Subscription& VirtualRuntime::create_subscription(std::size_t executor, const EndpointSettings& settings,
                                                  MessageHandler& handler) {
  refuse_loans(settings);
  middleware::require_ros2_policies("virtual", settings.topic, settings.qos);
  auto reader = std::make_unique<Reader>();
  reader->handler = &handler;
  reader->lane = lanes_[executors_.at(executor).messages].get();
  reader->group = settings.group;
  reader->depth = settings.qos.history == PERFLAB_KEEP_ALL ? 0 : static_cast<std::size_t>(settings.qos.depth);
  reader->qos = settings.qos;
  reader->id = make_identity(2, readers_.size());
  reader->priority = settings.priority;
  reader->lane->add(*reader);
  clock_.set(clock_.now() + kCreation);
  const std::string name = wire_name(settings);
  for (Writer* writer : writers_by_topic_[name]) {
    connect(*writer, *reader);
  }
  readers_by_topic_[name].push_back(reader.get());
  readers_.push_back(std::move(reader));
  return *readers_.back();
}

void VirtualRuntime::create_timer(std::size_t executor, const TimerSettings& settings,
                                  TimerHandler& handler) {
  Lane& lane = *lanes_[executors_.at(executor).timers];
  if (lane.pool) {
    lane.pool->timers.push_back({TimerSchedule(settings, handler), &lane.pool->groups[settings.group]});
  } else {
    lane.timers.emplace_back(settings, handler, lane.members++);
  }
}

Waitable& VirtualRuntime::create_waitable(std::size_t executor, const WaitableSettings& settings,
                                          WaitableHandler& handler) {
  auto waitable = std::make_unique<Guarded>();
  waitable->runtime = this;
  waitable->handler = &handler;
  waitable->lane = lanes_[executors_.at(executor).messages].get();
  waitable->group = settings.group;
  waitable->priority = settings.priority;
  waitable->lane->add(*waitable);
  waitables_.push_back(std::move(waitable));
  return *waitables_.back();
}

namespace {

// Unique for each client or server; virtual time has only one process.
ServiceId numbered_service_id(std::size_t number) {
  ServiceId id{};
  for (std::size_t i = 0; i < 8; ++i) id[i] = static_cast<std::uint8_t>((number + 1) >> (8 * i));
  return id;
}

}  // namespace

Client& VirtualRuntime::create_client(std::size_t executor, const ServiceSettings& settings,
                                      MessageHandler& handler) {
  clients_.push_back(std::make_unique<ServiceClient>(*this, executor, settings, service_framing(),
                                                     numbered_service_id(clients_.size() + servers_.size()),
                                                     handler));
  return *clients_.back();
}

Server& VirtualRuntime::create_server(std::size_t executor, const ServiceSettings& settings,
                                      RequestHandler& handler) {
  servers_.push_back(std::make_unique<ServiceServer>(*this, executor, settings, service_framing(),
                                                     numbered_service_id(clients_.size() + servers_.size()),
                                                     handler));
  return *servers_.back();
}

ActionClient& VirtualRuntime::create_action_client(std::size_t executor, const ActionSettings& settings,
                                               ActionClientHandler& handler) {
  action_clients_.push_back(std::make_unique<ServiceActionClient>(*this, executor, settings, handler));
  return *action_clients_.back();
}

ActionServer& VirtualRuntime::create_action_server(std::size_t executor, const ActionSettings& settings,
                                               ActionServerHandler& handler) {
  action_servers_.push_back(
      std::make_unique<ServiceActionServer>(*this, executor, settings, ServiceActionServer::Time::kOfRuntime, handler));
  return *action_servers_.back();
}

void VirtualRuntime::start(Nanoseconds base_ns) {
  clock_.set(base_ns);
  for (const auto& lane : lanes_) {
    lane->base = base_ns;
    Nanoseconds first = std::numeric_limits<Nanoseconds>::max();
    for (TimerSchedule& timer : lane->timers) {
      timer.set_base(base_ns);
      if (!timer.done()) first = std::min(first, timer.next_due());
    }
    if (lane->pool) {
      for (Pool::Timer& timer : lane->pool->timers) timer.schedule.set_base(base_ns);
      first = lane->pool->next();
    }
    if (first != std::numeric_limits<Nanoseconds>::max()) wake(*lane, first);
  }
  thread_ = std::thread([this] {
    realtime::name_this_thread("virtual");
    simulate();
  });
}

void VirtualRuntime::stop() noexcept {
  for (const auto& server : action_servers_) server->close();
  for (const auto& server : servers_) server->close();
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void VirtualRuntime::simulate() noexcept {
  while (!events_->empty() && !stopping_.load(std::memory_order_relaxed)) {
    Event event = events_->pop();
    clock_.set(event.at);
    if (event.waitable != nullptr) {
      arrive(*event.waitable, event.due_ns);
    } else if (event.writer != nullptr) {
      offer(*event.writer, event.message);
    } else if (event.message) {
      arrive(*event.link, std::move(event.message), event.copy);
    } else if (event.link != nullptr) {
      if (event.link->disturbance.held_until_ns() <= event.at) release_held(*event.link);
    } else if (event.at == event.lane->step_at) {  // otherwise an earlier wake-up has replaced it
      event.lane->step_at = std::numeric_limits<Nanoseconds>::max();
      step(*event.lane);
    }
  }
  finished_.store(true, std::memory_order_release);
}

std::shared_ptr<VirtualRuntime::Message> VirtualRuntime::make_message(std::span<const perflab_bytes> parts,
                                                                      const perflab_identity& writer) {
  // Large buffers are reused when the last reader has finished with them.
  std::shared_ptr<Message> message(new Message, [this](Message* done) {
    free_buffers_.push_back(std::move(done->bytes));
    delete done;
  });
  if (!free_buffers_.empty()) {
    message->bytes = std::move(free_buffers_.back());
    free_buffers_.pop_back();
  }
  message->bytes.clear();
  for (const perflab_bytes& part : parts) {
    const auto* begin = static_cast<const std::uint8_t*>(part.data);
    message->bytes.insert(message->bytes.end(), begin, begin + part.size);
  }
  message->writer = writer;
  return message;
}

void VirtualRuntime::send(Writer& writer, std::span<const perflab_bytes> parts,
                          const perflab_sample_identity& related, std::int64_t source_timestamp_ns) noexcept {
  std::shared_ptr<Message> message = make_message(parts, writer.id);
  if (source_timestamp_ns != 0) message->source_timestamp_ns = source_timestamp_ns;
  message->sequence = writer.sent;
  message->related = related;
  message->sent_ns = clock_.now();
  clock_.set(clock_.now() + programme_->publish_call);
  // A callback runs to its end, ahead of other entities' virtual time; links must see messages in time order.
  const Nanoseconds sent_ns = message->sent_ns;
  events_->push({sent_ns, next_order_++, nullptr, &writer, nullptr, std::move(message)});
}

void VirtualRuntime::offer(Writer& writer, const std::shared_ptr<Message>& message) {
  for (Link* link : writer.links) {
    switch (link->disturbance.offer(message.get(), message->sent_ns, link->arrivals)) {
      case middleware::disturb::Disturbance::Outcome::lost:
        break;
      case middleware::disturb::Disturbance::Outcome::held:
        link->held = message;
        events_->push({link->disturbance.held_until_ns(), next_order_++, nullptr, nullptr, link, nullptr});
        break;
      case middleware::disturb::Disturbance::Outcome::passed:
        schedule_arrivals(*link, message);
        break;
    }
  }
}

// Schedules what the last offer or release set free: the offered message, and possibly the held one.
void VirtualRuntime::schedule_arrivals(Link& link, const std::shared_ptr<Message>& offered) {
  for (const auto& arrival : link.arrivals) {
    const bool is_offered = arrival.message == offered.get();
    const auto& message = is_offered ? offered : link.held;
    events_->push({.at = arrival.due_ns,
                   .order = next_order_++,
                   .link = &link,
                   .message = message,
                   .copy = arrival.copy});
    link.count(arrival);
  }
  if (link.disturbance.held() == nullptr) link.held = nullptr;
}

// No successor came in time: the held message goes on in its original order.
void VirtualRuntime::release_held(Link& link) {
  link.disturbance.release(link.arrivals);
  for (const auto& arrival : link.arrivals) {
    events_->push({.at = std::max(arrival.due_ns, clock_.now()),
                   .order = next_order_++,
                   .link = &link,
                   .message = link.held,
                   .copy = arrival.copy});
    link.count(arrival);
  }
  link.held = nullptr;
}

void VirtualRuntime::arrive(Link& link, std::shared_ptr<Message> message, bool copy) {
  ++(copy ? link.duplicated : link.delivered);
  Reader& reader = *link.reader;
  if (reader.depth != 0 && reader.history.size() == reader.depth) {
    reader.history.pop_front();
    ++reader.overwritten;
  } else if (reader.lane->order == Lane::Order::kMessages) {
    reader.lane->arrivals.push_back(&reader);
  }
  reader.history.push_back({std::move(message), clock_.now()});
  announce(reader);
}

void VirtualRuntime::arrive(Guarded& waitable, Nanoseconds due_ns) {
  if (!waitable.guard.trigger(due_ns)) {
    waitable.handler->on_coalesced(due_ns);
    return;
  }
  if (waitable.lane->order == Lane::Order::kMessages) waitable.lane->arrivals.push_back(&waitable);
  announce(waitable);
}

// Tells the executor that there is something to run.
void VirtualRuntime::announce(Source& source) {
  Lane& lane = *source.lane;
  if (lane.pool) {
    lane.pool->push(source);
  } else if (lane.queues()) {
    lane.push(source, clock_.now());
  }
  wake(lane, clock_.now());
}

// Schedules the lane's next step, not before the lane is free.
void VirtualRuntime::wake(Lane& lane, Nanoseconds at) {
  at = std::max(at, lane.free_at);
  if (at >= lane.step_at) return;
  lane.step_at = at;
  events_->push({at, next_order_++, &lane, nullptr, nullptr, nullptr});
}

// Collects everything that is ready now, timers first, each entity once, like a wait-set. False if there is
// nothing.
bool VirtualRuntime::collect(Lane& lane) {
  lane.ready.clear();
  lane.next_ready = 0;
  for (Lane::Timer& timer : lane.timers) {
    if (!timer.done() && timer.next_due() <= clock_.now()) lane.ready.push_back({&timer, nullptr});
  }
  if (lane.order == Lane::Order::kPriority) {
    choose_by_priority(lane);
    return !lane.ready.empty();
  }
  if (lane.order == Lane::Order::kLet) {
    take_all(lane);
    return !lane.ready.empty();
  }
  if (lane.order == Lane::Order::kCycles) {
    for (Source* source : lane.sources) {
      if (source->ready()) lane.ready.push_back({nullptr, source});
    }
  } else if (!lane.arrivals.empty()) {
    lane.ready.push_back({nullptr, lane.arrivals.front()});
    lane.arrivals.pop_front();
  }
  return !lane.ready.empty();
}

// Chooses from the due timers and the queue by priority.
void VirtualRuntime::choose_by_priority(Lane& lane) {
  for (Source* const source : lane.arrivals) lane.ready.push_back({nullptr, source});
  if (lane.ready.empty()) return;
  const auto first = std::ranges::min_element(lane.ready, [](const Lane::Ready& a, const Lane::Ready& b) {
    return a.priority() != b.priority() ? a.priority() > b.priority() : a.since_ns() < b.since_ns();
  });
  const Lane::Ready chosen = *first;
  lane.ready.assign(1, chosen);
  if (chosen.source != nullptr) std::erase(lane.arrivals, chosen.source);
}

void VirtualRuntime::take_all(Lane& lane) {
  for (Source* const source : lane.sources) {
    if (!source->ready()) continue;
    source->take_one();
    lane.ready.push_back({nullptr, source});
  }
  std::ranges::sort(lane.ready, {}, &Lane::Ready::rank);
  lane.begin = clock_.now();
  if (!lane.ready.empty()) lane.next_begin = lane.begin + lane.period;
}

// Runs one callback; the lane is then busy for the callback's duration.
void VirtualRuntime::step(Lane& lane) {
  if (lane.pool) {
    step(*lane.pool, lane);
    return;
  }
  if (lane.last != nullptr) {
    Source& source = *std::exchange(lane.last, nullptr);
    if (source.ready()) lane.push(source, clock_.now());
  }
  if (lane.period > 0 && lane.next_ready == lane.ready.size()) {
    const Nanoseconds since = std::max(clock_.now(), lane.next_begin) - lane.base;
    const Nanoseconds into = ((since % lane.period) + lane.period) % lane.period;
    const Nanoseconds begin = lane.base + since + (into == 0 ? 0 : lane.period - into);
    if (begin > clock_.now()) {
      wake(lane, begin);
      return;
    }
  }
  if (lane.next_ready == lane.ready.size() && !collect(lane)) {
    Nanoseconds next = std::numeric_limits<Nanoseconds>::max();
    for (const TimerSchedule& timer : lane.timers) {
      if (!timer.done()) next = std::min(next, timer.next_due());
    }
    if (next != std::numeric_limits<Nanoseconds>::max()) wake(lane, next);
    return;
  }
  const Lane::Ready entity = lane.ready[lane.next_ready++];
  clock_.set(clock_.now() + programme_->service);
  if (entity.timer != nullptr) {
    entity.timer->fire(clock_.now());
    entity.timer->served_ns = clock_.now();
    // With a period, `let` runs all ticks that were due when the activation began.
    const bool again = lane.period > 0 && !entity.timer->done() && entity.timer->next_due() <= lane.begin;
    if (again) --lane.next_ready;
  } else if (lane.order == Lane::Order::kLet) {
    entity.source->run_taken();
  } else {
    if (lane.queues()) {
      entity.source->queued = false;
      lane.last = entity.source;
    }
    entity.source->run_one();
  }
  lane.free_at = clock_.now();
  wake(lane, lane.free_at);
}

// Gives each free server a callback of an idle group.
void VirtualRuntime::step(Pool& pool, Lane& lane) {
  const Nanoseconds now = clock_.now();
  pool.finish(now);
  pool.push_due(now);
  for (Nanoseconds& server : pool.servers) {
    if (pool.listed.empty()) break;
    if (server > now) continue;
    clock_.set(now);
    run_next(pool, server);
  }
  // Remaining work waits for a server; a server becomes free when its callback ends.
  const Nanoseconds next = pool.next();
  if (next != std::numeric_limits<Nanoseconds>::max()) wake(lane, std::max(next, now));
}

void VirtualRuntime::run_next(Pool& pool, Nanoseconds& server) {
  Pool::Group& group = *pool.listed.front();
  pool.listed.pop_front();
  group.listed = false;
  group.running = group.ready.front();
  group.ready.pop_front();
  clock_.set(clock_.now() + programme_->service);
  if (group.running->timer != nullptr) {
    group.running->timer->schedule.fire(clock_.now());
  } else {
    group.running->source->queued = false;
    group.running->source->run_one();
  }
  group.busy_until = clock_.now();
  server = group.busy_until;
}

std::string VirtualRuntime::describe() {
  nlohmann::json edges = nlohmann::json::array();
  for (const auto& link : links_) {
    edges.push_back({{"writer", middleware::to_hex(link->writer->id)},
                     {"reader", middleware::to_hex(link->reader->id)},
                     {"topic", link->writer->topic},
                     {"offered", link->disturbance.offered()},
                     {"delivered", link->delivered},
                     {"lost", link->disturbance.lost()},
                     {"reordered", link->reordered},
                     {"duplicated", link->duplicated},
                     {"stalled", link->stalled}});
  }
  const nlohmann::json description = {{"name", "virtual"},
                                      {"version", nullptr},
                                      {"effective",
                                       {{"service_ns", programme_->service},
                                        {"publish_call_ns", programme_->publish_call},
                                        {"disturb", middleware::disturb::to_json(programme_->link)},
                                        {"injected", {{"per_edge", edges}}}}}};
  return description.dump();
}

}  // namespace perflab::runtime
