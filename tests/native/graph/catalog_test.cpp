// Checks the catalog's topologies against the known figures of irobot_benchmark.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/describe.h"
#include "message/header.h"
#include "support.h"

namespace perflab::graph {
namespace {

constexpr Nanoseconds kRun = 120'000'000'000;

struct Topology {
  std::string name;
  std::size_t nodes;
  std::size_t executors;
  std::size_t publishers;
  std::size_t subscriptions;
  long published_per_s;
  long delivered_per_s;
  double delivered_mb_per_s;  // rounded as in the reference table
  double mb_resolution;
  std::uint64_t messages;  // in 120 s
  PassBy pass_by;
};

Graph read_catalog(const std::string& name) {
  return parse_graph({read_file(test::source_dir() / "catalog/topologies" / (name + ".yaml"))});
}

class Catalog : public testing::TestWithParam<Topology> {};

TEST_P(Catalog, HasTheKnownFigures) {
  const Topology& expected = GetParam();
  const Graph graph = read_catalog(expected.name);
  const Description d = describe(graph);
  EXPECT_EQ(graph.name, expected.name);
  EXPECT_EQ(d.processes, 1U);
  EXPECT_EQ(d.nodes, expected.nodes);
  EXPECT_EQ(d.executors, expected.executors);
  EXPECT_EQ(d.publishers, expected.publishers);
  EXPECT_EQ(d.subscriptions, expected.subscriptions);
  EXPECT_EQ(d.edges, expected.subscriptions) << "every topic has one publisher";
  EXPECT_EQ(d.unmatched_publishers, 0U);
  EXPECT_EQ(d.unmatched_subscriptions, 0U);
  EXPECT_EQ(std::lround(d.published_per_s), expected.published_per_s);
  EXPECT_EQ(std::lround(d.delivered_per_s), expected.delivered_per_s);
  EXPECT_NEAR(d.delivered_bytes_per_s / 1e6, expected.delivered_mb_per_s, expected.mb_resolution);
  EXPECT_EQ(timed_deliveries(graph, kRun), expected.messages);
  for (const Node& node : graph.processes[0].nodes) {
    for (const Publisher& publisher : node.publishers) EXPECT_EQ(publisher.pass_by, expected.pass_by);
    for (const Timer& timer : node.timers) EXPECT_EQ(timer.phase, Phase::kAsCreated) << "as irobot_benchmark's";
  }
}

INSTANTIATE_TEST_SUITE_P(
    Topologies, Catalog,
    testing::Values(
        Topology{"sierra_nevada", 10, 1, 13, 17, 654, 1054, 0.116, 0.0005, 126'480, PassBy::kShared},
        Topology{"mont_blanc", 20, 1, 23, 35, 781, 1263, 23.05, 0.005, 151'560, PassBy::kShared},
        // 19.925 MB/s; the table, with 19.92, truncates.
        Topology{"white_mountain", 20, 20, 23, 35, 761, 1223, 19.92, 0.01, 146'760, PassBy::kUnique},
        Topology{"cedar", 9, 9, 13, 19, 438, 768, 0.114, 0.0005, 92'160, PassBy::kUnique}),
    [](const auto& test) { return test.param.name; });

struct Listener {
  std::string name;
  std::string beside;
  long delivered_per_s;
  perflab_reliability reliability;
};

class CatalogListener : public testing::TestWithParam<Listener> {};

TEST_P(CatalogListener, HearsEveryTopicOfItsTopology) {
  const Listener& expected = GetParam();
  const Graph alone = read_catalog(expected.name);
  ASSERT_EQ(alone.processes[0].nodes.size(), 1U);
  EXPECT_EQ(alone.processes[0].nodes[0].name, "debug_node");
  for (const Subscription& subscription : alone.processes[0].nodes[0].subscriptions) {
    EXPECT_EQ(subscription.qos.reliability, expected.reliability);
  }
  const auto path = [](const std::string& name) {
    return (test::source_dir() / "catalog/topologies" / (name + ".yaml")).string();
  };
  const Description before = describe(read_catalog(expected.beside));
  const Description together =
      describe(parse_graph({read_file(path(expected.beside)), read_file(path(expected.name))}));
  EXPECT_EQ(together.processes, 2U);
  EXPECT_EQ(together.unmatched_subscriptions, 0U);
  EXPECT_EQ(together.edges - before.edges, before.publishers);
  EXPECT_EQ(std::lround(together.delivered_per_s - before.delivered_per_s), expected.delivered_per_s);
}

INSTANTIATE_TEST_SUITE_P(
    Topologies, CatalogListener,
    testing::Values(Listener{"debug_sierra_nevada_reliable", "sierra_nevada", 654, PERFLAB_RELIABLE},
                    Listener{"debug_sierra_nevada_best_effort", "sierra_nevada", 654, PERFLAB_BEST_EFFORT},
                    Listener{"debug_mont_blanc_reliable", "mont_blanc", 781, PERFLAB_RELIABLE},
                    Listener{"debug_mont_blanc_best_effort", "mont_blanc", 781, PERFLAB_BEST_EFFORT}),
    [](const auto& test) { return test.param.name; });

struct Example {
  std::string name;
  long published_per_s;
  long delivered_per_s;
  long requests_per_s = 0;
};

class CatalogExample : public testing::TestWithParam<Example> {};

TEST_P(CatalogExample, HasTheRatesThatItsHeadStates) {
  const Description d = describe(read_catalog("examples/" + GetParam().name));
  EXPECT_EQ(std::lround(d.published_per_s), GetParam().published_per_s);
  EXPECT_EQ(std::lround(d.delivered_per_s), GetParam().delivered_per_s);
  EXPECT_EQ(std::lround(d.requests_per_s), GetParam().requests_per_s);
  EXPECT_EQ(d.unmatched_publishers, 0U);
  EXPECT_EQ(d.unmatched_subscriptions, 0U);
}

INSTANTIATE_TEST_SUITE_P(Examples, CatalogExample,
                         testing::Values(Example{"ping_pong", 200, 200}, Example{"fusion", 40, 40},
                                         Example{"cyclic", 101, 101}, Example{"relay_chain", 90, 120},
                                         Example{"executors", 50, 250}, Example{"threads", 100, 100},
                                         Example{"services", 10, 10, 80}, Example{"loaned", 60, 60},
                                         Example{"waitables", 50, 50}, Example{"message_types", 100, 100}),
                         [](const auto& test) { return test.param.name; });

const Node& node_of(const Graph& graph, const std::string& name) {
  for (const Node& node : graph.processes.at(0).nodes) {
    if (node.name == name) return node;
  }
  throw std::out_of_range(name);
}

// Requirements of the reference system: number of publishers and readers per topic.
struct ReferenceTopic {
  std::string name;
  std::size_t subscriptions;
  double per_s;  // long-term average
};

class AutowareTopic : public testing::TestWithParam<ReferenceTopic> {};

TEST_P(AutowareTopic, HasTheEndsAndTheRateOfTheReference) {
  const ReferenceTopic& expected = GetParam();
  const Description d = describe(read_catalog("autoware_reference"));
  const auto topic = std::ranges::find(d.topics, "/" + expected.name, &TopicDescription::topic);
  ASSERT_NE(topic, d.topics.end());
  EXPECT_EQ(topic->publishers.size(), 1U);
  EXPECT_EQ(topic->subscriptions.size(), expected.subscriptions);
  EXPECT_NEAR(topic->published_per_s, expected.per_s, 1e-9);
}

// A fusion is as fast as its slower input: the map's 120 ms determine the lane and parking planners.
constexpr double kOfTheMap = 1000.0 / 120;

INSTANTIATE_TEST_SUITE_P(
    Topics, AutowareTopic,
    testing::Values(
        ReferenceTopic{"FrontLidarDriver", 1, 10}, ReferenceTopic{"RearLidarDriver", 1, 10},
        ReferenceTopic{"PointCloudMap", 1, kOfTheMap}, ReferenceTopic{"Visualizer", 1, 1000.0 / 60},
        ReferenceTopic{"Lanelet2Map", 1, 10}, ReferenceTopic{"EuclideanClusterSettings", 1, 40},
        ReferenceTopic{"PointsTransformerFront", 1, 10}, ReferenceTopic{"PointsTransformerRear", 1, 10},
        ReferenceTopic{"VoxelGridDownsampler", 1, 10}, ReferenceTopic{"PointCloudMapLoader", 1, kOfTheMap},
        ReferenceTopic{"RayGroundFilter", 1, 10}, ReferenceTopic{"EuclideanClusterDetector", 1, 10},
        ReferenceTopic{"EuclideanIntersection", 1, 40}, ReferenceTopic{"ObjectCollisionEstimator", 1, 10},
        ReferenceTopic{"MPCController", 1, 10}, ReferenceTopic{"ParkingPlanner", 1, kOfTheMap},
        ReferenceTopic{"LanePlanner", 1, kOfTheMap}, ReferenceTopic{"PointCloudFusion", 2, 10},
        ReferenceTopic{"NDTLocalizer", 2, kOfTheMap}, ReferenceTopic{"VehicleInterface", 1, 10},
        ReferenceTopic{"Lanelet2GlobalPlanner", 2, kOfTheMap},
        ReferenceTopic{"Lanelet2MapLoader", 3, kOfTheMap}, ReferenceTopic{"BehaviorPlanner", 2, 10}),
    [](const auto& test) { return test.param.name; });

TEST(AutowareReference, HasTheNodesOfTheReference) {
  const Graph graph = read_catalog("autoware_reference");
  const Description d = describe(graph);
  EXPECT_EQ(d.processes, 1U);
  EXPECT_EQ(d.executors, 1U);
  EXPECT_EQ(d.nodes, 24U);
  EXPECT_EQ(d.topics.size(), 23U);
  EXPECT_EQ(d.edges, 29U);
  EXPECT_NEAR(d.published_per_s, 285, 1e-9);
  EXPECT_NEAR(d.delivered_per_s, 338 + 1.0 / 3, 1e-9);

  std::map<ReactionKind, std::size_t> reactions;
  std::size_t sensors = 0;
  std::size_t commands = 0;
  for (const Node& node : graph.processes[0].nodes) {
    sensors += node.timers.size();
    commands += node.publishers.empty() ? 1U : 0U;
    for (const Publisher& publisher : node.publishers) {
      EXPECT_EQ(publisher.type, "stamped_vector");
      EXPECT_EQ(sizeof(message::Header) + sizeof(std::uint32_t) + publisher.size_bytes, 4096U);
      EXPECT_EQ(publisher.qos.depth, 1);
      EXPECT_EQ(publisher.qos.reliability, PERFLAB_RELIABLE);
    }
    for (const Subscription& subscription : node.subscriptions) {
      EXPECT_EQ(subscription.qos.depth, node.publishers.empty() ? 10 : 1) << node.name;
    }
    for (const Reaction& reaction : node.reactions) {
      ++reactions[reaction.kind];
      EXPECT_EQ(reaction.work_ns, 1'000'000) << node.name;
    }
  }
  EXPECT_EQ(sensors, 6U);
  EXPECT_EQ(commands, 2U);
  EXPECT_EQ(reactions[ReactionKind::kTransform], 9U + 2U) << "two are the intersection's";
  EXPECT_EQ(reactions[ReactionKind::kFusion], 5U);
  EXPECT_EQ(reactions[ReactionKind::kCyclic], 1U);
  EXPECT_EQ(node_of(graph, "EuclideanClusterDetector").reactions.size(), 2U);
}

TEST(AutowareReference, ThePlannerReadsSixTopicsEvery100Ms) {
  const Graph graph = read_catalog("autoware_reference");
  const Node& planner = node_of(graph, "BehaviorPlanner");
  std::vector<std::string> read;
  for (const Subscription& subscription : planner.subscriptions) read.push_back(subscription.topic);
  EXPECT_EQ(read,
            (std::vector<std::string>{"/ObjectCollisionEstimator", "/NDTLocalizer", "/Lanelet2GlobalPlanner",
                                      "/Lanelet2MapLoader", "/ParkingPlanner", "/LanePlanner"}));
  ASSERT_EQ(planner.reactions.size(), 1U);
  EXPECT_EQ(planner.reactions[0].on.size(), 6U);
  EXPECT_EQ(planner.reactions[0].period_ns, 100'000'000);
}

TEST(AutowareReference, DeclaresTheKeyFiguresOfTheReference) {
  const Graph graph = read_catalog("autoware_reference");
  ASSERT_EQ(graph.key_figures.size(), 3U);
  const KeyFigure& hot_path = graph.key_figures[0];
  EXPECT_EQ(hot_path.name, "hot_path");
  EXPECT_EQ(hot_path.from, (std::vector<std::string>{"/FrontLidarDriver", "/RearLidarDriver"}));
  EXPECT_EQ(hot_path.to, "/ObjectCollisionEstimator");
  ASSERT_EQ(hot_path.edges.size(), 1U);
  EXPECT_EQ(hot_path.edges[0].topic, "/EuclideanClusterDetector");
  EXPECT_EQ(graph.key_figures[1].kind, KeyFigureKind::kLost);
  EXPECT_TRUE(graph.key_figures[1].topics.empty()) << "all";
  ASSERT_EQ(graph.key_figures[2].publishers.size(), 1U);
  EXPECT_EQ(graph.key_figures[2].publishers[0].period_ns, 100'000'000);
}

}  // namespace
}  // namespace perflab::graph
