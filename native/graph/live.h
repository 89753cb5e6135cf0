// A graph brought to life on a runtime: publishers that stamp, subscriptions that measure, timers, waitables,
// reactions, work.
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

  Nanoseconds duration_ns = 0;  // of the measured part; kUntilEnded: until LiveGraph::end_at()
  [[nodiscard]] bool ends_by_itself() const noexcept { return duration_ns != kUntilEnded; }
  Nanoseconds warmup_ns = 0;
  measure::ThresholdSettings thresholds{};
  bool measure_dispatch = false;
  bool measure_work = false;
  bool measure_loops = false;  // of timers whose messages come back to their nodes
  bool real_time = true;  // else the runtime says when nothing is left to happen
  bool structs = false;  // every message is encoded from a struct and decoded into one; else encoded once, before the start
  bool times_encoding = true;  // the runtime says how long that takes
  bool source_timestamps = true;  // ... and gives messages those that it is given; else of its own, which are no earlier
  std::optional<runtime::ExecutorKind> executor{};  // replaces the kind of every executor; likewise below
  std::optional<int> executor_threads{};
  std::optional<Nanoseconds> executor_period_ns{};
  std::optional<PassBy> pass_by{};        // of every publisher
  bool name_threads = true;               // executors' threads are called after their nodes
  std::uint64_t seed = 1;                 // of random phases
  int schedule_descriptor = -1;           // memory that all processes share (schedule.h); -1: this is the only one
  std::optional<std::uint32_t> domain{};  // for messages: where endpoints that are none of the graph's live
  // Which messages of the workload are written down one by one, and what of them.
  struct Recording {
    std::vector<std::string> topics;  // and services; empty: all
    bool contents = true;             // else times alone
    bool waits = false;               // where there is no room, as virtual time may; else messages are lost
    std::size_t buffer_bytes = 0;
  };
  std::optional<Recording> recording{};
};

// How many edges (with services) and publishers a LiveGraph of the process has, and how large the longest message is that it
// sends: what a ring for them needs. Throws BadInput where the recording names a topic that is not in the graph.
struct RecordingNeeds {
  measure::MessageRing::Ends ends;
  std::size_t longest_bytes = 0;
};
[[nodiscard]] RecordingNeeds recording_needs(const Graph& graph, std::optional<std::size_t> process,
                                             const LiveSettings::Recording& recording);

// Which writer is which publisher of the graph; exchanged between the processes before the start.
struct WriterName {
  std::string node;  // qualified
  std::string topic;
  perflab_identity identity{};
};

// Of the measured part; without warm-up. A request counts as one message with one delivery, its reply.
//
// They are the workload's alone: of its publishers, and of edges both ends of which are its own.
struct Totals {
  std::uint64_t sent = 0;
  std::uint64_t deliveries_expected = 0;  // messages times the workload's subscriptions of their topic that want them
  std::uint64_t received = 0;   // unique
  std::uint64_t completed = 0;  // callback has returned
  std::uint64_t lost = 0;       // gaps so far
  std::uint64_t received_bytes = 0;  // payload of what was received on topics, as the publishers' size_bytes
};

// Likewise of the publishers and clients of one condition, and of what came of their messages, whoever
// received it.
struct ConditionTotals {
  std::string condition;  // label
  std::uint64_t sent = 0;
  std::uint64_t not_sent = 0;
  std::uint64_t deliveries_expected = 0;  // messages times all subscriptions of their topic that want them
  std::uint64_t received = 0;  // unique
};

// Whose an edge or service between two nodes is: the workload's (empty) where both are, else the condition's
// of the first one that is a condition's.
[[nodiscard]] inline const std::string& condition_between(const Node& from, const Node& to) noexcept {
  return from.condition.empty() ? to.condition : from.condition;
}

struct PublisherView {
  const Node* node;
  const Publisher* publisher;
  const measure::PublisherRecorder* recorder;
  struct Wanted {
    std::string filter;
    std::uint64_t count;  // of the measured messages
  };
  std::vector<Wanted> wanted;  // by the content filters of its subscriptions
};

// How the messages of a publisher go; `asked` is what the graph or the settings say.
struct PassingView {
  const Node* node;
  const Publisher* publisher;
  PassBy asked;
  runtime::Passing passing;
};

// Of a timer of the workload whose messages come back to its node.
struct LoopView {
  const Node* node;
  const Timer* timer;
  const measure::LoopRecorder* recorder;
};

struct ServiceView {
  const Node* client_node;
  const Client* client;
  const Node* server_node;
  std::size_t size_bytes;  // of a request's payload
  const measure::PublisherRecorder* requests;
  const measure::EdgeRecorder* replies;  // latency: the round trip from the stamp of the request
  // Of a part of an action: what the replies said ("accepted", "succeeded"), how often.
  std::map<std::string, std::uint64_t> answers;
};

// Of the measured part, by when triggers were due: triggers = executed + coalesced, once all are answered.
struct WaitableCounts {
  std::uint64_t triggers = 0;
  std::uint64_t executed = 0;       // callbacks, each of which answers a trigger ...
  std::uint64_t coalesced = 0;      // ... and those that found it unanswered
  std::uint64_t not_triggered = 0;  // ticks that timers left out
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
  int threads;                     // 0: one per CPU that the process may use
  Nanoseconds period_ns;           // of kLet; 0: none
  std::vector<std::string> nodes;  // qualified
};

// Where a timer or cyclic reaction ticks in its period: `offset_ns` after the common start and every period.
// One with a phase: of periodic timers and cyclic reactions.
struct TimerView {
  const Node* node;
  std::string name;
  Nanoseconds period_ns;  // of its bursts
  Phase phase;
  Nanoseconds offset_ns;
};

// Of a timer that readers may hold back.
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
  // Creates every endpoint and timer of `process` (an index), or of all processes where it is null. The
  // graph, the runtime and the event queue outlive the LiveGraph, as does `ring`, into which messages go where the
  // settings have a recording. Throws Error.
  LiveGraph(const Graph& graph, std::optional<std::size_t> process, runtime::Runtime& runtime,
            measure::MessageEventQueue& events, const LiveSettings& settings, measure::MessageRing* ring = nullptr);
  // The runtime has been stopped before.
  ~LiveGraph();
  LiveGraph(const LiveGraph&) = delete;
  LiveGraph& operator=(const LiveGraph&) = delete;

  [[nodiscard]] std::vector<WriterName> writers() const;
  // The writers of all processes. A message from any other writer is foreign: counted, not recorded.
  void set_writers(std::span<const WriterName> writers);

  // Endpoints that communicate with fewer peers than the graph says, or with more, one line each; empty once
  // all are matched. What a process that is none of perflab's subscribes may have more readers.
  [[nodiscard]] std::vector<std::string> unmatched();
  // Of these, those with more.
  [[nodiscard]] std::vector<std::string> strangers();

  // Topics of which somebody elsewhere has another type than this graph, one line each: DDS does not match where the
  // names of types differ, and does where only what they stand for differs. Asks the middleware for all that it knows.
  [[nodiscard]] std::vector<std::string> type_differences();

  // The ends of a process that has a program, by qualified node and name; what nothing else in the graph drives. Each throws
  // BadInput, with what there is, where there is none. Before the start.
  PublisherEnd& publisher_end(const std::string& node, const std::string& topic);
  SubscriptionEnd& subscription_end(const std::string& node, const std::string& topic);
  ClientEnd& client_end(const std::string& node, const std::string& service);
  ServerEnd& server_end(const std::string& node, const std::string& service);
  ActionClientEnd& action_client_end(const std::string& node, const std::string& action);
  ActionServerEnd& action_server_end(const std::string& node, const std::string& action);
  // An action server of a program that nobody handles goals for; empty: there is none.
  [[nodiscard]] std::string unhandled_action_server() const;
  // RIHS01 of a type of the graph.
  [[nodiscard]] std::string type_hash(const message::Type& type) const;
  // A timer of a program in the executor of a node, which calls `on_tick` with when it was due; it throws nothing.
  void add_timer(const std::string& node, const std::string& name, Nanoseconds period_ns, bool skip_missed,
                 std::function<void(Nanoseconds due_ns)> on_tick);
  // What threads of a program do, in traces; null where nothing is traced.
  runtime::Span* add_span(const std::string& node, const std::string& name, Nanoseconds period_ns);

  // Messages with an intended time after that instant count. From here on a program may publish.
  void measure_from(Nanoseconds instant);
  // Likewise, where that has not been said; and handlers run.
  void start(Nanoseconds measured_from);
  // Nothing is due later than that, where the measured part has no end by itself. Once, after start().
  void end_at(Nanoseconds at_ns) noexcept;
  // Every timer has had its last tick.
  [[nodiscard]] bool timers_done() const noexcept;

  [[nodiscard]] Totals totals() const noexcept;
  // Of every condition that has nodes in the graph, here or in another process, by label.
  [[nodiscard]] std::vector<ConditionTotals> condition_totals() const;
  // The latencies of all edges of the workload so far, merged. Valid until the next call of either.
  const measure::Histogram& merged_latency();
  const measure::Histogram& merged_response();  // likewise
  [[nodiscard]] std::vector<PublisherView> publishers() const;
  [[nodiscard]] std::vector<EdgeView> edges() const;
  [[nodiscard]] std::vector<ServiceView> services() const;
  [[nodiscard]] const std::vector<LoopView>& loops() const noexcept { return loop_views_; }  // of measure_loops
  [[nodiscard]] const std::vector<ThrottleView>& throttles() const noexcept { return throttle_views_; }
  [[nodiscard]] std::vector<WaitableView> waitables() const;
  // Whether a waitable has been triggered and not answered, warm-up included.
  [[nodiscard]] bool triggered() const noexcept;
  [[nodiscard]] const std::vector<ExecutorView>& executors() const noexcept { return executors_; }
  [[nodiscard]] const std::vector<TimerView>& timers() const noexcept { return timer_views_; }
  // Once everything is matched.
  [[nodiscard]] std::vector<PassingView> passing() const;
  [[nodiscard]] std::uint64_t foreign_messages() const noexcept;
  // Those that are none of the type of their topic, and could not be recorded.
  [[nodiscard]] std::uint64_t malformed_messages() const noexcept;
  // Those of which it is not known any more when they were due (schedule.h).
  [[nodiscard]] std::uint64_t forgotten_messages() const noexcept;
  // Those that were received although the content filter of their subscription does not want them.
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
    std::size_t executor;  // the runtime's handle
    std::size_t group;
    std::size_t participant;  // of the process's
    runtime::ExecutorKind kind;
  };

  // Of a program, by the name of its node. Throws BadInput.
  [[nodiscard]] std::pair<const Node*, Place> node_of(const std::string& name) const;
  std::vector<std::string> differing(bool too_many_only);
  void build_process(std::size_t index, const Process& process);
  void build_node(const Place& place, const Node& node);
  // Returns when each client was created.
  std::vector<Nanoseconds> build_services(const Place& place, const Node& node);
  // Likewise.
  std::vector<Nanoseconds> build_actions(const Place& place, const Node& node);
  // What cancels the goals of a client that a timer sends.
  void build_cancelling(const Place& place, const Node& node, const Timer& timer, Nanoseconds offset_ns,
                        std::size_t first_action_client);
  void build_waitables(const Place& place, const Node& node);
  // A recorder for a timer whose messages come back to subscriptions of its node, which are from `first` on; null for
  // another one, and where loops are not measured.
  measure::LoopRecorder* build_loops(const Node& node, const Timer& timer, std::size_t first_subscription);
  // Likewise one that holds the timer back where the graph says so.
  LiveThrottle* build_throttle(const Node& node, const Timer& timer);
  // Once all nodes are there: which publisher acknowledges for which subscription, and what throttles hear. Throws BadInput
  // where the graph names what is not there.
  void link_acknowledgements();
  // `timer` says what is of the graph: its name, and how often it ticks.
  void build_timer(const Place& place, const Node& node, runtime::TimerSettings timer, Phase phase,
                   Nanoseconds offset_ns, runtime::TimerHandler& handler);
  // One that goes on for so long after the measured part, since what began in it goes on; nobody waits for its end.
  void build_follower(const Place& place, runtime::TimerSettings timer, Nanoseconds offset_ns, Nanoseconds after_ns,
                      runtime::TimerHandler& handler);
  // Of the workload's own edges.
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
  std::vector<std::unique_ptr<runtime::TimerEnd>> timer_ends_;  // where the measured part has none by itself, or there are followers
  std::vector<std::unique_ptr<runtime::TimerEnd>> follower_ends_;
  bool ended_ = false;                                          // end_at()
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
