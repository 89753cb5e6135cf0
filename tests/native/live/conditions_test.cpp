// Nodes added by a condition: they disturb and are recorded like others, but are counted separately from the
// workload.
#include "virtual_lab.h"

namespace perflab::graph {
namespace {

// Assigns the nodes with these names to a condition.
Graph with_condition(const std::string& yaml, const std::string& label,
                     const std::vector<std::string>& names) {
  Graph graph = parse_graph({{"test.yaml", yaml, "test"}});
  for (Process& process : graph.processes) {
    for (Node& node : process.nodes) {
      if (std::ranges::find(names, node.name) != names.end()) node.condition = label;
    }
  }
  return graph;
}

// The workload is talker and listener. The flood publishes on their topic and on its own; the tap receives
// both.
constexpr const char* kFlooded = R"(
name: flooded
processes:
  - name: work
    nodes:
      - name: talker
        publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]
      - name: listener
        subscriptions: [{topic: chatter, type: stamped1kb}]
  - name: other
    nodes:
      - name: flood
        publishers: [{topic: chatter, type: stamped1kb}, {topic: noise, type: stamped10b}]
        timers: [{name: flood, period: 4ms, publish: [chatter, noise], overrun: skip}]
      - name: tap
        subscriptions: [{topic: chatter, type: stamped1kb}, {topic: noise, type: stamped10b}]
)";

const EdgeView& edge_between(const std::vector<EdgeView>& edges, const std::string& topic,
                             const std::string& from, const std::string& to) {
  for (const EdgeView& edge : edges) {
    if (edge.publisher->topic == topic && edge.publisher_node->name == from &&
        edge.subscription_node->name == to)
      return edge;
  }
  throw std::out_of_range("no edge of " + topic + " from " + from + " to " + to);
}

TEST(Conditions, TotalsAreTheWorkloadsAlone) {
  const VirtualLab lab(with_condition(kFlooded, "message_flood", {"flood", "tap"}), kNanosecondsPerSecond,
                       {{"disturb.delay", "1ms"}});
  const Totals totals = lab.live().totals();
  EXPECT_EQ(totals.sent, 100u);
  EXPECT_EQ(totals.deliveries_expected, 100u);  // the listener's; the tap does not belong to the workload
  EXPECT_EQ(totals.received, 100u);
  EXPECT_EQ(totals.completed, 100u);
  EXPECT_EQ(totals.lost, 0u);
}

TEST(Conditions, TheSameGraphWithoutConditionsCountsEverything) {
  const VirtualLab lab(with_condition(kFlooded, "", {}), kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  EXPECT_EQ(lab.live().totals().sent, 100u + 2 * 250u);
  EXPECT_EQ(lab.live().totals().completed, 2 * 100u + 3 * 250u);
  EXPECT_TRUE(lab.live().condition_totals().empty());
}

TEST(Conditions, AConditionCountsItsOwnMessagesWhoeverReceivesThem) {
  const VirtualLab lab(with_condition(kFlooded, "message_flood", {"flood", "tap"}), kNanosecondsPerSecond,
                       {{"disturb.delay", "1ms"}});
  const std::vector<ConditionTotals> conditions = lab.live().condition_totals();
  ASSERT_EQ(conditions.size(), 1u);
  EXPECT_EQ(conditions[0].condition, "message_flood");
  EXPECT_EQ(conditions[0].sent, 500u);
  EXPECT_EQ(conditions[0].not_sent, 0u);
  EXPECT_EQ(conditions[0].deliveries_expected, 750u);  // chatter to listener and tap, noise to the tap
  EXPECT_EQ(conditions[0].received, 750u);
}

TEST(Conditions, AFloodThatNobodyReadsDeliversNothing) {
  const VirtualLab lab(with_condition(R"(
name: deaf
nodes:
  - name: talker
    publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]
  - name: listener
    subscriptions: [{topic: chatter, type: stamped1kb}]
  - name: flood
    publishers: [{topic: noise, type: stamped10b}]
    timers: [{name: flood, period: 4ms, publish: noise, overrun: skip}]
)",
                                      "message_flood", {"flood"}),
                       kNanosecondsPerSecond);
  EXPECT_EQ(lab.live().totals().completed, 100u);
  const std::vector<ConditionTotals> conditions = lab.live().condition_totals();
  ASSERT_EQ(conditions.size(), 1u);
  EXPECT_EQ(conditions[0].sent, 250u);
  EXPECT_EQ(conditions[0].deliveries_expected, 0u);
  EXPECT_EQ(conditions[0].received, 0u);
}

// Only the workload's process, as perflab-node runs it: the condition is elsewhere, but its label is known.
TEST(Conditions, EveryProcessNamesTheConditionsOfTheWholeGraph) {
  const Graph graph = with_condition(kFlooded, "message_flood", {"flood", "tap"});
  runtime::VirtualRuntime runtime({}, 1);
  measure::MessageEventQueue events;
  const LiveGraph live(graph, 0, runtime, events, {.duration_ns = kNanosecondsPerSecond});
  ASSERT_EQ(live.condition_totals().size(), 1u);
  EXPECT_EQ(live.condition_totals()[0].condition, "message_flood");
  EXPECT_EQ(live.condition_totals()[0].sent, 0u);
  runtime.stop();
}

TEST(Conditions, TheirEdgesAreRecordedButNotInTheMergedHistograms) {
  VirtualLab lab(with_condition(kFlooded, "message_flood", {"flood", "tap"}), kNanosecondsPerSecond,
                 {{"disturb.delay", "1ms"}});
  const std::vector<EdgeView> edges = lab.live().edges();
  EXPECT_EQ(edges.size(), 5u);
  EXPECT_EQ(edge_between(edges, "/chatter", "talker", "listener").recorder->latency().count(), 100u);
  EXPECT_EQ(edge_between(edges, "/chatter", "talker", "tap").recorder->latency().count(), 100u);
  EXPECT_EQ(edge_between(edges, "/chatter", "flood", "listener").recorder->latency().count(), 250u);
  EXPECT_EQ(edge_between(edges, "/noise", "flood", "tap").recorder->latency().count(), 250u);
  EXPECT_EQ(lab.live().merged_latency().count(), 100u);
  EXPECT_EQ(lab.live().merged_response().count(), 100u);
  lab.expect_conservation();
}

// Every tenth message of every edge is lost, and all are late: only the workload's own edge reports it.
TEST(Conditions, NoEventsAreWrittenForTheirEdges) {
  VirtualLab lab(with_condition(kFlooded, "message_flood", {"flood", "tap"}), kNanosecondsPerSecond,
                 {{"disturb.delay", "7ms"}, {"disturb.loss_every", "10"}});
  const std::vector<EdgeView> edges = lab.live().edges();
  const auto& flooded = edge_between(edges, "/chatter", "flood", "listener");
  EXPECT_EQ(flooded.recorder->late() + flooded.recorder->too_late(), flooded.recorder->sequence().received());
  EXPECT_GT(flooded.recorder->sequence().gap(), 0u);
  std::size_t own = 0;
  for (std::size_t i = 0; i < edges.size(); ++i) {
    if (&*edges[i].publisher_node == &*edge_between(edges, "/chatter", "talker", "listener").publisher_node &&
        edges[i].subscription_node->name == "listener") {
      own = i;
    }
  }
  std::size_t events = 0;
  for (measure::MessageEvent event; lab.events().pop(event); ++events) EXPECT_EQ(event.edge, own);
  EXPECT_EQ(events, 90u + 9u);  // all that came are late, and nine of the lost ones leave a gap
  EXPECT_EQ(lab.live().totals().lost, 9u);
}

TEST(Conditions, ServicesCountForThemWhoAsks) {
  const VirtualLab lab(with_condition(R"(
name: asked
nodes:
  - name: caller
    clients: [{service: add, type: stamped10b, period: 10ms}]
  - name: flood
    clients: [{service: add, type: stamped10b}]
    timers: [{name: flood, period: 5ms, request: add, overrun: skip}]
  - name: callee
    servers: [{service: add, type: stamped10b}]
)",
                                      "service_flood", {"flood"}),
                       kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  EXPECT_EQ(lab.live().totals().sent, 100u);
  EXPECT_EQ(lab.live().totals().deliveries_expected, 100u);
  EXPECT_EQ(lab.live().totals().received, 100u);
  EXPECT_EQ(lab.live().totals().completed, 100u);
  const std::vector<ConditionTotals> conditions = lab.live().condition_totals();
  ASSERT_EQ(conditions.size(), 1u);
  EXPECT_EQ(conditions[0].sent, 200u);
  EXPECT_EQ(conditions[0].deliveries_expected, 200u);
  EXPECT_EQ(conditions[0].received, 200u);
}

// A condition's reaction skips missed periods, so that it does not continue after the end.
TEST(Conditions, ACyclicReactionThatIsBehindDoesNotCatchUp) {
  constexpr const char* kCyclic = R"(
name: cyclic
processes:
  - name: a
    nodes:
      - name: talker
        publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]
      - name: listener
        subscriptions: [{topic: chatter, type: stamped1kb}]
  - name: b
    nodes:
      - name: slow
        subscriptions: [{topic: chatter, type: stamped1kb}]
        publishers: [{topic: noise, type: stamped10b}]
        reactions: [{kind: cyclic, on: chatter, period: 10ms, work: 35ms, publish: noise}]
)";
  const VirtualLab behind(with_condition(kCyclic, "", {}), kNanosecondsPerSecond);
  EXPECT_EQ(behind.publisher("/noise").sent(), 100u);
  const VirtualLab skipping(with_condition(kCyclic, "slow_reader", {"slow"}), kNanosecondsPerSecond);
  EXPECT_LE(skipping.publisher("/noise").sent(), 33u);  // 1 s, and 0.1 s that is made up for, of 35 ms each
}

// ---- peers ----

// Has as many matched peers as the test sets.
class CountingRuntime final : public runtime::Runtime {
 public:
  class Endpoint final : public runtime::Publisher, public runtime::Subscription {
   public:
    bool publish(const runtime::Outgoing&) noexcept override { return false; }
    bool publish_related(std::span<const perflab_bytes>, const perflab_sample_identity*,
                         std::int64_t*) noexcept override {
      return false;
    }
    [[nodiscard]] runtime::Passing passing() noexcept override { return {}; }
    [[nodiscard]] perflab_identity identity() const noexcept override { return {}; }
    [[nodiscard]] std::size_t matched() noexcept override { return peers; }
    std::size_t peers = 0;
  };
  class Ends final : public runtime::Client, public runtime::Server {
   public:
    bool request(const runtime::Outgoing&) noexcept override { return false; }
    [[nodiscard]] perflab_identity identity() const noexcept override { return {}; }
    [[nodiscard]] std::size_t matched() noexcept override { return peers; }
    std::size_t peers = 0;
  };

  [[nodiscard]] const measure::Clock& clock() const noexcept override { return clock_; }
  std::size_t add_executor(const runtime::ExecutorSettings&) override { return 0; }
  runtime::Publisher& create_publisher(const runtime::EndpointSettings&) override { return publisher; }
  runtime::Subscription& create_subscription(std::size_t, const runtime::EndpointSettings&,
                                             runtime::MessageHandler&) override {
    return subscription;
  }
  runtime::Client& create_client(std::size_t, const runtime::ServiceSettings&,
                                 runtime::MessageHandler&) override {
    return client;
  }
  runtime::Server& create_server(std::size_t, const runtime::ServiceSettings&,
                                 runtime::RequestHandler&) override {
    return server;
  }
  runtime::ActionClient& create_action_client(std::size_t, const runtime::ActionSettings&,
                                              runtime::ActionClientHandler&) override {
    throw std::logic_error("no actions here");
  }
  runtime::ActionServer& create_action_server(std::size_t, const runtime::ActionSettings&,
                                              runtime::ActionServerHandler&) override {
    throw std::logic_error("no actions here");
  }
  [[nodiscard]] runtime::ServiceFraming service_framing() const noexcept override {
    return runtime::ServiceFraming::kRmwCyclonedds;
  }
  void create_timer(std::size_t, const runtime::TimerSettings&, runtime::TimerHandler&) override {}
  runtime::Waitable& create_waitable(std::size_t, const runtime::WaitableSettings&,
                                     runtime::WaitableHandler&) override {
    throw std::logic_error("no waitables here");
  }
  void work(Nanoseconds) noexcept override {}
  void start(Nanoseconds) override {}
  [[nodiscard]] bool timers_done() const noexcept override { return true; }
  void stop() noexcept override {}
  [[nodiscard]] std::string describe() override { return "{}"; }

  Endpoint publisher;
  Endpoint subscription;
  Ends client;
  Ends server;

 private:
  measure::ManualClock clock_;
};

TEST(Unmatched, FewerAndMorePeersThanTheGraphSaysAreBothNamed) {
  const Graph graph = parse_graph({{"test.yaml", R"(
name: pair
nodes:
  - name: talker
    publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]
    clients: [{service: add, type: stamped10b, period: 10ms}]
  - name: listener
    subscriptions: [{topic: chatter, type: stamped1kb}]
    servers: [{service: add, type: stamped10b}]
)",
                                    "test"}});
  CountingRuntime runtime;
  measure::MessageEventQueue events;
  LiveGraph live(graph, 0, runtime, events, {.duration_ns = kNanosecondsPerSecond, .domain = 17});
  const auto set_peers = [&runtime](std::size_t peers) {
    runtime.publisher.peers = runtime.subscription.peers = runtime.client.peers = runtime.server.peers =
        peers;
  };
  set_peers(0);
  EXPECT_EQ(live.unmatched(), (std::vector<std::string>{"/talker publisher /chatter: 0 of 1 readers",
                                                        "/listener subscription /chatter: 0 of 1 writers",
                                                        "/talker client /add: 0 of 1 servers",
                                                        "/listener server /add: 0 of 1 clients"}));
  set_peers(1);
  EXPECT_TRUE(live.unmatched().empty());
  set_peers(3);
  EXPECT_EQ(live.unmatched(),
            (std::vector<std::string>{
                "/talker publisher /chatter: 3 of 1 readers: another program uses domain 17",
                "/listener subscription /chatter: 3 of 1 writers: another program uses domain 17",
                "/talker client /add: 3 of 1 servers: another program uses domain 17",
                "/listener server /add: 3 of 1 clients: another program uses domain 17"}));
}

TEST(Unmatched, AProcessFromOutsideReadsAtLeastAsOftenAsTheGraphSays) {
  const Graph graph = parse_graph({{"test.yaml", R"(
name: pair
processes:
  - {name: clock, nodes: [{name: talker, publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]}]}
  - {name: theirs, program: outside, nodes: [{name: listener, subscriptions: [{topic: chatter, type: stamped1kb}]}]}
)",
                                    "test"}});
  CountingRuntime runtime;
  measure::MessageEventQueue events;
  LiveGraph live(graph, 0, runtime, events, {.duration_ns = kNanosecondsPerSecond, .domain = 17});
  EXPECT_EQ(live.unmatched(), std::vector<std::string>{"/talker publisher /chatter: 0 of 1 readers"});
  runtime.publisher.peers = 5;
  EXPECT_TRUE(live.unmatched().empty());
  EXPECT_TRUE(live.strangers().empty());
}

}  // namespace
}  // namespace perflab::graph
