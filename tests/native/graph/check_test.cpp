// The rules of check() that a resolved graph, or a graph made by a program, can break; what a user's file can
// break is in tests/data/graphs/bad.
#include "graph/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "support.h"

namespace perflab::graph {
namespace {

Graph valid_graph() {
  return test::parse(R"(
nodes:
  - name: a
    publishers:
      - {topic: x, type: stamped10b, period: 10ms}
      - {topic: y, type: stamped_vector, size: 5}
    subscriptions:
      - {topic: x, type: stamped10b}
    reactions:
      - {on: x, publish: y, work: 1us}
)");
}

// The line of the first rule that the changed graph breaks, without its place.
std::string problem_of(const std::function<void(Graph&)>& change) {
  Graph graph = valid_graph();
  change(graph);
  const std::string line =
      test::error_of([&] { check(graph, [](const Item&) { return std::string("here"); }); });
  EXPECT_EQ(line.substr(0, 6), "here: ");
  return line.size() > 6 ? line.substr(6) : line;
}

Node& node(Graph& graph) { return graph.processes[0].nodes[0]; }

TEST(Check, AcceptsAValidGraph) {
  EXPECT_NO_THROW(check(valid_graph(), [](const Item&) { return std::string(); }));
}

TEST(Check, RefusesIndexesThatNameNothing) {
  EXPECT_EQ(problem_of([](Graph& g) { node(g).timers[0].publish = {2}; }), "publishes with publisher 2 of 2");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).reactions[0].publish = {7}; }),
            "publishes with publisher 7 of 2");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).reactions[0].on = {1}; }), "reacts on subscription 1 of 1");
  EXPECT_EQ(problem_of([](Graph& g) {
              node(g).timers[0].publish = {0, 0};
            }),
            "publishes /x twice; name it once");
}

TEST(Check, RefusesNumbersOutOfRange) {
  EXPECT_EQ(problem_of([](Graph& g) { node(g).timers[0].period_ns = 0; }),
            "period is 0ns; it must be at least 1us and at most one day");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).timers[0].period_ns = -1; }),
            "period is -1ns; it must be at least 1us and at most one day");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).timers[0].work_ns = -1; }),
            "work is -1ns; it must be at least 0 and at most one day");
  EXPECT_EQ(
      problem_of([](Graph& g) { node(g).reactions[0].work_ns = std::numeric_limits<Nanoseconds>::max(); }),
      "work is 9223372036854775807ns; it must be at least 0 and at most one day");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).publishers[0].qos.depth = 0; }),
            "depth is 0; it must be at least 1");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).publishers[0].qos.deadline_ns = 0; }),
            "deadline is 0ns; it must be more than 0 and at most one day");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).subscriptions[0].qos.lifespan_ns = 5; }),
            "lifespan is a policy of publishers; remove it from the subscription");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).publishers[0].size_bytes = 11; }),
            "size 11 does not fit type stamped10b, which always has 10 bytes; remove it");
}

TEST(Check, HoldsTheFrequencyToWhatPublishes) {
  EXPECT_EQ(problem_of([](Graph& g) { node(g).publishers[0].frequency_hz = 99.0; }),
            "frequency_hz of /x is 99; by what publishes it, it is 100");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).publishers[1].frequency_hz = 1.0; }),
            "frequency_hz of /y is 1; by what publishes it, it is 0");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).publishers[0].frequency_hz = std::nan(""); }),
            "frequency_hz of /x is nan; by what publishes it, it is 100");
}

TEST(Check, RefusesGraphsWithoutContent) {
  EXPECT_EQ(problem_of([](Graph& g) { g.processes.clear(); }),
            "the graph has no processes; give it at least one");
  EXPECT_EQ(problem_of([](Graph& g) { g.processes[0].nodes.clear(); }),
            "process g has no nodes; give it at least one");
  EXPECT_EQ(problem_of([](Graph& g) { g.processes[0].executors.clear(); }),
            "executor 0 is not an executor of process g");
  EXPECT_EQ(problem_of([](Graph& g) { g.name = "../x"; }).substr(0, 12), "name '../x' ");
  EXPECT_EQ(problem_of([](Graph& g) { g.processes[0].executors[0].id = -1; }), "executor id -1 is negative");
}

TEST(Check, RefusesValuesOutsideOfTheirEnumerations) {
  EXPECT_EQ(problem_of([](Graph& g) { node(g).reactions[0].kind = static_cast<ReactionKind>(99); }),
            "the reaction has no kind of this version");
  EXPECT_EQ(problem_of([](Graph& g) { g.processes[0].executors[0].kind = static_cast<ExecutorKind>(99); }),
            "the executor has no kind of this version");
}

TEST(Compatibility, FollowsRequestAgainstOffer) {
  const perflab_qos strict = [] {
    perflab_qos qos = default_qos();
    qos.durability = PERFLAB_TRANSIENT_LOCAL;
    qos.deadline_ns = 10;
    qos.liveliness = PERFLAB_MANUAL_BY_TOPIC;
    qos.lease_duration_ns = 10;
    return qos;
  }();
  const auto fails = [](perflab_qos offered, perflab_qos requested, const char* policy) {
    return compatibility_problem(offered, requested).starts_with(policy);
  };
  EXPECT_EQ(compatibility_problem(strict, strict), "");
  EXPECT_EQ(compatibility_problem(strict, default_qos()), "") << "more may be offered than is asked for";
  perflab_qos offered = strict;
  offered.reliability = PERFLAB_BEST_EFFORT;
  EXPECT_TRUE(fails(offered, strict, "reliability"));
  offered = strict;
  offered.durability = PERFLAB_VOLATILE;
  EXPECT_TRUE(fails(offered, strict, "durability"));
  offered = strict;
  offered.deadline_ns = 11;
  EXPECT_TRUE(fails(offered, strict, "deadline"));
  offered = strict;
  offered.liveliness = PERFLAB_AUTOMATIC;
  EXPECT_TRUE(fails(offered, strict, "liveliness"));
  offered = strict;
  offered.lease_duration_ns = PERFLAB_DURATION_INFINITE;
  EXPECT_TRUE(fails(offered, strict, "lease_duration"));
  offered = strict;
  offered.history = PERFLAB_KEEP_ALL;
  offered.lifespan_ns = 1;
  EXPECT_EQ(compatibility_problem(offered, strict), "") << "history and lifespan are not matched";
}

}  // namespace
}  // namespace perflab::graph
