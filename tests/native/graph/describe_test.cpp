#include "graph/describe.h"

#include <gtest/gtest.h>

#include "support.h"

namespace perflab::graph {
namespace {

double rate_of(const Description& description, const std::string& topic) {
  for (const TopicDescription& entry : description.topics) {
    if (entry.topic == topic) return entry.published_per_s;
  }
  return -1.0;
}

TEST(Describe, CountsPartsAndEdges) {
  const Description d = describe(test::parse(R"(
nodes:
  - {name: a, number: 2, publishers: [{topic: x, type: stamped100b, frequency: 10}]}
  - {name: b, number: 3, subscriptions: [{topic: x, type: stamped100b}]}
  - {name: c, publishers: [{topic: lonely, type: stamped10b, period: 1s}],
     subscriptions: [{topic: outside, type: stamped10b}]}
)"));
  EXPECT_EQ(d.nodes, 6U);
  EXPECT_EQ(d.publishers, 3U);
  EXPECT_EQ(d.subscriptions, 4U);
  EXPECT_EQ(d.edges, 6U);
  EXPECT_EQ(d.unmatched_publishers, 1U);
  EXPECT_EQ(d.unmatched_subscriptions, 1U);
  EXPECT_DOUBLE_EQ(d.published_per_s, 21.0);
  EXPECT_DOUBLE_EQ(d.delivered_per_s, 60.0);
  EXPECT_DOUBLE_EQ(d.delivered_bytes_per_s, 6'000.0);
}

TEST(Describe, CountsParticipantsOfAllProcesses) {
  EXPECT_EQ(describe(test::parse("nodes: [{name: a}]")).participants, 1U);
  EXPECT_EQ(describe(test::parse(R"(
processes:
  - {name: p, participants: 3, nodes: [{name: a}]}
  - {name: q, nodes: [{name: b}]}
)"))
                .participants,
            4U);
}

TEST(Describe, CountsServicesApartFromTopics) {
  const Description d = describe(test::parse(R"(
nodes:
  - {name: a, number: 2, clients: [{service: add, type: stamped100b, frequency: 10}, {service: sum, type: stamped10b, period: 1s}]}
  - {name: b, servers: [{service: add, type: stamped100b, work: 1ms}, {service: unused, type: stamped10b}]}
  - {name: c, servers: [{service: sum, type: stamped10b}]}
)"));
  EXPECT_EQ(d.clients, 4U);
  EXPECT_EQ(d.servers, 3U);
  EXPECT_EQ(d.timers, 4U);
  EXPECT_DOUBLE_EQ(d.requests_per_s, 22.0);
  EXPECT_EQ(d.edges, 0U);
  EXPECT_DOUBLE_EQ(d.published_per_s, 0.0);
  EXPECT_TRUE(d.topics.empty());
  ASSERT_EQ(d.services.size(), 3U);
  EXPECT_EQ(d.services[0].service, "/add");
  EXPECT_EQ(d.services[0].type, "stamped100b");
  EXPECT_EQ(d.services[0].server, "/b");
  EXPECT_EQ(d.services[0].clients, (std::vector<std::string>{"/a_1", "/a_2"}));
  EXPECT_DOUBLE_EQ(d.services[0].requests_per_s, 20.0);
  EXPECT_DOUBLE_EQ(d.services[0].request_bytes_per_s, 2'000.0);
  EXPECT_EQ(d.services[1].service, "/sum");
  EXPECT_EQ(d.services[2].service, "/unused");
  EXPECT_TRUE(d.services[2].clients.empty());
  EXPECT_DOUBLE_EQ(d.services[2].requests_per_s, 0.0);
}

TEST(Describe, CountsWaitables) {
  const Description d = describe(
      test::parse("nodes: [{name: a, number: 2, waitables: [{name: v, number: 3}, {name: w, period: 1s}]}]"));
  EXPECT_EQ(d.waitables, 8U);
  EXPECT_EQ(d.timers, 2U);
}

TEST(Describe, CarriesRatesAlongReactions) {
  const Description d = describe(test::parse(R"(
nodes:
  - name: sources
    publishers:
      - {topic: fast, type: stamped10b, frequency: 100}
      - {topic: slow, type: stamped10b, frequency: 10}
  - name: fusion
    subscriptions: [{topic: fast, type: stamped10b}, {topic: slow, type: stamped10b}]
    publishers: [{topic: fused, type: stamped10b}]
    reactions: [{kind: fusion, on: [fast, slow], publish: fused}]
  - name: transform
    subscriptions: [{topic: fast, type: stamped10b}, {topic: fused, type: stamped10b}]
    publishers: [{topic: sum, type: stamped10b}]
    reactions: [{kind: transform, on: [fast, fused], publish: sum}]
  - name: cyclic
    subscriptions: [{topic: sum, type: stamped10b}]
    publishers: [{topic: paced, type: stamped10b}]
    reactions: [{kind: cyclic, on: sum, publish: paced, period: 20ms}]
)"));
  EXPECT_TRUE(d.rates_settled);
  EXPECT_DOUBLE_EQ(rate_of(d, "/fused"), 10.0);
  EXPECT_DOUBLE_EQ(rate_of(d, "/sum"), 110.0);
  EXPECT_DOUBLE_EQ(rate_of(d, "/paced"), 50.0);
}

TEST(Describe, SettlesLoopsThatAFusionHoldsBack) {
  const Description d =
      describe(parse_graph({read_file(test::source_dir() / "tests/data/graphs/good/held_back_loop.yaml")}));
  EXPECT_TRUE(d.rates_settled);
  EXPECT_DOUBLE_EQ(rate_of(d, "/c"), 0.0) << "it waits for its own first message";
  EXPECT_DOUBLE_EQ(rate_of(d, "/a"), 100.0);
}

TEST(TimedDeliveries, CountsWholePeriods) {
  const Graph graph = test::parse(
      "nodes:\n  - {name: a, publishers: [{topic: x, type: stamped10b, period: 300ms}]}\n"
      "  - {name: b, number: 2, subscriptions: [{topic: x, type: stamped10b}]}\n");
  EXPECT_EQ(timed_deliveries(graph, 1'000'000'000), 6U);
  EXPECT_EQ(timed_deliveries(graph, 299'999'999), 0U);
  EXPECT_EQ(timed_deliveries(graph, 300'000'000), 2U)
      << "the k-th tick is due at k periods, the end included";
}

}  // namespace
}  // namespace perflab::graph
