// Where timers tick in their periods.
#include "graph/phase.h"

#include <set>

#include "support.h"

namespace perflab::graph {
namespace {

using test::parse;

constexpr Nanoseconds kMs = 1'000'000;

std::string with_phase(const std::string& phase, int nodes = 5) {
  return "phase: " + phase + "\nnodes:\n  - {name: n, number: " + std::to_string(nodes) +
         ", publishers: [{topic: '~/t', type: stamped10b, period: 10ms}]}\n";
}

std::vector<Nanoseconds> offsets_of(const Graph& graph, std::uint64_t seed, Nanoseconds created_ns = 0) {
  const PhaseOffsets phases(graph, seed);
  std::vector<Nanoseconds> offsets;
  for (const Process& process : graph.processes) {
    for (const Node& node : process.nodes) {
      for (const Timer& timer : node.timers) offsets.push_back(phases.of(timer, created_ns));
      for (const Reaction& reaction : node.reactions) {
        if (reaction.kind == ReactionKind::kCyclic) offsets.push_back(phases.of(reaction, created_ns));
      }
    }
  }
  return offsets;
}

TEST(Phase, AlignedTimersTickTogether) {
  EXPECT_EQ(offsets_of(parse(with_phase("aligned", 3)), 7, 12'345), (std::vector<Nanoseconds>{0, 0, 0}));
}

TEST(Phase, StaggeredTimersAreSpreadEvenlyOverTheirPeriods) {
  EXPECT_EQ(offsets_of(parse(with_phase("staggered")), 7),
            (std::vector<Nanoseconds>{0, 2 * kMs, 4 * kMs, 6 * kMs, 8 * kMs}));
  // A day, and as many timers as a graph can have, without an overflow.
  Graph graph = parse(with_phase("staggered", 1000));
  for (Node& node : graph.processes[0].nodes) node.timers[0].period_ns = 86'400'000'000'000;
  EXPECT_EQ(offsets_of(graph, 7).back(), 86'400'000'000'000 / 1000 * 999);
}

TEST(Phase, StaggeredTimersAreCountedAmongTheirOwn) {
  const Graph graph = parse(R"(
nodes:
  - name: n
    publishers:
      - {topic: a, type: stamped10b, period: 10ms, phase: staggered}
      - {topic: b, type: stamped10b, period: 10ms}
      - {topic: c, type: stamped10b, period: 30ms, phase: staggered}
)");
  EXPECT_EQ(offsets_of(graph, 7), (std::vector<Nanoseconds>{0, 0, 15 * kMs}));
}

TEST(Phase, RandomOnesFollowFromTheSeed) {
  const Graph graph = parse(with_phase("random", 200));
  const std::vector<Nanoseconds> offsets = offsets_of(graph, 7);
  EXPECT_EQ(offsets, offsets_of(graph, 7, 999));
  EXPECT_NE(offsets, offsets_of(graph, 8));
  EXPECT_GT(std::set(offsets.begin(), offsets.end()).size(), 190u);
  Nanoseconds sum = 0;
  for (const Nanoseconds offset : offsets) {
    EXPECT_GE(offset, 0);
    EXPECT_LT(offset, 10 * kMs);
    sum += offset;
  }
  EXPECT_NEAR(static_cast<double>(sum) / 200, 5e6, 1e6);  // five standard errors
}

TEST(Phase, AsCreatedKeepsHowTimersLayToEachOther) {
  const Graph graph = parse(with_phase("as_created", 2));
  const PhaseOffsets phases(graph, 7);
  const Timer& first = graph.processes[0].nodes[0].timers[0];
  const Timer& second = graph.processes[0].nodes[1].timers[0];
  const Nanoseconds created = 123'456'789'012;
  const Nanoseconds between = phases.of(second, created + 13 * kMs) - phases.of(first, created);
  EXPECT_EQ((between % (10 * kMs) + 10 * kMs) % (10 * kMs), 3 * kMs);
}

TEST(Phase, IsOfTheTimerElseOfTheExecutorElseOfTheGraph) {
  const Graph graph =
      parse_graph({read_file((test::source_dir() / "tests/data/graphs/good/phases.yaml").string())});
  const Node& a = graph.processes[0].nodes[0];
  const Node& b = graph.processes[0].nodes[1];
  EXPECT_EQ(a.timers[0].phase, Phase::kRandom);
  EXPECT_EQ(a.timers[1].phase, Phase::kAligned);
  EXPECT_EQ(a.timers[2].phase, Phase::kAsCreated);
  EXPECT_EQ(b.timers[0].phase, Phase::kStaggered);
  EXPECT_EQ(b.timers[1].phase, Phase::kAligned);
  EXPECT_EQ(b.reactions[0].phase, Phase::kStaggered);
  EXPECT_EQ(b.reactions[1].phase, Phase::kAsCreated);
}

TEST(Phase, ATopologyOfIrobotBenchmarkHasItsTimersAsCreated) {
  const Graph graph =
      parse(R"({"nodes": [{"node_name": "a", "publishers": [{"topic_name": "t", "msg_type": "stamped10b",
    "freq_hz": 10}], "clients": [{"service_name": "s", "srv_type": "stamped10b", "freq_hz": 10}]},
    {"node_name": "b", "servers": [{"service_name": "s", "srv_type": "stamped10b"}]}]})",
            "g.json");
  for (const Timer& timer : graph.processes[0].nodes[0].timers) EXPECT_EQ(timer.phase, Phase::kAsCreated);
}

}  // namespace
}  // namespace perflab::graph
