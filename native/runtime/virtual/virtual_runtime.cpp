#include "runtime/virtual/virtual_runtime.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>

#include "middleware/plugin.h"
#include "middleware/sim/disturbance.h"
#include "middleware/sim/program.h"
#include "middleware/support/options.h"
#include "middleware/support/status.h"
#include "realtime/thread.h"

namespace perflab::runtime {

// What the options ask for.
struct VirtualRuntime::Programme {
  middleware::sim::Program link;
  Nanoseconds service = 0;
  Nanoseconds publish_call = 0;
};

struct VirtualRuntime::Message {
  std::vector<std::uint8_t> bytes;
  perflab_identity writer{};
  Nanoseconds sent_ns = 0;
};

// One writer to one reader: where disturbance happens and is counted.
struct VirtualRuntime::Link {
  Link(const Writer& from, Reader& to, const middleware::sim::Program& program, std::uint64_t number)
      : writer(&from), reader(&to), disturbance(program, number) {}

  const Writer* writer;
  Reader* reader;
  middleware::sim::Disturbance disturbance;
  middleware::sim::Disturbance::Arrivals arrivals;  // of the last offer
  std::shared_ptr<Message> held;                    // waits for its successor
  std::uint64_t delivered = 0;
  std::uint64_t reordered = 0;
  std::uint64_t duplicated = 0;
};

struct VirtualRuntime::Reader final : Subscription {
  struct Arrived {
    std::shared_ptr<Message> message;
    Nanoseconds at;
  };
  [[nodiscard]] std::size_t matched() noexcept override { return writers; }

  MessageHandler* handler = nullptr;
  Lane* lane = nullptr;
  std::size_t writers = 0;
  std::size_t depth = 0;  // 0: unlimited
  std::uint64_t overwritten = 0;
  perflab_identity identity{};
  std::deque<Arrived> history;
};

struct VirtualRuntime::Writer final : Publisher {
  bool publish(std::span<const perflab_bytes> parts) noexcept override {
    runtime->send(*this, parts);
    return true;
  }
  [[nodiscard]] perflab_identity identity() const noexcept override { return id; }
  [[nodiscard]] std::size_t matched() noexcept override { return links.size(); }

  VirtualRuntime* runtime = nullptr;
  perflab_identity id{};
  std::string topic;
  std::vector<Link*> links;
};

// Something that runs one callback at a time: a single-threaded executor, or one thread of an inline one.
struct VirtualRuntime::Lane {
  bool in_arrival_order = false;  // the receive thread of an inline executor
  std::vector<TimerSchedule> timers;
  std::vector<Reader*> readers;
  std::deque<Reader*> arrivals;
  // The entities collected for this cycle.
  struct Ready {
    TimerSchedule* timer;
    Reader* reader;
  };
  std::vector<Ready> ready;
  std::size_t next_ready = 0;
  Nanoseconds free_at = std::numeric_limits<Nanoseconds>::min();
  Nanoseconds step_at = std::numeric_limits<Nanoseconds>::max();  // of the step that is scheduled
};

// One of: a step of `lane`; `message` sent by `writer`; `message` arriving over `link`; the end of a hold on `link`.
struct VirtualRuntime::Event {
  Nanoseconds at;
  std::uint64_t order;
  Lane* lane;
  Writer* writer;
  Link* link;
  std::shared_ptr<Message> message;
};

struct VirtualRuntime::LaterFirst {
  bool operator()(const Event& a, const Event& b) const noexcept {
    return a.at != b.at ? a.at > b.at : a.order > b.order;
  }
};

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
      events_(std::make_unique<std::priority_queue<Event, std::vector<Event>, LaterFirst>>()) {
  std::vector<perflab_option> given;
  given.reserve(options.size());
  for (const auto& [key, value] : options) given.push_back({key.c_str(), value.c_str()});
  try {
    const middleware::support::Options read("virtual", given,
                                            {"delay", "jitter", "service", "publish_call", "loss",
                                             "loss_every", "reorder_every", "duplicate_every", "seed"});
    programme_->link.seed = seed;
    middleware::sim::read_disturbance(read, programme_->link);
    programme_->service = read.duration_ns("service").value_or(0);
    programme_->publish_call = read.duration_ns("publish_call").value_or(0);
  } catch (const middleware::support::StatusError& error) {
    throw Error(Error::Kind::kBadInput, error.what());
  }
}

VirtualRuntime::~VirtualRuntime() { VirtualRuntime::stop(); }

std::size_t VirtualRuntime::add_executor(int /*process*/, ExecutorKind kind, const std::string& /*name*/) {
  const std::size_t first = lanes_.size();
  lanes_.push_back(std::make_unique<Lane>());
  if (kind == ExecutorKind::kSingleThreaded) {
    executors_.push_back({first, first});
  } else {
    lanes_.back()->in_arrival_order = true;
    lanes_.push_back(std::make_unique<Lane>());
    executors_.push_back({first, first + 1});
  }
  return executors_.size() - 1;
}

void VirtualRuntime::connect(Writer& writer, Reader& reader) {
  auto link = std::make_unique<Link>(writer, reader, programme_->link, links_.size());
  writer.links.push_back(link.get());
  links_.push_back(std::move(link));
  ++reader.writers;
}

Publisher& VirtualRuntime::create_publisher(const EndpointSettings& settings) {
  auto writer = std::make_unique<Writer>();
  writer->runtime = this;
  writer->id = make_identity(1, writers_.size());
  writer->topic = settings.topic;
  for (Reader* reader : readers_by_topic_[settings.topic]) {
    connect(*writer, *reader);
  }
  writers_by_topic_[settings.topic].push_back(writer.get());
  writers_.push_back(std::move(writer));
  return *writers_.back();
}

Subscription& VirtualRuntime::create_subscription(std::size_t executor, const EndpointSettings& settings,
                                                  MessageHandler& handler) {
  auto reader = std::make_unique<Reader>();
  reader->handler = &handler;
  reader->lane = lanes_[executors_[executor].messages].get();
  reader->depth = settings.qos.history == PERFLAB_KEEP_ALL ? 0 : static_cast<std::size_t>(settings.qos.depth);
  reader->identity = make_identity(2, readers_.size());
  reader->lane->readers.push_back(reader.get());
  for (Writer* writer : writers_by_topic_[settings.topic]) {
    connect(*writer, *reader);
  }
  readers_by_topic_[settings.topic].push_back(reader.get());
  readers_.push_back(std::move(reader));
  return *readers_.back();
}

void VirtualRuntime::create_timer(std::size_t executor, const TimerSettings& settings,
                                  TimerHandler& handler) {
  lanes_[executors_[executor].timers]->timers.emplace_back(settings, handler);
}

void VirtualRuntime::start(Nanoseconds base_ns) {
  clock_.set(base_ns);
  for (const auto& lane : lanes_) {
    Nanoseconds first = std::numeric_limits<Nanoseconds>::max();
    for (TimerSchedule& timer : lane->timers) {
      timer.set_base(base_ns);
      if (!timer.done()) first = std::min(first, timer.next_due());
    }
    if (first != std::numeric_limits<Nanoseconds>::max()) wake(*lane, first);
  }
  thread_ = std::thread([this] {
    realtime::name_this_thread("virtual");
    simulate();
  });
}

void VirtualRuntime::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void VirtualRuntime::simulate() noexcept {
  while (!events_->empty() && !stopping_.load(std::memory_order_relaxed)) {
    const Event event = events_->top();
    events_->pop();
    clock_.set(event.at);
    if (event.writer != nullptr) {
      offer(*event.writer, event.message);
    } else if (event.message) {
      arrive(*event.link, event.message);
    } else if (event.link != nullptr) {
      if (event.link->disturbance.held_until_ns() <= event.at) release_held(*event.link);
    } else if (event.at == event.lane->step_at) {  // otherwise an earlier wake-up has taken its place
      event.lane->step_at = std::numeric_limits<Nanoseconds>::max();
      step(*event.lane);
    }
  }
  finished_.store(true, std::memory_order_release);
}

std::shared_ptr<VirtualRuntime::Message> VirtualRuntime::make_message(std::span<const perflab_bytes> parts,
                                                                      const perflab_identity& writer) {
  // Large buffers come back when the last reader is done with them.
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

void VirtualRuntime::send(Writer& writer, std::span<const perflab_bytes> parts) noexcept {
  const std::shared_ptr<Message> message = make_message(parts, writer.id);
  message->sent_ns = clock_.now();
  clock_.set(clock_.now() + programme_->publish_call);
  // A callback runs whole, ahead of the virtual time of others; links must see messages in the order of their times.
  events_->push({message->sent_ns, next_order_++, nullptr, &writer, nullptr, message});
}

void VirtualRuntime::offer(Writer& writer, const std::shared_ptr<Message>& message) {
  for (Link* link : writer.links) {
    switch (link->disturbance.offer(message.get(), message->sent_ns, link->arrivals)) {
      case middleware::sim::Disturbance::Outcome::lost:
        break;
      case middleware::sim::Disturbance::Outcome::held:
        link->held = message;
        events_->push({link->disturbance.held_until_ns(), next_order_++, nullptr, nullptr, link, nullptr});
        break;
      case middleware::sim::Disturbance::Outcome::passed:
        schedule_arrivals(*link, message);
        break;
    }
  }
}

// What the last offer or release set free: the offered message, and maybe the one that was held.
void VirtualRuntime::schedule_arrivals(Link& link, const std::shared_ptr<Message>& offered) {
  for (const auto& arrival : link.arrivals) {
    const bool is_offered = arrival.message == offered.get();
    events_->push({arrival.due_ns, next_order_++, nullptr, nullptr, &link, is_offered ? offered : link.held});
    if (arrival.copy) {
      ++link.duplicated;
    } else if (arrival.overtaken) {
      ++link.reordered;
    }
  }
  if (link.disturbance.held() == nullptr) link.held = nullptr;
}

// No successor has come in time: the held message goes on in its order.
void VirtualRuntime::release_held(Link& link) {
  link.disturbance.release(link.arrivals);
  for (const auto& arrival : link.arrivals) {
    events_->push({std::max(arrival.due_ns, clock_.now()), next_order_++, nullptr, nullptr, &link, link.held});
    if (arrival.copy) ++link.duplicated;
  }
  link.held = nullptr;
}

void VirtualRuntime::arrive(Link& link, const std::shared_ptr<Message>& message) {
  ++link.delivered;
  Reader& reader = *link.reader;
  if (reader.depth != 0 && reader.history.size() == reader.depth) {
    reader.history.pop_front();
    ++reader.overwritten;
  } else if (reader.lane->in_arrival_order) {
    reader.lane->arrivals.push_back(&reader);
  }
  reader.history.push_back({message, clock_.now()});
  wake(*reader.lane, clock_.now());
}

// Schedules the lane's next step, not before it is free.
void VirtualRuntime::wake(Lane& lane, Nanoseconds at) {
  at = std::max(at, lane.free_at);
  if (at >= lane.step_at) return;
  lane.step_at = at;
  events_->push({at, next_order_++, &lane, nullptr, nullptr, nullptr});
}

// Everything that is ready now, timers first, each entity once: what a wait-set hands out. False if nothing
// is.
bool VirtualRuntime::collect(Lane& lane) {
  lane.ready.clear();
  lane.next_ready = 0;
  for (TimerSchedule& timer : lane.timers) {
    if (!timer.done() && timer.next_due() <= clock_.now()) lane.ready.push_back({&timer, nullptr});
  }
  if (lane.in_arrival_order) {
    if (!lane.arrivals.empty()) {
      lane.ready.push_back({nullptr, lane.arrivals.front()});
      lane.arrivals.pop_front();
    }
  } else {
    for (Reader* reader : lane.readers) {
      if (!reader->history.empty()) lane.ready.push_back({nullptr, reader});
    }
  }
  return !lane.ready.empty();
}

// Runs one callback; the lane is then busy until the callback's own time has passed.
void VirtualRuntime::step(Lane& lane) {
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
  } else if (!entity.reader->history.empty()) {
    const Reader::Arrived arrived = std::move(entity.reader->history.front());
    entity.reader->history.pop_front();
    entity.reader->handler->on_message(
        {arrived.message->bytes, arrived.message->writer, arrived.at, kUnknownTime});
  }
  lane.free_at = clock_.now();
  wake(lane, lane.free_at);
}

std::string VirtualRuntime::describe() {
  nlohmann::json edges = nlohmann::json::array();
  for (const auto& link : links_) {
    edges.push_back({{"writer", middleware::to_hex(link->writer->id)},
                     {"reader", middleware::to_hex(link->reader->identity)},
                     {"topic", link->writer->topic},
                     {"offered", link->disturbance.offered()},
                     {"delivered", link->delivered},
                     {"lost", link->disturbance.lost()},
                     {"reordered", link->reordered},
                     {"duplicated", link->duplicated}});
  }
  const nlohmann::json description = {{"name", "virtual"},
                                      {"version", nullptr},
                                      {"effective",
                                       {{"delay_ns", programme_->link.delay_ns},
                                        {"jitter_ns", programme_->link.jitter_ns},
                                        {"service_ns", programme_->service},
                                        {"publish_call_ns", programme_->publish_call},
                                        {"loss", programme_->link.loss},
                                        {"loss_every", programme_->link.loss_every},
                                        {"reorder_every", programme_->link.reorder_every},
                                        {"duplicate_every", programme_->link.duplicate_every},
                                        {"seed", programme_->link.seed},
                                        {"injected", {{"per_edge", edges}}}}}};
  return description.dump();
}

}  // namespace perflab::runtime
