// A graph brought to life on a runtime: publishers that stamp, subscriptions that measure, timers, reactions,
// work.
//
// One LiveGraph holds one process of the graph (or, on the virtual runtime, all of them), with one
// EdgeRecorder per (publisher, topic, subscription) that ends here and one PublisherRecorder per publisher
// that begins here. After start(), handling a message allocates nothing and takes no lock, except that
// publishers and fusions which several callbacks of an executor with concurrent callbacks share are guarded
// by a mutex of their own.
//
// Example:
//   LiveGraph live(graph, 0, runtime, settings);
//   while (!live.unmatched().empty()) ...;
//   live.set_writers(live.writers());
//   live.start(measured_from);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/model.h"
#include "measure/recorders.h"
#include "runtime/runtime.h"

namespace perflab::graph {

struct LiveSettings {
  Nanoseconds duration_ns = 0;
  Nanoseconds warmup_ns = 0;
  measure::ThresholdSettings thresholds{};
  bool measure_dispatch = false;
  bool measure_work = false;
  std::optional<runtime::ExecutorKind> executor{};  // replaces the kind of every executor
};

// Which writer is which publisher of the graph; exchanged between the processes before the start.
struct WriterName {
  std::string node;  // qualified
  std::string topic;
  perflab_identity identity{};
};

// Of the measured part; without warm-up.
struct Totals {
  std::uint64_t sent = 0;
  std::uint64_t deliveries_expected =
      0;                        // messages sent times the subscriptions of their topic in the whole graph
  std::uint64_t received = 0;   // unique
  std::uint64_t completed = 0;  // callback has returned
  std::uint64_t lost = 0;       // gaps so far
};

struct PublisherView {
  const Node* node;
  const Publisher* publisher;
  const measure::PublisherRecorder* recorder;
};

struct EdgeView {
  std::string publisher_node;  // qualified
  const Node* subscription_node;
  const Publisher* publisher;
  const measure::EdgeRecorder* recorder;
};

class LiveGraph {
 public:
  // Creates every endpoint and timer of `process` (an index), or of all processes where it is null. The
  // graph, the runtime and the event queue outlive the LiveGraph. Throws runtime::Error.
  LiveGraph(const Graph& graph, std::optional<std::size_t> process, runtime::Runtime& runtime,
            measure::MessageEventQueue& events, const LiveSettings& settings);
  // The runtime has been stopped before.
  ~LiveGraph();
  LiveGraph(const LiveGraph&) = delete;
  LiveGraph& operator=(const LiveGraph&) = delete;

  [[nodiscard]] std::vector<WriterName> writers() const;
  // The writers of all processes. A message from any other writer is foreign: counted, not recorded.
  void set_writers(std::span<const WriterName> writers);

  // Endpoints that communicate with fewer peers than the graph says, one line each; empty once all are
  // matched.
  [[nodiscard]] std::vector<std::string> unmatched();

  // Messages with an intended time after `measured_from` count.
  void start(Nanoseconds measured_from);

  [[nodiscard]] Totals totals() const noexcept;
  // The latencies of all edges so far, merged. Valid until the next call.
  const measure::Histogram& merged_latency();
  [[nodiscard]] std::vector<PublisherView> publishers() const;
  [[nodiscard]] std::vector<EdgeView> edges() const;
  [[nodiscard]] std::uint64_t foreign_messages() const noexcept;
  [[nodiscard]] std::uint64_t malformed_messages() const noexcept;

 private:
  class LivePublisher;
  class LiveSubscription;
  class LiveTimer;
  class LiveReaction;
  struct Shared;

  void build_node(std::size_t process_index, const Node& node, std::size_t executor,
                  runtime::ExecutorKind kind);

  runtime::Runtime& runtime_;
  LiveSettings settings_;
  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<LivePublisher>> publishers_;
  std::vector<std::unique_ptr<LiveSubscription>> subscriptions_;
  std::vector<std::unique_ptr<LiveReaction>> reactions_;
  std::vector<std::unique_ptr<LiveTimer>> timers_;
};

}  // namespace perflab::graph
