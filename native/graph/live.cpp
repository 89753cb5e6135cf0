#include "graph/live.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "message/cdr.h"
#include "message/types.h"
#include "middleware/types.h"

namespace perflab::graph {

using measure::detail::load;

namespace {

// A condition keeps its mean rate through short stalls of its own thread, and still ends with its trial.
constexpr Nanoseconds kMadeUpFor = 100'000'000;

// What an executor's thread is called: after its node, and how many more there are ("montreal+9").
std::string thread_name(const Executor& executor, const std::vector<std::string>& nodes, bool after_nodes) {
  if (!after_nodes || nodes.empty()) return "executor_" + std::to_string(executor.id);
  constexpr std::size_t kKernelKeeps = 15;
  const std::string more = nodes.size() > 1 ? "+" + std::to_string(nodes.size() - 1) : "";
  const std::string& first = nodes.front();
  return first.substr(first.rfind('/') + 1).substr(0, kKernelKeeps - more.size()) + more;
}

// A mutex only where there is somebody to exclude. With the inline executor a write may run the callbacks of
// readers of this process while the mutex is held; locks then follow the flow of data, which has no loop
// (refuse_inline_loops).
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
using middleware::same;

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
  std::size_t own_subscriptions = 0;  // the workload's

  // Which of the publishers it is; messages say so.
  [[nodiscard]] std::size_t source_of(const Publisher& publisher) const {
    return static_cast<std::size_t>(std::ranges::find(publishers, &publisher, &End::publisher) -
                                    publishers.begin());
  }
};

std::map<std::string, TopicEnds> index_topics(const Graph& graph) {
  std::map<std::string, TopicEnds> topics;
  for (const Process& process : graph.processes) {
    for (const Node& node : process.nodes) {
      for (const Publisher& publisher : node.publishers)
        topics[publisher.topic].publishers.push_back({&node, &publisher});
      for (const Subscription& subscription : node.subscriptions) {
        TopicEnds& ends = topics[subscription.topic];
        ++ends.subscriptions;
        if (node.condition.empty()) ++ends.own_subscriptions;
      }
    }
  }
  return topics;
}

std::set<std::string> index_conditions(const Graph& graph) {
  std::set<std::string> labels;
  for (const Process& process : graph.processes) {
    for (const Node& node : process.nodes) {
      if (!node.condition.empty()) labels.insert(node.condition);
    }
  }
  return labels;
}

// What an edge or service between two nodes records.
measure::EdgeFigures figures_of(const LiveSettings& settings, const Node& from, const Node& to, bool work) {
  return {.dispatch = settings.measure_dispatch,
          .work = settings.measure_work && work,
          .events = condition_between(from, to).empty()};
}

// The server of a service, and how many clients it has, over all processes.
struct ServiceEnds {
  const Node* server = nullptr;
  std::size_t clients = 0;
};

std::map<std::string, ServiceEnds> index_services(const Graph& graph) {
  std::map<std::string, ServiceEnds> services;
  for (const Process& process : graph.processes) {
    for (const Node& node : process.nodes) {
      for (const Server& server : node.servers) services[server.service].server = &node;
      for (const Client& client : node.clients) ++services[client.service].clients;
    }
  }
  return services;
}

// Publishers, edges and clients of the processes that live here.
struct Sizes {
  std::size_t edges = 0;
  std::size_t publishers = 0;
  std::size_t clients = 0;
};

Sizes count_recorders(const Graph& graph, std::optional<std::size_t> only,
                      const std::map<std::string, TopicEnds>& topics) {
  Sizes sizes;
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    if (only && *only != p) continue;
    for (const Node& node : graph.processes[p].nodes) {
      sizes.publishers += node.publishers.size();
      sizes.clients += node.clients.size();
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
        services(index_services(graph)),
        conditions(index_conditions(graph)),
        sizes(count_recorders(graph, process, topics)),
        memory(sizes.edges + sizes.clients, sizes.publishers + sizes.clients),
        clock(the_clock),
        events(event_queue),
        clients(static_cast<std::uint32_t>(sizes.edges)) {}

  std::map<std::string, TopicEnds> topics;
  std::map<std::string, ServiceEnds> services;
  std::set<std::string> conditions;
  Sizes sizes;
  measure::RecorderMemory memory;
  measure::HistogramMemory merged_memory{1};
  measure::Histogram merged{merged_memory};
  const measure::Clock& clock;
  measure::MessageEventQueue& events;
  std::uint32_t edges = 0;
  std::uint32_t clients;  // numbered after the edges
  std::atomic<std::uint64_t> foreign{0};
  std::atomic<std::uint64_t> malformed{0};
};

namespace {

// Stamps and numbers the messages of one publisher or client, and records their sending.
class Sender {
 public:
  // `source`: which of its topic's publishers this is.
  Sender(measure::RecorderMemory& memory, const measure::Clock& clock, const message::MessageType& type,
         std::uint32_t size_bytes, double frequency_hz, bool concurrent, std::size_t source = 0,
         Nanoseconds period_ns = 0)
      : clock_(clock),
        recorder_(memory, period_ns),
        source_(source),
        variable_(type.variable),
        payload_(message::make_payload(type, size_bytes)),
        guard_(concurrent) {
    header_.size_bytes = size_bytes;
    header_.frequency_hz = static_cast<float>(frequency_hz);
  }

  // `prepare(payload)` and `publish(frame, payload)` are those of the endpoint.
  template <typename Prepare, typename Publish>
  void send(Nanoseconds intended_ns, std::uint32_t size_bytes, std::span<const std::uint8_t> payload,
            const Prepare& prepare, const Publish& publish) noexcept {
    const auto lock = guard_.lock();
    message::Header header = header_;
    header.intended_ns = intended_ns;
    header.size_bytes = size_bytes;
    const std::uint64_t sequence = recorder_.next_sequence(intended_ns);
    header.sequence = message::with_source(sequence, source_);
    message::Frame frame;
    if (!prepare(payload)) {
      recorder_.record_write_error(intended_ns);
      return;
    }
    header.published_ns = clock_.now();
    message::encode_frame(header, frame);
    if (!publish(frame, payload)) {
      recorder_.record_write_error(intended_ns);
      return;
    }
    const Nanoseconds returned_ns = clock_.now();
    recorder_.record_sent({intended_ns, header.published_ns, sequence}, returned_ns);
  }

  [[nodiscard]] std::uint32_t size_bytes() const noexcept { return header_.size_bytes; }
  [[nodiscard]] bool variable() const noexcept { return variable_; }
  [[nodiscard]] std::span<const std::uint8_t> payload() const noexcept { return payload_; }
  [[nodiscard]] measure::PublisherRecorder& recorder() noexcept { return recorder_; }
  [[nodiscard]] const measure::PublisherRecorder& recorder() const noexcept { return recorder_; }

 private:
  const measure::Clock& clock_;
  measure::PublisherRecorder recorder_;
  std::size_t source_;
  message::Header header_;
  bool variable_;
  std::vector<std::uint8_t> payload_;
  Guard guard_;
};

}  // namespace

class LiveGraph::LivePublisher {
 public:
  LivePublisher(Shared& shared, const Node& node, const Publisher& publisher, PassBy asked,
                runtime::Publisher& endpoint, bool concurrent)
      : shared_(shared),
        node_(node),
        publisher_(publisher),
        asked_(asked),
        endpoint_(endpoint),
        sender_(shared.memory, shared.clock, type_of(publisher.type), publisher.size_bytes,
                publisher.frequency_hz, concurrent, shared.topics.at(publisher.topic).source_of(publisher),
                node.condition.empty() ? node.period_of(publisher) : 0) {}

  // Sends the publisher's own payload.
  void publish(Nanoseconds intended_ns) noexcept {
    send(intended_ns, sender_.size_bytes(), sender_.payload());
  }

  // Sends the payload of another message of the same type.
  void relay(const message::Header& header, const runtime::Delivery& delivery) noexcept {
    if (delivery.content.data() != nullptr) {
      relay_content(header, delivery.content);
      return;
    }
    // Maybe with padding behind.
    const auto bytes = delivery.bytes.subspan(message::kFrameBytes);
    const std::size_t size = header.size_bytes + (sender_.variable() ? sizeof(std::uint32_t) : 0);
    send(header.intended_ns, header.size_bytes, bytes.first(std::min(size, bytes.size())));
  }

  [[nodiscard]] WriterName name() const {
    return {node_.qualified_name(), publisher_.topic, endpoint_.identity()};
  }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const TopicEnds& ends() const { return shared_.topics.at(publisher_.topic); }
  [[nodiscard]] std::size_t expected() const { return ends().subscriptions; }
  [[nodiscard]] std::size_t matched() { return endpoint_.matched(); }
  [[nodiscard]] PublisherView view() const { return {&node_, &publisher_, &sender_.recorder()}; }
  [[nodiscard]] PassingView passing() { return {&node_, &publisher_, asked_, endpoint_.passing()}; }
  measure::PublisherRecorder& recorder() noexcept { return sender_.recorder(); }

 private:
  void send(Nanoseconds intended_ns, std::uint32_t size_bytes,
            std::span<const std::uint8_t> payload) noexcept {
    sender_.send(
        intended_ns, size_bytes, payload, [this](const auto& bytes) { return endpoint_.prepare(bytes); },
        [this](const auto& frame, const auto& bytes) { return endpoint_.publish(frame, bytes); });
  }

  // The length goes with the frame, for the content comes without.
  void relay_content(const message::Header& header, std::span<const std::uint8_t> content) noexcept {
    sender_.send(
        header.intended_ns, header.size_bytes, content, [](const auto&) { return true; },
        [this](const message::Frame& frame, const auto& bytes) {
          std::array<std::uint8_t, message::kFrameBytes + sizeof(std::uint32_t)> start;
          std::ranges::copy(frame, start.begin());
          const auto length = static_cast<std::uint32_t>(bytes.size());
          std::memcpy(start.data() + message::kFrameBytes, &length, sizeof length);
          return endpoint_.publish(std::span(start).first(sender_.variable() ? start.size() : frame.size()),
                                   bytes);
        });
  }

  Shared& shared_;
  const Node& node_;
  const Publisher& publisher_;
  PassBy asked_;
  runtime::Publisher& endpoint_;
  Sender sender_;
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
                const runtime::Delivery& delivery) noexcept {
    switch (reaction_.kind) {
      case ReactionKind::kRelay:
        runtime_.work(reaction_.work_ns);
        for (LivePublisher* publisher : publishers_) {
          publisher->relay(header, delivery);
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
          end, condition_between(*end.node, node).empty(),
          measure::EdgeRecorder(shared.memory, shared.events, shared.edges++, settings.thresholds,
                                end.publisher->frequency_hz, figures_of(settings, *end.node, node, true))}));
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
    Edge* const edge = find(delivery.writer, header);
    if (edge == nullptr) {
      shared_.foreign.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const bool recorded = edge->recorder.record_callback(
        {header.intended_ns, header.published_ns, message::sequence_of(header)}, callback_ns,
        delivery.arrived_ns);
    for (const Input& input : reactions_) input.reaction->on_input(input.index, header, delivery);
    if (recorded && edge->recorder.wants_done()) edge->recorder.record_done(callback_ns, shared_.clock.now());
    if (recorded && edge->own) measure::detail::add<std::uint64_t>(completed_, 1);
  }

  [[nodiscard]] std::size_t expected() const { return edges_.size(); }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const {
    return node_.name_of(subscription_) + " subscription " + subscription_.topic;
  }
  [[nodiscard]] std::uint64_t completed() const noexcept { return load(completed_); }
  void append_views(std::vector<EdgeView>& views) const {
    for (const auto& edge : edges_) {
      views.push_back({edge->end.node, &node_, edge->end.publisher, &subscription_, &edge->recorder});
    }
  }

 private:
  struct Edge {
    TopicEnds::End end;
    bool own;  // the workload's
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

  // Who wrote is said by the middleware or, where it cannot tell, by the message.
  Edge* find(const perflab_identity& writer, const message::Header& header) noexcept {
    if (same(writer, {})) {
      const std::size_t source = message::source_of(header);
      return source < edges_.size() ? edges_[source].get() : nullptr;
    }
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
  std::uint64_t completed_ = 0;  // of the workload's own edges
};

// Sends requests and measures their round trips.
class LiveGraph::LiveClient final : public runtime::MessageHandler {
 public:
  LiveClient(Shared& shared, const Node& node, const Client& client, const LiveSettings& settings,
             bool concurrent)
      : shared_(shared),
        node_(node),
        client_(client),
        sender_(shared.memory, shared.clock, type_of(client.type), type_of(client.type).payload_bytes,
                client.frequency_hz, concurrent),
        replies_(shared.memory, shared.events, shared.clients++, settings.thresholds, client.frequency_hz,
                 figures_of(settings, node, *ends().server, false)) {}

  void attach(runtime::Client& endpoint) noexcept { endpoint_ = &endpoint; }
  void measure_from(Nanoseconds instant) noexcept {
    sender_.recorder().measure_from(instant);
    replies_.measure_from(instant);
  }

  void request(Nanoseconds intended_ns) noexcept {
    sender_.send(
        intended_ns, sender_.size_bytes(), sender_.payload(), [](const auto&) { return true; },
        [this](const auto& frame, const auto& bytes) { return endpoint_->request(frame, bytes); });
  }

  void on_message(const runtime::Delivery& reply) noexcept override {
    const Nanoseconds callback_ns = shared_.clock.now();
    message::Header header;
    if (!message::decode_header(reply.bytes, header)) {
      shared_.malformed.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const bool recorded = replies_.record_callback(
        {header.intended_ns, header.published_ns, message::sequence_of(header)}, callback_ns, reply.arrived_ns);
    if (recorded) measure::detail::add<std::uint64_t>(completed_, 1);
  }

  [[nodiscard]] const ServiceEnds& ends() const { return shared_.services.at(client_.service); }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const { return node_.qualified_name() + " client " + client_.service; }
  [[nodiscard]] std::uint64_t completed() const noexcept { return load(completed_); }
  [[nodiscard]] measure::PublisherRecorder& recorder() noexcept { return sender_.recorder(); }
  [[nodiscard]] ServiceView view() const {
    return {&node_, &client_, ends().server, &sender_.recorder(), &replies_};
  }

 private:
  Shared& shared_;
  const Node& node_;
  const Client& client_;
  runtime::Client* endpoint_ = nullptr;
  Sender sender_;
  measure::EdgeRecorder replies_;
  std::uint64_t completed_ = 0;
};

// Works and replies with the header of the request, by which the client knows which one it was.
class LiveGraph::LiveServer final : public runtime::RequestHandler {
 public:
  LiveServer(Shared& shared, const Node& node, const Server& server, runtime::Runtime& runtime)
      : shared_(shared),
        node_(node),
        server_(server),
        runtime_(runtime),
        payload_(message::make_payload(type_of(server.type), type_of(server.type).payload_bytes)) {}

  void attach(runtime::Server& endpoint) noexcept { endpoint_ = &endpoint; }

  void on_request(const runtime::Delivery& request, runtime::Reply& reply) noexcept override {
    message::Header header;
    if (!message::decode_header(request.bytes, header)) {
      shared_.malformed.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    runtime_.work(server_.work_ns);
    message::Frame frame;
    message::encode_frame(header, frame);
    // What could not be sent has been reported; the client counts it as lost.
    static_cast<void>(reply.send(frame, payload_));
  }

  [[nodiscard]] std::size_t expected() const { return shared_.services.at(server_.service).clients; }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const { return node_.qualified_name() + " server " + server_.service; }

 private:
  Shared& shared_;
  const Node& node_;
  const Server& server_;
  runtime::Runtime& runtime_;
  runtime::Server* endpoint_ = nullptr;
  std::vector<std::uint8_t> payload_;
};

// Counts its triggers and what came of them, each once.
class LiveGraph::LiveWaitable final : public runtime::WaitableHandler {
 public:
  LiveWaitable(const Node& node, const Waitable& waitable, runtime::Runtime& runtime)
      : node_(node), waitable_(waitable), runtime_(runtime) {}

  void attach(runtime::Waitable& endpoint) noexcept { endpoint_ = &endpoint; }
  void measure_from(Nanoseconds instant) noexcept { measured_from_ = instant; }

  void trigger(Nanoseconds due_ns) noexcept {
    unanswered_.fetch_add(1, std::memory_order_relaxed);
    count(due_ns > measured_from_ ? triggers_ : warmup_triggers_);
    endpoint_->trigger(due_ns);
  }
  void left_out(std::uint64_t ticks) noexcept { count(not_triggered_, ticks); }

  void on_triggered(Nanoseconds due_ns) noexcept override {
    runtime_.work(waitable_.work_ns);
    answered(due_ns, executed_);
  }
  void on_coalesced(Nanoseconds due_ns) noexcept override { answered(due_ns, coalesced_); }

  [[nodiscard]] bool triggered() const noexcept { return unanswered_.load(std::memory_order_acquire) > 0; }
  [[nodiscard]] WaitableView view() const {
    return {&node_,
            &waitable_,
            {.triggers = triggers_.load(std::memory_order_relaxed),
             .executed = executed_.load(std::memory_order_relaxed),
             .coalesced = coalesced_.load(std::memory_order_relaxed),
             .not_triggered = not_triggered_.load(std::memory_order_relaxed),
             .warmup_triggers = warmup_triggers_.load(std::memory_order_relaxed)}};
  }

 private:
  using Count = std::atomic<std::uint64_t>;

  // Timers and executors may be several threads.
  static void count(Count& what, std::uint64_t by = 1) noexcept {
    what.fetch_add(by, std::memory_order_relaxed);
  }
  void answered(Nanoseconds due_ns, Count& how) noexcept {
    if (due_ns > measured_from_) count(how);
    unanswered_.fetch_sub(1, std::memory_order_release);
  }

  const Node& node_;
  const Waitable& waitable_;
  runtime::Runtime& runtime_;
  runtime::Waitable* endpoint_ = nullptr;
  Nanoseconds measured_from_ = kUnknownTime;
  std::atomic<std::int64_t> unanswered_{0};
  Count triggers_{0}, executed_{0}, coalesced_{0}, not_triggered_{0}, warmup_triggers_{0};
};

class LiveGraph::LiveTimer final : public runtime::TimerHandler {
 public:
  LiveTimer(const Timer& timer, std::vector<LivePublisher*> publishers, std::vector<LiveClient*> clients,
            std::vector<LiveWaitable*> waitables, runtime::Runtime& runtime)
      : timer_(timer),
        publishers_(std::move(publishers)),
        clients_(std::move(clients)),
        waitables_(std::move(waitables)),
        runtime_(runtime) {}

  void measure_from(Nanoseconds instant) noexcept { measured_from_ = instant; }

  void on_tick(Nanoseconds due_ns) noexcept override {
    runtime_.work(timer_.work_ns);
    for (LivePublisher* publisher : publishers_) publisher->publish(due_ns);
    for (LiveClient* client : clients_) client->request(due_ns);
    for (LiveWaitable* waitable : waitables_) waitable->trigger(due_ns);
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
    for (LiveClient* client : clients_) client->recorder().record_not_sent(first_due_ns, count);
    for (LiveWaitable* waitable : waitables_) waitable->left_out(count);
  }

 private:
  const Timer& timer_;
  std::vector<LivePublisher*> publishers_;
  std::vector<LiveClient*> clients_;
  std::vector<LiveWaitable*> waitables_;
  runtime::Runtime& runtime_;
  Nanoseconds measured_from_ = kUnknownTime;
};

namespace {

// With the inline executor a write runs the callbacks of this process's readers before it returns, so a loop
// of reactions would call itself without end, or wait for itself inside the middleware. Throws kBadInput
// naming it.
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
        throw runtime::Error(
            runtime::Error::Kind::kBadInput,
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
      phases_(graph, settings.seed),
      shared_(std::make_unique<Shared>(graph, process, runtime.clock(), events)) {
  shared_->memory.prefault(settings.duration_ns);
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    if (!process || *process == p) build_process(p, graph.processes[p]);
  }
}

LiveGraph::~LiveGraph() = default;

void LiveGraph::build_process(std::size_t index, const Process& process) {
  std::map<int, Place> places;
  std::map<int, runtime::ExecutorKind> kinds;
  for (const Executor& executor : process.executors) {
    std::vector<std::string> nodes;
    for (const Node& node : process.nodes) {
      if (node.executor == executor.id) nodes.push_back(node.qualified_name());
    }
    const runtime::ExecutorKind kind = settings_.executor.value_or(executor.kind);
    const int threads = kind == runtime::ExecutorKind::kMultiThreaded
                            ? settings_.executor_threads.value_or(executor.threads)
                            : 1;
    const std::size_t handle = runtime_.add_executor(
        {.process = static_cast<int>(index),
         .kind = kind,
         .name = thread_name(executor, nodes, settings_.name_threads),
         .threads = threads,
         .thread = executor.thread.empty() ? process.threads.executors : executor.thread});
    places[executor.id] = {index, handle, 0, 0, kind};
    kinds[executor.id] = kind;
    executors_.push_back({index, &executor, kind, threads, std::move(nodes)});
  }
  refuse_inline_loops(process, kinds);
  std::size_t nodes_placed = 0;
  for (const Node& node : process.nodes) {
    Place place = places.at(node.executor);
    place.group = groups_++;
    place.participant = nodes_placed++ % static_cast<std::size_t>(process.participants);
    build_node(place, node);
  }
}

void LiveGraph::build_node(const Place& place, const Node& node) {
  runtime_.name_group(place.group, {node.node_namespace, node.name, place.participant, place.executor});
  const bool concurrent = runtime::concurrent_callbacks(place.kind);
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
  std::vector<Nanoseconds> publishers_made;
  for (std::size_t i = 0; i < node.publishers.size(); ++i) {
    const Publisher& publisher = node.publishers[i];
    const message::MessageType& type = type_of(publisher.type);
    const PassBy pass_by = settings_.pass_by.value_or(publisher.pass_by);
    runtime::Publisher& endpoint = runtime_.create_publisher({.process = static_cast<int>(place.process),
                                                              .participant = place.participant,
                                                              .group = place.group,
                                                              .topic = publisher.topic,
                                                              .ros_type = std::string(type.ros_type),
                                                              .fixed_size = message::fixed_encoded_size(type),
                                                              .qos = publisher.qos,
                                                              .pass_by = pass_by});
    publishers_.push_back(std::make_unique<LivePublisher>(*shared_, node, publisher, pass_by, endpoint,
                                                          concurrent && triggers[i] > 1));
    publishers.push_back(publishers_.back().get());
    publishers_made.push_back(runtime_.clock().now());
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
  for (const Reaction& reaction : node.reactions) {
    reactions_.push_back(
        std::make_unique<LiveReaction>(reaction, chosen(reaction.publish), runtime_, concurrent));
    for (std::size_t input = 0; input < reaction.on.size(); ++input) {
      subscriptions.at(reaction.on[input])->add_reaction(*reactions_.back(), input);
    }
    if (reaction.kind == ReactionKind::kCyclic) {
      build_timer(place, node, node.name + "_cycle", reaction, runtime_.clock().now(),
                  !node.condition.empty(), *reactions_.back());
    }
  }
  for (std::size_t i = 0; i < node.subscriptions.size(); ++i) {
    const Subscription& subscription = node.subscriptions[i];
    const message::MessageType& type = type_of(subscription.type);
    subscriptions[i]->attach(runtime_.create_subscription(place.executor,
                                                          {.process = static_cast<int>(place.process),
                                                           .participant = place.participant,
                                                           .group = place.group,
                                                           .topic = subscription.topic,
                                                           .ros_type = std::string(type.ros_type),
                                                           .fixed_size = message::fixed_encoded_size(type),
                                                           .qos = subscription.qos,
                                                           .pass_by = subscription.pass_by},
                                                          *subscriptions[i]));
  }
  const std::size_t first_client = clients_.size();
  const std::vector<Nanoseconds> clients_made = build_services(place, node);
  const std::size_t first_waitable = waitables_.size();
  build_waitables(place, node);
  for (const Timer& timer : node.timers) {
    std::vector<LiveClient*> clients;
    for (const std::size_t index : timer.request) clients.push_back(clients_.at(first_client + index).get());
    std::vector<LiveWaitable*> waitables;
    for (const std::size_t index : timer.trigger)
      waitables.push_back(waitables_.at(first_waitable + index).get());
    // An application creates a publisher and then its timer, before it goes on with the next.
    Nanoseconds created_ns = timer.publish.empty() && timer.request.empty() ? runtime_.clock().now() : 0;
    for (const std::size_t index : timer.publish) created_ns = std::max(created_ns, publishers_made[index]);
    for (const std::size_t index : timer.request) created_ns = std::max(created_ns, clients_made[index]);
    timers_.push_back(std::make_unique<LiveTimer>(timer, chosen(timer.publish), std::move(clients),
                                                  std::move(waitables), runtime_));
    build_timer(place, node, timer.name, timer, created_ns, timer.overrun == Overrun::kSkip,
                *timers_.back());
  }
}

template <typename Source>
void LiveGraph::build_timer(const Place& place, const Node& node, const std::string& name,
                            const Source& source, Nanoseconds created_ns, bool skip_missed,
                            runtime::TimerHandler& handler) {
  const Nanoseconds period_ns = source.period_ns;
  const Nanoseconds offset_ns = phases_.of(source, created_ns);
  timer_views_.push_back({&node, name, period_ns, source.phase, offset_ns});
  runtime_.create_timer(place.executor,
                        {.name = name,
                         .group = place.group,
                         .period_ns = period_ns,
                         .first_tick = 1 - settings_.warmup_ns / period_ns,
                         .last_tick = settings_.duration_ns / period_ns,
                         .skip_missed = skip_missed,
                         .made_up_for_ns = node.condition.empty() ? 0 : kMadeUpFor,
                         .shift_ns = offset_ns == 0 ? 0 : offset_ns - period_ns},
                        handler);
}

std::vector<Nanoseconds> LiveGraph::build_services(const Place& place, const Node& node) {
  const auto settings = [&](const std::string& service, const std::string& type, const perflab_qos& qos) {
    return runtime::ServiceSettings{static_cast<int>(place.process), place.participant, place.group, service,
                                    message::service_ros_type(type_of(type)), qos};
  };
  for (const Server& server : node.servers) {
    servers_.push_back(std::make_unique<LiveServer>(*shared_, node, server, runtime_));
    servers_.back()->attach(runtime_.create_server(
        place.executor, settings(server.service, server.type, server.qos), *servers_.back()));
  }
  std::vector<std::size_t> triggers(node.clients.size(), 0);
  for (const Timer& timer : node.timers) {
    for (const std::size_t index : timer.request) ++triggers.at(index);
  }
  std::vector<Nanoseconds> made;
  for (std::size_t i = 0; i < node.clients.size(); ++i) {
    const Client& client = node.clients[i];
    if (shared_->services.at(client.service).server == nullptr)
      throw runtime::Error(runtime::Error::Kind::kBadInput,
                           "graph: service " + client.service + " has no server");
    clients_.push_back(std::make_unique<LiveClient>(
        *shared_, node, client, settings_, runtime::concurrent_callbacks(place.kind) && triggers[i] > 1));
    clients_.back()->attach(runtime_.create_client(
        place.executor, settings(client.service, client.type, client.qos), *clients_.back()));
    made.push_back(runtime_.clock().now());
  }
  return made;
}

void LiveGraph::build_waitables(const Place& place, const Node& node) {
  for (const Waitable& waitable : node.waitables) {
    waitables_.push_back(std::make_unique<LiveWaitable>(node, waitable, runtime_));
    waitables_.back()->attach(runtime_.create_waitable(
        place.executor, {.name = waitable.name, .group = place.group}, *waitables_.back()));
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

std::vector<std::string> LiveGraph::unmatched() { return differing(false); }

std::vector<std::string> LiveGraph::strangers() { return differing(true); }

std::vector<std::string> LiveGraph::differing(bool too_many_only) {
  std::vector<std::string> lines;
  const std::string where =
      settings_.domain ? "domain " + std::to_string(*settings_.domain) : "the same topics";
  const auto report = [&](const std::string& who, std::size_t matched, std::size_t expected,
                          const char* peers) {
    if (matched == expected || (too_many_only && matched < expected)) return;
    lines.push_back(who + ": " + std::to_string(matched) + " of " + std::to_string(expected) + " " + peers);
    if (matched > expected) lines.back() += ": somebody else uses " + where;
  };
  for (const auto& publisher : publishers_) {
    const WriterName name = publisher->name();
    report(name.node + " publisher " + name.topic, publisher->matched(), publisher->expected(), "readers");
  }
  for (const auto& subscription : subscriptions_) {
    report(subscription->name(), subscription->matched(), subscription->expected(), "writers");
  }
  for (const auto& client : clients_) report(client->name(), client->matched(), 1, "servers");
  for (const auto& server : servers_)
    report(server->name(), server->matched(), server->expected(), "clients");
  return lines;
}

void LiveGraph::start(Nanoseconds measured_from) {
  for (const auto& publisher : publishers_) publisher->recorder().measure_from(measured_from);
  for (const auto& subscription : subscriptions_) subscription->measure_from(measured_from);
  for (const auto& client : clients_) client->measure_from(measured_from);
  for (const auto& waitable : waitables_) waitable->measure_from(measured_from);
  for (const auto& timer : timers_) timer->measure_from(measured_from);
  runtime_.start(measured_from);
}

Totals LiveGraph::totals() const noexcept {
  Totals totals;
  for (const auto& publisher : publishers_) {
    if (!publisher->node().condition.empty()) continue;
    const std::uint64_t sent = publisher->view().recorder->sent();
    totals.sent += sent;
    totals.deliveries_expected += sent * publisher->ends().own_subscriptions;
  }
  for (const auto& subscription : subscriptions_) totals.completed += subscription->completed();
  for (const EdgeView& view : edges()) {
    if (!condition_between(*view.publisher_node, *view.subscription_node).empty()) continue;
    totals.received += view.recorder->sequence().received();
    totals.lost += view.recorder->sequence().gap();
  }
  for (const auto& client : clients_) {
    const ServiceView view = client->view();
    if (!view.client_node->condition.empty()) continue;
    totals.sent += view.requests->sent();
    if (!view.server_node->condition.empty()) continue;
    totals.deliveries_expected += view.requests->sent();
    totals.received += view.replies->sequence().received();
    totals.completed += client->completed();
    totals.lost += view.replies->sequence().gap();
  }
  return totals;
}

std::vector<ConditionTotals> LiveGraph::condition_totals() const {
  std::map<std::string, ConditionTotals> by_label;
  for (const std::string& label : shared_->conditions) by_label[label].condition = label;
  const auto add_sent = [](ConditionTotals& totals, const measure::PublisherRecorder& recorder,
                           std::size_t receivers) {
    const std::uint64_t sent = recorder.sent();
    totals.sent += sent;
    totals.not_sent += recorder.not_sent();
    totals.deliveries_expected += sent * receivers;
  };
  for (const auto& publisher : publishers_) {
    const std::string& label = publisher->node().condition;
    if (!label.empty()) add_sent(by_label.at(label), *publisher->view().recorder, publisher->expected());
  }
  for (const EdgeView& view : edges()) {
    const std::string& label = view.publisher_node->condition;
    if (!label.empty()) by_label.at(label).received += view.recorder->sequence().received();
  }
  for (const ServiceView& view : services()) {
    const std::string& label = view.client_node->condition;
    if (label.empty()) continue;
    add_sent(by_label.at(label), *view.requests, 1);
    by_label.at(label).received += view.replies->sequence().received();
  }
  std::vector<ConditionTotals> list;
  for (auto& [label, totals] : by_label) list.push_back(std::move(totals));
  return list;
}

const measure::Histogram& LiveGraph::merge(const measure::Histogram& (measure::EdgeRecorder::*figure)()
                                               const noexcept) {
  shared_->merged.clear();
  for (const EdgeView& view : edges()) {
    if (condition_between(*view.publisher_node, *view.subscription_node).empty())
      shared_->merged.merge((view.recorder->*figure)());
  }
  return shared_->merged;
}

const measure::Histogram& LiveGraph::merged_latency() { return merge(&measure::EdgeRecorder::latency); }
const measure::Histogram& LiveGraph::merged_response() { return merge(&measure::EdgeRecorder::response); }

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

std::vector<ServiceView> LiveGraph::services() const {
  std::vector<ServiceView> views;
  for (const auto& client : clients_) views.push_back(client->view());
  return views;
}

std::vector<WaitableView> LiveGraph::waitables() const {
  std::vector<WaitableView> views;
  for (const auto& waitable : waitables_) views.push_back(waitable->view());
  return views;
}

bool LiveGraph::triggered() const noexcept {
  return std::ranges::any_of(waitables_, [](const auto& waitable) { return waitable->triggered(); });
}

std::vector<PassingView> LiveGraph::passing() const {
  std::vector<PassingView> views;
  for (const auto& publisher : publishers_) views.push_back(publisher->passing());
  return views;
}

std::uint64_t LiveGraph::foreign_messages() const noexcept {
  return shared_->foreign.load(std::memory_order_relaxed);
}
std::uint64_t LiveGraph::malformed_messages() const noexcept {
  return shared_->malformed.load(std::memory_order_relaxed);
}

}  // namespace perflab::graph
