// What a LiveGraph is made of: its publishers, subscriptions, reactions, clients, servers, waitables and
// timers.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "graph/live.h"
#include "message/cdr.h"
#include "message/types.h"
#include "middleware/types.h"

namespace perflab::graph {

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

[[nodiscard]] const message::MessageType& type_of(const std::string& name);

// Who publishes and who subscribes a topic, over all processes.
struct TopicEnds {
  struct End {
    const Node* node;
    const Publisher* publisher;
  };
  std::vector<End> publishers;
  std::size_t subscriptions = 0;
  std::size_t own_subscriptions = 0;  // the workload's

  // The publisher's number among those of its topic, which its messages carry.
  [[nodiscard]] std::size_t source_of(const Publisher& publisher) const {
    return static_cast<std::size_t>(std::ranges::find(publishers, &publisher, &End::publisher) -
                                    publishers.begin());
  }
};

// The server of a service, and how many clients it has, over all processes.
struct ServiceEnds {
  const Node* server = nullptr;
  std::size_t clients = 0;
};

// The ends of all topics and services, and how many recorders the processes of this LiveGraph need.
struct GraphIndex {
  GraphIndex(const Graph& graph, std::optional<std::size_t> process);

  std::map<std::string, TopicEnds> topics;
  std::map<std::string, ServiceEnds> services;
  std::set<std::string> conditions;
  std::size_t edges = 0;
  std::size_t publishers = 0;
  std::size_t clients = 0;
};

// What an edge or service between two nodes records.
inline measure::EdgeFigures figures_of(const LiveSettings& settings, const Node& from, const Node& to,
                                       bool work) {
  return {.dispatch = settings.measure_dispatch,
          .work = settings.measure_work && work,
          .events = condition_between(from, to).empty()};
}

struct LiveGraph::Shared {
  Shared(const Graph& graph, std::optional<std::size_t> process, const measure::Clock& the_clock,
         measure::MessageEventQueue& event_queue)
      : index(graph, process),
        memory(index.edges + index.clients, index.publishers + index.clients),
        clock(the_clock),
        events(event_queue),
        clients(static_cast<std::uint32_t>(index.edges)) {}

  // False, and counted, where the bytes are no message of perflab's.
  [[nodiscard]] bool read(const runtime::Delivery& delivery, message::Header& header) noexcept {
    if (message::decode_header(delivery.bytes, header)) return true;
    malformed.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  GraphIndex index;
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
                publisher.frequency_hz, concurrent,
                shared.index.topics.at(publisher.topic).source_of(publisher),
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
    // The bytes may end with padding.
    const auto bytes = delivery.bytes.subspan(message::kFrameBytes);
    const std::size_t size = header.size_bytes + (sender_.variable() ? sizeof(std::uint32_t) : 0);
    send(header.intended_ns, header.size_bytes, bytes.first(std::min(size, bytes.size())));
  }

  [[nodiscard]] WriterName name() const {
    return {node_.qualified_name(), publisher_.topic, endpoint_.identity()};
  }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const TopicEnds& ends() const { return shared_.index.topics.at(publisher_.topic); }
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
    for (const TopicEnds::End& end : shared.index.topics.at(subscription.topic).publishers) {
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
    std::ranges::sort(by_writer_, middleware::IdentityLess{}, &Known::writer);
    last_ = by_writer_.empty() ? nullptr : &by_writer_.front();
  }

  void measure_from(Nanoseconds instant) noexcept {
    for (const auto& edge : edges_) edge->recorder.measure_from(instant);
  }

  void on_message(const runtime::Delivery& delivery) noexcept override {
    const Nanoseconds callback_ns = shared_.clock.now();
    message::Header header;
    if (!shared_.read(delivery, header)) return;
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
  [[nodiscard]] std::uint64_t completed() const noexcept { return measure::detail::load(completed_); }
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
    if (middleware::same(writer, {})) {
      const std::size_t source = message::source_of(header);
      return source < edges_.size() ? edges_[source].get() : nullptr;
    }
    if (last_ != nullptr && middleware::same(last_->writer, writer)) return last_->edge;
    const auto found =
        std::ranges::lower_bound(by_writer_, writer, middleware::IdentityLess{}, &Known::writer);
    if (found == by_writer_.end() || !middleware::same(found->writer, writer)) return nullptr;
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
    if (!shared_.read(reply, header)) return;
    const bool recorded =
        replies_.record_callback({header.intended_ns, header.published_ns, message::sequence_of(header)},
                                 callback_ns, reply.arrived_ns);
    if (recorded) measure::detail::add<std::uint64_t>(completed_, 1);
  }

  [[nodiscard]] const ServiceEnds& ends() const { return shared_.index.services.at(client_.service); }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const { return node_.qualified_name() + " client " + client_.service; }
  [[nodiscard]] std::uint64_t completed() const noexcept { return measure::detail::load(completed_); }
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
    if (!shared_.read(request, header)) return;
    runtime_.work(server_.work_ns);
    message::Frame frame;
    message::encode_frame(header, frame);
    // What could not be sent has been reported; the client counts it as lost.
    static_cast<void>(reply.send(frame, payload_));
  }

  [[nodiscard]] std::size_t expected() const { return shared_.index.services.at(server_.service).clients; }
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

}  // namespace perflab::graph
