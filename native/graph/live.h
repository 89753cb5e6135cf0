// A graph running on a runtime: publishers that stamp, subscriptions that measure, timers, waitables,
// reactions, work.
//
// A LiveGraph holds one process of the graph (on the virtual runtime all of them), with one EdgeRecorder per
// (publisher, topic, subscription) that ends here and one PublisherRecorder per publisher here. After
// start(), handling a message neither allocates nor locks, except that publishers and fusions shared by
// several callbacks of a concurrent executor have a mutex.
//
// Example:
//   LiveGraph live(graph, 0, runtime, settings);
//   while (!live.unmatched().empty()) ...;
//   live.set_writers(live.writers());
//   live.start(measured_from);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "graph/ends.h"
#include "graph/model.h"
#include "graph/phase.h"
#include "measure/loops.h"
#include "measure/message_ring.h"
#include "measure/recorders.h"
#include "runtime/runtime.h"

namespace perflab::graph {

class LiveThrottle;  // graph/throttle.h

struct LiveSettings {
  static constexpr Nanoseconds kUntilEnded = INT64_MAX / 4;

  Nanoseconds duration_ns = 0;  // measured part; kUntilEnded: until LiveGraph::end_at()
  [[nodiscard]] bool ends_by_itself() const noexcept { return duration_ns != kUntilEnded; }
  Nanoseconds warmup_ns = 0;
  measure::ThresholdSettings thresholds{};
  bool measure_dispatch = false;
  bool measure_work = false;
  bool measure_loops = false;  // for timers whose messages come back to their nodes
  bool real_time = true;  // otherwise the runtime reports when nothing is left to happen
  bool structs = false;  // encode every message from a struct and decode it into one; otherwise encode once,
                         // before the start
  bool times_encoding = true;  // the runtime reports encoding and decoding times
  bool source_timestamps = true;  // ... and uses the given source time stamps; otherwise its own, which are
                                  // no earlier
  std::optional<runtime::ExecutorKind> executor{};  // overrides the kind of every executor; likewise below
  std::optional<int> executor_threads{};
  std::optional<Nanoseconds> executor_period_ns{};
  std::optional<PassBy> pass_by{};        // for every publisher
  bool name_threads = true;               // name executors' threads after their nodes
  std::uint64_t seed = 1;                 // for random phases
  int schedule_descriptor = -1;           // memory shared by all processes (schedule.h); -1: this is the only
                                          // process
  std::optional<std::uint32_t> domain{};  // for messages: the domain in which unexpected endpoints live
  // Which messages of the workload are recorded one by one, and what of them.
  struct Recording {
    std::vector<std::string> topics;  // topics and services; empty: all
    bool contents = true;             // otherwise only times
    bool waits = false;               // wait if there is no room, as virtual time may; otherwise messages are
                                      // lost
    std::size_t buffer_bytes = 0;
  };
  std::optional<Recording> recording{};
};

// The number of edges (including services) and publishers that a LiveGraph of the process has, and the size
// of its longest message: what a ring for them needs. Throws BadInput if the recording names a topic that is
// not in the graph.
struct RecordingNeeds {
  measure::MessageRing::Ends ends;
  std::size_t longest_bytes = 0;
};
[[nodiscard]] RecordingNeeds recording_needs(const Graph& graph, std::optional<std::size_t> process,
                                             const LiveSettings::Recording& recording);

// Maps a writer to its publisher in the graph; exchanged between processes before the start.
struct WriterName {
  std::string node;  // fully qualified
  std::string topic;
  perflab_identity identity{};
};

// Totals of the measured part, without warm-up. A request counts as one message with one delivery, its reply.
//
// Only the workload's publishers count, and edges with both ends in the workload.
struct Totals {
  std::uint64_t sent = 0;
  std::uint64_t deliveries_expected = 0;  // messages times the workload's subscriptions that want them
  std::uint64_t received = 0;   // unique messages
  std::uint64_t completed = 0;  // messages whose callback has returned
  std::uint64_t lost = 0;       // gaps so far
  std::uint64_t received_bytes = 0;  // payload received on topics, like the publishers' size_bytes
};

// Totals of the publishers and clients of one condition, and of deliveries of their messages to any receiver.
struct ConditionTotals {
  std::string condition;  // label of the condition
  std::uint64_t sent = 0;
  std::uint64_t not_sent = 0;
  std::uint64_t deliveries_expected = 0;  // messages times all subscriptions that want them
  std::uint64_t received = 0;  // unique messages
};

// The owner of an edge or service between two nodes: the workload (empty) if both belong to it, otherwise the
// condition of the first node that has one.
[[nodiscard]] inline const std::string& condition_between(const Node& from, const Node& to) noexcept {
  return from.condition.empty() ? to.condition : from.condition;
}

struct PublisherView {
  const Node* node;
  const Publisher* publisher;
  const measure::PublisherRecorder* recorder;
  struct Wanted {
    std::string filter;
    std::uint64_t count;  // number of measured messages
  };
  std::vector<Wanted> wanted;  // one per content filter of its subscriptions
};

// How a publisher's messages are passed; `asked` is the request of the graph or the settings.
struct PassingView {
  const Node* node;
  const Publisher* publisher;
  PassBy asked;
  runtime::Passing passing;
};

// For a timer of the workload whose messages come back to its node.
struct LoopView {
  const Node* node;
  const Timer* timer;
  const measure::LoopRecorder* recorder;
};

struct ServiceView {
  const Node* client_node;
  const Client* client;
  const Node* server_node;
  std::size_t size_bytes;  // payload of a request
  const measure::PublisherRecorder* requests;
  const measure::EdgeRecorder* replies;  // latency: the round trip from the stamp of the request
  // For a part of an action: how often each answer ("accepted", "succeeded") came.
  std::map<std::string, std::uint64_t> answers;
};

// Counts of the measured part, by due time of triggers: triggers = executed + coalesced, once all are
// answered.
struct WaitableCounts {
  std::uint64_t triggers = 0;
  std::uint64_t executed = 0;       // callbacks, each of which answers a trigger ...
  std::uint64_t coalesced = 0;      // ... and triggers that found it unanswered
  std::uint64_t not_triggered = 0;  // ticks that timers skipped
  std::uint64_t warmup_triggers = 0;
};

struct WaitableView {
  const Node* node;
  const Waitable* waitable;
  WaitableCounts counts;
};

struct ExecutorView {
  std::size_t process;
  const Executor* executor;
  runtime::ExecutorKind kind;
  int threads;                     // 0: one per CPU available to the process
  Nanoseconds period_ns;           // for kLet; 0: none
  std::vector<std::string> nodes;  // fully qualified
};

// The phase of a periodic timer or cyclic reaction: it ticks at `offset_ns` after the common start and after
// every period.
struct TimerView {
  const Node* node;
  std::string name;
  Nanoseconds period_ns;  // of its bursts
  Phase phase;
  Nanoseconds offset_ns;
};

// For a timer that readers may throttle.
struct ThrottleView {
  const Node* node;
  const Timer* timer;
  const LiveThrottle* throttle;
};

struct EdgeView {
  const Node* publisher_node;
  const Node* subscription_node;
  const Publisher* publisher;
  const Subscription* subscription;
  const measure::EdgeRecorder* recorder;
};

class LiveGraph {
 public:
  // Creates every endpoint and timer of `process` (an index), or of all processes if it is null. The graph,
  // the runtime, the event queue and `ring`, which receives messages if the settings have a recording, must
  // outlive the LiveGraph. Throws Error.
  LiveGraph(const Graph& graph, std::optional<std::size_t> process, runtime::Runtime& runtime,
            measure::MessageEventQueue& events, const LiveSettings& settings, measure::MessageRing* ring = nullptr);
  // The runtime must be stopped before.
  ~LiveGraph();
  LiveGraph(const LiveGraph&) = delete;
  LiveGraph& operator=(const LiveGraph&) = delete;

  [[nodiscard]] std::vector<WriterName> writers() const;
  // Sets the writers of all processes. A message from any other writer is foreign: counted, not recorded.
  void set_writers(std::span<const WriterName> writers);

  // Endpoints matched with fewer or more peers than the graph has, one line each; empty once everything is
  // matched. A topic that an outside process subscribes to may have more readers.
  [[nodiscard]] std::vector<std::string> unmatched();
  // Only those with more peers.
  [[nodiscard]] std::vector<std::string> strangers();

  // Topics for which a remote endpoint has another type than this graph, one line each: DDS does not match
  // endpoints with different type names, but matches equal names with different definitions. Asks the
  // middleware for all remote endpoints.
  [[nodiscard]] std::vector<std::string> type_differences();

  // The ends of a process with a program, by qualified node and name, that nothing else in the graph drives.
  // Each throws BadInput, listing what exists, if there is none. Call before the start.
  PublisherEnd& publisher_end(const std::string& node, const std::string& topic);
  SubscriptionEnd& subscription_end(const std::string& node, const std::string& topic);
  ClientEnd& client_end(const std::string& node, const std::string& service);
  ServerEnd& server_end(const std::string& node, const std::string& service);
  ActionClientEnd& action_client_end(const std::string& node, const std::string& action);
  ActionServerEnd& action_server_end(const std::string& node, const std::string& action);
  // An action server of a program that has no goal handlers; empty: there is none.
  [[nodiscard]] std::string unhandled_action_server() const;
  // RIHS01 hash of a type of the graph.
  [[nodiscard]] std::string type_hash(const message::Type& type) const;
  // A program's timer in the executor of a node. It calls `on_tick` with its due time; `on_tick` must not
  // throw.
  void add_timer(const std::string& node, const std::string& name, Nanoseconds period_ns, bool skip_missed,
                 std::function<void(Nanoseconds due_ns)> on_tick);
  // Work in threads of a program, for traces; null if nothing is traced.
  runtime::Span* add_span(const std::string& node, const std::string& name, Nanoseconds period_ns);

  // Messages with an intended time after this instant count. From here on a program may publish.
  void measure_from(Nanoseconds instant);
  // Like measure_from(), unless already called; and handlers run.
  void start(Nanoseconds measured_from);
  // Sets the end of a measured part that does not end by itself: nothing is due later. Call once, after
  // start().
  void end_at(Nanoseconds at_ns) noexcept;
  // True once every timer has had its last tick.
  [[nodiscard]] bool timers_done() const noexcept;

  [[nodiscard]] Totals totals() const noexcept;
  // Totals of every condition that has nodes in the graph, in any process, by label.
  [[nodiscard]] std::vector<ConditionTotals> condition_totals() const;
  // Latencies of all edges of the workload so far, merged. Valid until the next call of either function.
  const measure::Histogram& merged_latency();
  const measure::Histogram& merged_response();  // likewise
  [[nodiscard]] std::vector<PublisherView> publishers() const;
  [[nodiscard]] std::vector<EdgeView> edges() const;
  [[nodiscard]] std::vector<ServiceView> services() const;
  [[nodiscard]] const std::vector<LoopView>& loops() const noexcept { return loop_views_; }  // with
                                                                                             // measure_loops
  [[nodiscard]] const std::vector<ThrottleView>& throttles() const noexcept { return throttle_views_; }
  [[nodiscard]] std::vector<WaitableView> waitables() const;
  // True if a waitable has been triggered and not answered, warm-up included.
  [[nodiscard]] bool triggered() const noexcept;
  [[nodiscard]] const std::vector<ExecutorView>& executors() const noexcept { return executors_; }
  [[nodiscard]] const std::vector<TimerView>& timers() const noexcept { return timer_views_; }
  // Call once everything is matched.
  [[nodiscard]] std::vector<PassingView> passing() const;
  [[nodiscard]] std::uint64_t foreign_messages() const noexcept;
  // Messages that do not have the type of their topic, and could not be recorded.
  [[nodiscard]] std::uint64_t malformed_messages() const noexcept;
  // Messages whose due time is no longer known (schedule.h).
  [[nodiscard]] std::uint64_t forgotten_messages() const noexcept;
  // Messages received although the subscription's content filter does not want them.
  [[nodiscard]] std::uint64_t unwanted_messages() const noexcept;

 private:
  class LivePublisher;
  class LiveSubscription;
  class LiveTimer;
  class LiveReaction;
  class LiveClient;
  class LiveServer;
  class LiveActionClient;
  class LiveActionServer;
  class LiveWaitable;
  class ProgramTimer;
  struct Shared;
  // Where a node's callbacks run.
  struct Place {
    std::size_t process;
    std::size_t executor;  // handle in the runtime
    std::size_t group;
    std::size_t participant;  // of the process
    runtime::ExecutorKind kind;
  };

  // The node of a program, by name. Throws BadInput.
  [[nodiscard]] std::pair<const Node*, Place> node_of(const std::string& name) const;
  std::vector<std::string> differing(bool too_many_only);
  void build_process(std::size_t index, const Process& process);
  void build_node(const Place& place, const Node& node);
  // Returns the creation time of each client.
  std::vector<Nanoseconds> build_services(const Place& place, const Node& node);
  // Like build_services().
  std::vector<Nanoseconds> build_actions(const Place& place, const Node& node);
  // Builds the timer that cancels goals of a client that a timer sends.
  void build_cancelling(const Place& place, const Node& node, const Timer& timer, Nanoseconds offset_ns,
                        std::size_t first_action_client);
  void build_waitables(const Place& place, const Node& node);
  // A recorder for a timer whose messages come back to subscriptions of its node, which start at index
  // `first`; null for other timers, and if loops are not measured.
  measure::LoopRecorder* build_loops(const Node& node, const Timer& timer, std::size_t first_subscription);
  // Likewise a throttle for the timer if the graph has one.
  LiveThrottle* build_throttle(const Node& node, const Timer& timer);
  // Called once all nodes exist: connects acknowledging publishers with subscriptions, and throttles with
  // their sources. Throws BadInput if the graph names something that does not exist.
  void link_acknowledgements();
  // `timer` has the graph's part: its name and its pace.
  void build_timer(const Place& place, const Node& node, runtime::TimerSettings timer, Phase phase,
                   Nanoseconds offset_ns, runtime::TimerHandler& handler);
  // A timer that goes on for this long after the measured part, because what began in it continues; nothing
  // waits for its end.
  void build_follower(const Place& place, runtime::TimerSettings timer, Nanoseconds offset_ns, Nanoseconds after_ns,
                      runtime::TimerHandler& handler);
  // Merges over the workload's own edges.
  const measure::Histogram& merge(const measure::Histogram& (measure::EdgeRecorder::*figure)()
                                      const noexcept);

  const Graph& graph_;
  runtime::Runtime& runtime_;
  LiveSettings settings_;
  PhaseOffsets phases_;
  std::unique_ptr<Shared> shared_;
  std::vector<std::unique_ptr<LivePublisher>> publishers_;
  std::vector<std::unique_ptr<LiveSubscription>> subscriptions_;
  std::vector<std::unique_ptr<LiveReaction>> reactions_;
  std::vector<std::unique_ptr<LiveClient>> clients_;
  std::vector<std::unique_ptr<LiveServer>> servers_;
  std::vector<std::unique_ptr<LiveActionClient>> action_clients_;
  std::vector<std::unique_ptr<LiveActionServer>> action_servers_;
  std::vector<std::unique_ptr<LiveWaitable>> waitables_;
  std::vector<std::unique_ptr<LiveTimer>> timers_;
  std::vector<std::unique_ptr<ProgramTimer>> program_timers_;
  std::vector<std::pair<const Node*, Place>> program_nodes_;
  std::vector<std::unique_ptr<runtime::TimerEnd>> timer_ends_;  // set if the measured part does not end by
                                                                // itself, or there are followers
  std::vector<std::unique_ptr<runtime::TimerEnd>> follower_ends_;
  bool ended_ = false;                                          // set by end_at()
  Nanoseconds measured_from_ = 0;
  std::vector<TimerView> timer_views_;
  std::vector<std::unique_ptr<measure::LoopRecorder>> loops_;
  std::vector<LoopView> loop_views_;
  std::vector<std::unique_ptr<LiveThrottle>> throttles_;
  std::vector<ThrottleView> throttle_views_;
  std::vector<ExecutorView> executors_;
  std::size_t groups_ = 0;
};

}  // namespace perflab::graph
