#include "graph/live.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>

#include "message/cdr.h"
#include "message/types.h"

namespace perflab::graph {

using measure::detail::load;

namespace {

runtime::ExecutorKind runtime_kind(ExecutorKind kind) {
  return kind == ExecutorKind::kInline ? runtime::ExecutorKind::kInline
                                       : runtime::ExecutorKind::kSingleThreaded;
}

// A mutex only where there is somebody to exclude. With the inline executor a write may run the callbacks of readers of
// this process while the mutex is held; locks then follow the flow of data, which has no loop (refuse_inline_loops).
class Guard {
 public:
  explicit Guard(bool needed) : mutex_(needed ? std::make_unique<std::mutex>() : nullptr) {}
  [[nodiscard]] std::unique_lock<std::mutex> lock() const {
    return mutex_ ? std::unique_lock(*mutex_) : std::unique_lock<std::mutex>();
  }

 private:
  std::unique_ptr<std::mutex> mutex_;
};

bool operator<(const perflab_identity& a, const perflab_identity& b) noexcept {
  return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) < 0;
}
bool same(const perflab_identity& a, const perflab_identity& b) noexcept {
  return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

const message::MessageType& type_of(const std::string& name) {
  const message::MessageType* type = message::find_type(name);
  if (type == nullptr)
    throw runtime::Error(runtime::Error::Kind::kBadInput, "graph: unknown message type " + name);
  return *type;
}

// Who publishes and who subscribes a topic, over all processes.
struct TopicEnds {
  struct End {
    const Node* node;
    const Publisher* publisher;
  };
  std::vector<End> publishers;
  std::size_t subscriptions = 0;
};

std::map<std::string, TopicEnds> index_topics(const Graph& graph) {
  std::map<std::string, TopicEnds> topics;
  for (const Process& process : graph.processes) {
    for (const Node& node : process.nodes) {
      for (const Publisher& publisher : node.publishers)
        topics[publisher.topic].publishers.push_back({&node, &publisher});
      for (const Subscription& subscription : node.subscriptions) ++topics[subscription.topic].subscriptions;
    }
  }
  return topics;
}

// Publishers and edges of the processes that live here.
struct Sizes {
  std::size_t edges = 0;
  std::size_t publishers = 0;
};

Sizes count_recorders(const Graph& graph, std::optional<std::size_t> only,
                      const std::map<std::string, TopicEnds>& topics) {
  Sizes sizes;
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    if (only && *only != p) continue;
    for (const Node& node : graph.processes[p].nodes) {
      sizes.publishers += node.publishers.size();
      for (const Subscription& subscription : node.subscriptions) {
        sizes.edges += topics.at(subscription.topic).publishers.size();
      }
    }
  }
  return sizes;
}

}  // namespace

struct LiveGraph::Shared {
  Shared(const Graph& graph, std::optional<std::size_t> process, const measure::Clock& the_clock,
         measure::MessageEventQueue& event_queue)
      : topics(index_topics(graph)),
        sizes(count_recorders(graph, process, topics)),
        memory(sizes.edges, sizes.publishers),
        clock(the_clock),
        events(event_queue) {}

  std::map<std::string, TopicEnds> topics;
  Sizes sizes;
  measure::RecorderMemory memory;
  measure::HistogramMemory merged_memory{1};
  measure::Histogram merged{merged_memory};
  const measure::Clock& clock;
  measure::MessageEventQueue& events;
  std::uint32_t edges = 0;
  std::atomic<std::uint64_t> foreign{0};
  std::atomic<std::uint64_t> malformed{0};
};

class LiveGraph::LivePublisher {
 public:
  LivePublisher(Shared& shared, const Node& node, const Publisher& publisher, runtime::Publisher& endpoint,
                bool concurrent)
      : shared_(shared),
        node_(node),
        publisher_(publisher),
        endpoint_(endpoint),
        recorder_(shared.memory),
        variable_(type_of(publisher.type).variable),
        payload_(message::make_payload(type_of(publisher.type), publisher.size_bytes)),
        guard_(concurrent) {
    header_.size_bytes = publisher.size_bytes;
    header_.frequency_hz = static_cast<float>(publisher.frequency_hz);
  }

  // Sends the publisher's own payload.
  void publish(Nanoseconds intended_ns) noexcept { send(intended_ns, header_.size_bytes, payload_); }

  // Sends the payload of another message of the same type; `bytes` follow its frame, maybe with padding
  // behind.
  void relay(const message::Header& header, std::span<const std::uint8_t> bytes) noexcept {
    const std::size_t size = header.size_bytes + (variable_ ? sizeof(std::uint32_t) : 0);
    send(header.intended_ns, header.size_bytes, bytes.first(std::min(size, bytes.size())));
  }

  [[nodiscard]] WriterName name() const {
    return {node_.qualified_name(), publisher_.topic, endpoint_.identity()};
  }
  [[nodiscard]] std::size_t expected() const { return shared_.topics.at(publisher_.topic).subscriptions; }
  [[nodiscard]] std::size_t matched() { return endpoint_.matched(); }
  [[nodiscard]] PublisherView view() const { return {&node_, &publisher_, &recorder_}; }
  measure::PublisherRecorder& recorder() noexcept { return recorder_; }

 private:
  void send(Nanoseconds intended_ns, std::uint32_t size_bytes,
            std::span<const std::uint8_t> payload) noexcept {
    const auto lock = guard_.lock();
    message::Header header = header_;
    header.intended_ns = intended_ns;
    header.size_bytes = size_bytes;
    header.sequence = recorder_.next_sequence(intended_ns);
    message::Frame frame;
    const std::array<perflab_bytes, 2> parts{
        {{frame.data(), frame.size()}, {payload.data(), payload.size()}}};
    header.published_ns = shared_.clock.now();
    message::encode_frame(header, frame);
    if (!endpoint_.publish(parts)) {
      recorder_.record_write_error(intended_ns);
      return;
    }
    const Nanoseconds returned_ns = shared_.clock.now();
    recorder_.record_sent({intended_ns, header.published_ns, header.sequence}, returned_ns);
  }

  Shared& shared_;
  const Node& node_;
  const Publisher& publisher_;
  runtime::Publisher& endpoint_;
  measure::PublisherRecorder recorder_;
  message::Header header_;
  bool variable_;
  std::vector<std::uint8_t> payload_;
  Guard guard_;
};

// What a node does with a message or, for a cyclic reaction, with its period.
class LiveGraph::LiveReaction final : public runtime::TimerHandler {
 public:
  LiveReaction(const Reaction& reaction, std::vector<LivePublisher*> publishers, runtime::Runtime& runtime,
               bool concurrent)
      : reaction_(reaction),
        publishers_(std::move(publishers)),
        runtime_(runtime),
        oldest_(reaction.on.size()),
        guard_(concurrent && reaction.on.size() > 1) {}

  void on_input(std::size_t input, const message::Header& header,
                std::span<const std::uint8_t> bytes) noexcept {
    switch (reaction_.kind) {
      case ReactionKind::kRelay:
        runtime_.work(reaction_.work_ns);
        for (LivePublisher* publisher : publishers_) {
          publisher->relay(header, bytes.subspan(message::kFrameBytes));
        }
        break;
      case ReactionKind::kTransform:
      case ReactionKind::kSink:
        react(header.intended_ns);
        break;
      case ReactionKind::kFusion:
        if (const std::optional<Nanoseconds> oldest = fuse(input, header.intended_ns)) react(*oldest);
        break;
      case ReactionKind::kCyclic:
        break;  // the message is consumed; the period publishes
    }
  }

  void on_tick(Nanoseconds due_ns) noexcept override { react(due_ns); }
  void on_skipped(Nanoseconds /*first_due_ns*/, std::uint64_t /*count*/) noexcept override {}

 private:
  void react(Nanoseconds intended_ns) noexcept {
    runtime_.work(reaction_.work_ns);
    for (LivePublisher* publisher : publishers_) publisher->publish(intended_ns);
  }

  // The oldest input's intended time once every input has a message that no earlier fusion used; later
  // messages of an input take the place of earlier ones.
  std::optional<Nanoseconds> fuse(std::size_t input, Nanoseconds intended_ns) noexcept {
    const auto lock = guard_.lock();
    if (!oldest_[input]) ++inputs_ready_;
    oldest_[input] = intended_ns;
    if (inputs_ready_ < oldest_.size()) return std::nullopt;
    Nanoseconds oldest = intended_ns;
    for (std::optional<Nanoseconds>& value : oldest_) {
      oldest = std::min(oldest, *value);
      value.reset();
    }
    inputs_ready_ = 0;
    return oldest;
  }

  const Reaction& reaction_;
  std::vector<LivePublisher*> publishers_;
  runtime::Runtime& runtime_;
  std::vector<std::optional<Nanoseconds>> oldest_;
  std::size_t inputs_ready_ = 0;
  Guard guard_;
};

class LiveGraph::LiveSubscription final : public runtime::MessageHandler {
 public:
  LiveSubscription(Shared& shared, const Node& node, const Subscription& subscription,
                   const LiveSettings& settings)
      : shared_(shared), node_(node), subscription_(subscription) {
    for (const TopicEnds::End& end : shared.topics.at(subscription.topic).publishers) {
      edges_.push_back(std::make_unique<Edge>(Edge{
          end,
          measure::EdgeRecorder(shared.memory, shared.events, shared.edges++, settings.thresholds,
                                end.publisher->frequency_hz,
                                {.dispatch = settings.measure_dispatch, .work = settings.measure_work})}));
    }
  }

  void attach(runtime::Subscription& endpoint) noexcept { endpoint_ = &endpoint; }
  void add_reaction(LiveReaction& reaction, std::size_t input) { reactions_.push_back({&reaction, input}); }

  void set_writers(std::span<const WriterName> writers) {
    by_writer_.clear();
    for (const auto& edge : edges_) {
      const std::string node = edge->end.node->qualified_name();
      for (const WriterName& writer : writers) {
        if (writer.topic == subscription_.topic && writer.node == node)
          by_writer_.push_back({writer.identity, edge.get()});
      }
    }
    std::ranges::sort(by_writer_, [](const Known& a, const Known& b) { return a.writer < b.writer; });
    last_ = by_writer_.empty() ? nullptr : &by_writer_.front();
  }

  void measure_from(Nanoseconds instant) noexcept {
    for (const auto& edge : edges_) edge->recorder.measure_from(instant);
  }

  void on_message(const runtime::Delivery& delivery) noexcept override {
    const Nanoseconds callback_ns = shared_.clock.now();
    message::Header header;
    if (!message::decode_header(delivery.bytes, header)) {
      shared_.malformed.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    Edge* edge = find(delivery.writer);
    if (edge == nullptr) {
      shared_.foreign.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const bool recorded = edge->recorder.record_callback(
        {header.intended_ns, header.published_ns, header.sequence}, callback_ns, delivery.arrived_ns);
    for (const Input& input : reactions_) input.reaction->on_input(input.index, header, delivery.bytes);
    if (recorded && edge->recorder.wants_done()) edge->recorder.record_done(callback_ns, shared_.clock.now());
    if (recorded) measure::detail::add<std::uint64_t>(completed_, 1);
  }

  [[nodiscard]] std::size_t expected() const { return edges_.size(); }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const {
    return node_.qualified_name() + " subscription " + subscription_.topic;
  }
  [[nodiscard]] std::uint64_t completed() const noexcept { return load(completed_); }
  void append_views(std::vector<EdgeView>& views) const {
    for (const auto& edge : edges_) {
      views.push_back({edge->end.node->qualified_name(), &node_, edge->end.publisher, &edge->recorder});
    }
  }

 private:
  struct Edge {
    TopicEnds::End end;
    measure::EdgeRecorder recorder;
  };
  struct Known {
    perflab_identity writer;
    Edge* edge;
  };
  struct Input {
    LiveReaction* reaction;
    std::size_t index;
  };

  Edge* find(const perflab_identity& writer) noexcept {
    if (last_ != nullptr && same(last_->writer, writer)) return last_->edge;
    const auto found = std::ranges::lower_bound(
        by_writer_, writer, [](const auto& a, const auto& b) { return a < b; }, &Known::writer);
    if (found == by_writer_.end() || !same(found->writer, writer)) return nullptr;
    last_ = &*found;
    return found->edge;
  }

  Shared& shared_;
  const Node& node_;
  const Subscription& subscription_;
  runtime::Subscription* endpoint_ = nullptr;
  // Behind pointers: a recorder stays where it is, and two edges do not share cache lines.
  std::vector<std::unique_ptr<Edge>> edges_;
  std::vector<Known> by_writer_;
  const Known* last_ = nullptr;
  std::vector<Input> reactions_;
  std::uint64_t completed_ = 0;
};

class LiveGraph::LiveTimer final : public runtime::TimerHandler {
 public:
  LiveTimer(const Timer& timer, std::vector<LivePublisher*> publishers, runtime::Runtime& runtime)
      : timer_(timer), publishers_(std::move(publishers)), runtime_(runtime) {}

  void measure_from(Nanoseconds instant) noexcept { measured_from_ = instant; }

  void on_tick(Nanoseconds due_ns) noexcept override {
    runtime_.work(timer_.work_ns);
    for (LivePublisher* publisher : publishers_) publisher->publish(due_ns);
  }

  void on_skipped(Nanoseconds first_due_ns, std::uint64_t count) noexcept override {
    // Ticks of the warm-up are nobody's loss.
    if (first_due_ns <= measured_from_) {
      const auto before = static_cast<std::uint64_t>((measured_from_ - first_due_ns) / timer_.period_ns + 1);
      if (before >= count) return;
      count -= before;
      first_due_ns += static_cast<Nanoseconds>(before) * timer_.period_ns;
    }
    for (LivePublisher* publisher : publishers_) publisher->recorder().record_not_sent(first_due_ns, count);
  }

 private:
  const Timer& timer_;
  std::vector<LivePublisher*> publishers_;
  runtime::Runtime& runtime_;
  Nanoseconds measured_from_ = kUnknownTime;
};

namespace {

// With the inline executor a write runs the callbacks of this process's readers before it returns, so a loop of
// reactions would call itself without end, or wait for itself inside the middleware. Throws kBadInput naming it.
void refuse_inline_loops(const Process& process, const std::map<int, runtime::ExecutorKind>& kinds) {
  std::map<std::string, std::vector<std::string>> reached;  // topic -> topics published in reaction to it
  for (const Node& node : process.nodes) {
    if (kinds.at(node.executor) != runtime::ExecutorKind::kInline) continue;
    for (const Reaction& reaction : node.reactions) {
      if (reaction.kind == ReactionKind::kCyclic) continue;  // its period publishes, not the message
      for (const std::size_t input : reaction.on) {
        for (const std::size_t output : reaction.publish) {
          reached[node.subscriptions[input].topic].push_back(node.publishers[output].topic);
        }
      }
    }
  }
  enum class State { kNew, kOpen, kClosed };
  std::map<std::string, State> states;
  const std::function<void(const std::string&)> visit = [&](const std::string& topic) {
    states[topic] = State::kOpen;
    for (const std::string& next : reached[topic]) {
      if (states[next] == State::kOpen) {
        throw runtime::Error(runtime::Error::Kind::kBadInput,
                             "process " + process.name + ": the inline executor cannot run the loop from topic " + next +
                                 " back to it; use single_threaded, or put a part of the loop into another process");
      }
      if (states[next] == State::kNew) visit(next);
    }
    states[topic] = State::kClosed;
  };
  std::vector<std::string> topics;
  for (const auto& [topic, outputs] : reached) topics.push_back(topic);
  for (const std::string& topic : topics) {
    if (states[topic] == State::kNew) visit(topic);
  }
}

}  // namespace

LiveGraph::LiveGraph(const Graph& graph, std::optional<std::size_t> process, runtime::Runtime& runtime,
                     measure::MessageEventQueue& events, const LiveSettings& settings)
    : runtime_(runtime),
      settings_(settings),
      shared_(std::make_unique<Shared>(graph, process, runtime.clock(), events)) {
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    if (process && *process != p) continue;
    std::map<int, std::pair<std::size_t, runtime::ExecutorKind>> executors;
    for (const Executor& executor : graph.processes[p].executors) {
      const runtime::ExecutorKind kind = settings.executor.value_or(runtime_kind(executor.kind));
      executors[executor.id] = {
          runtime.add_executor(static_cast<int>(p), kind, "executor_" + std::to_string(executor.id)), kind};
    }
    std::map<int, runtime::ExecutorKind> kinds;
    for (const auto& [id, executor] : executors) kinds[id] = executor.second;
    refuse_inline_loops(graph.processes[p], kinds);
    for (const Node& node : graph.processes[p].nodes) {
      const auto& [executor, kind] = executors.at(node.executor);
      build_node(p, node, executor, kind);
    }
  }
}

LiveGraph::~LiveGraph() = default;

void LiveGraph::build_node(std::size_t process_index, const Node& node, std::size_t executor,
                           runtime::ExecutorKind kind) {
  const bool concurrent = runtime::concurrent_callbacks(kind);
  // A publisher with more than one trigger may be reached by two callbacks at a time.
  std::vector<std::size_t> triggers(node.publishers.size(), 0);
  for (const Timer& timer : node.timers) {
    for (const std::size_t index : timer.publish) ++triggers[index];
  }
  for (const Reaction& reaction : node.reactions) {
    const std::size_t inputs = reaction.kind == ReactionKind::kCyclic ? 1 : reaction.on.size();
    for (const std::size_t index : reaction.publish) triggers[index] += inputs;
  }

  std::vector<LivePublisher*> publishers;
  for (std::size_t i = 0; i < node.publishers.size(); ++i) {
    const Publisher& publisher = node.publishers[i];
    const message::MessageType& type = type_of(publisher.type);
    runtime::Publisher& endpoint = runtime_.create_publisher(
        {static_cast<int>(process_index), publisher.topic, std::string(type.ros_type),
         message::fixed_encoded_size(type), publisher.qos});
    publishers_.push_back(
        std::make_unique<LivePublisher>(*shared_, node, publisher, endpoint, concurrent && triggers[i] > 1));
    publishers.push_back(publishers_.back().get());
  }
  const auto chosen = [&publishers](const std::vector<std::size_t>& indexes) {
    std::vector<LivePublisher*> list;
    for (const std::size_t index : indexes) list.push_back(publishers.at(index));
    return list;
  };

  // Handlers first, endpoints after: the first message may come as soon as the endpoint exists.
  std::vector<LiveSubscription*> subscriptions;
  for (const Subscription& subscription : node.subscriptions) {
    subscriptions_.push_back(std::make_unique<LiveSubscription>(*shared_, node, subscription, settings_));
    subscriptions.push_back(subscriptions_.back().get());
  }
  const auto ticks = [](Nanoseconds span, Nanoseconds period) {
    return static_cast<std::int64_t>(span / period);
  };
  for (const Reaction& reaction : node.reactions) {
    reactions_.push_back(
        std::make_unique<LiveReaction>(reaction, chosen(reaction.publish), runtime_, concurrent));
    for (std::size_t input = 0; input < reaction.on.size(); ++input) {
      subscriptions.at(reaction.on[input])->add_reaction(*reactions_.back(), input);
    }
    if (reaction.kind == ReactionKind::kCyclic) {
      runtime_.create_timer(
          executor,
          {node.name + "_cycle", reaction.period_ns, 1 - ticks(settings_.warmup_ns, reaction.period_ns),
           ticks(settings_.duration_ns, reaction.period_ns), false},
          *reactions_.back());
    }
  }
  for (std::size_t i = 0; i < node.subscriptions.size(); ++i) {
    const Subscription& subscription = node.subscriptions[i];
    const message::MessageType& type = type_of(subscription.type);
    subscriptions[i]->attach(runtime_.create_subscription(
        executor,
        {static_cast<int>(process_index), subscription.topic, std::string(type.ros_type),
         message::fixed_encoded_size(type), subscription.qos},
        *subscriptions[i]));
  }
  for (const Timer& timer : node.timers) {
    timers_.push_back(std::make_unique<LiveTimer>(timer, chosen(timer.publish), runtime_));
    runtime_.create_timer(executor,
                          {timer.name, timer.period_ns, 1 - ticks(settings_.warmup_ns, timer.period_ns),
                           ticks(settings_.duration_ns, timer.period_ns), timer.overrun == Overrun::kSkip},
                          *timers_.back());
  }
}

std::vector<WriterName> LiveGraph::writers() const {
  std::vector<WriterName> names;
  for (const auto& publisher : publishers_) names.push_back(publisher->name());
  return names;
}

void LiveGraph::set_writers(std::span<const WriterName> writers) {
  for (const auto& subscription : subscriptions_) subscription->set_writers(writers);
}

std::vector<std::string> LiveGraph::unmatched() {
  std::vector<std::string> lines;
  const auto report = [&lines](const std::string& who, std::size_t matched, std::size_t expected,
                               const char* peers) {
    if (matched >= expected) return;
    lines.push_back(who + ": " + std::to_string(matched) + " of " + std::to_string(expected) + " " + peers);
  };
  for (const auto& publisher : publishers_) {
    const WriterName name = publisher->name();
    report(name.node + " publisher " + name.topic, publisher->matched(), publisher->expected(), "readers");
  }
  for (const auto& subscription : subscriptions_) {
    report(subscription->name(), subscription->matched(), subscription->expected(), "writers");
  }
  return lines;
}

void LiveGraph::start(Nanoseconds measured_from) {
  for (const auto& publisher : publishers_) publisher->recorder().measure_from(measured_from);
  for (const auto& subscription : subscriptions_) subscription->measure_from(measured_from);
  for (const auto& timer : timers_) timer->measure_from(measured_from);
  runtime_.start(measured_from);
}

Totals LiveGraph::totals() const noexcept {
  Totals totals;
  for (const auto& publisher : publishers_) {
    const measure::PublisherRecorder& recorder = *publisher->view().recorder;
    totals.sent += recorder.sent();
    totals.deliveries_expected += recorder.sent() * publisher->expected();
  }
  std::vector<EdgeView> views;
  for (const auto& subscription : subscriptions_) {
    totals.completed += subscription->completed();
    subscription->append_views(views);
  }
  for (const EdgeView& view : views) {
    totals.received += view.recorder->sequence().received();
    totals.lost += view.recorder->sequence().gap();
  }
  return totals;
}

const measure::Histogram& LiveGraph::merged_latency() {
  shared_->merged.clear();
  for (const EdgeView& view : edges()) shared_->merged.merge(view.recorder->latency());
  return shared_->merged;
}

std::vector<PublisherView> LiveGraph::publishers() const {
  std::vector<PublisherView> views;
  for (const auto& publisher : publishers_) views.push_back(publisher->view());
  return views;
}

std::vector<EdgeView> LiveGraph::edges() const {
  std::vector<EdgeView> views;
  for (const auto& subscription : subscriptions_) subscription->append_views(views);
  return views;
}

std::uint64_t LiveGraph::foreign_messages() const noexcept {
  return shared_->foreign.load(std::memory_order_relaxed);
}
std::uint64_t LiveGraph::malformed_messages() const noexcept {
  return shared_->malformed.load(std::memory_order_relaxed);
}

}  // namespace perflab::graph
