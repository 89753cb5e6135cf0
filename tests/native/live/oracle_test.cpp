// The published topologies at full length: exact counts, from the catalog's own files.
#include <map>

#include "virtual_lab.h"

namespace perflab::graph {
namespace {

struct Oracle {
  const char* topology;
  std::size_t nodes;
  std::size_t publishers;
  std::size_t edges;
  std::uint64_t delivered;  // in 120 s
};

class Oracles : public testing::TestWithParam<Oracle> {};

TEST_P(Oracles, DeliversExactlyFloorOfDurationByPeriodOnEveryEdge) {
  const Oracle& oracle = GetParam();
  const Graph graph =
      parse_graph({read_file(std::string(PERFLAB_CATALOG "/topologies/") + oracle.topology + ".yaml")});
  constexpr Nanoseconds kDuration = 120 * kNanosecondsPerSecond;
  std::size_t nodes = 0;
  std::map<std::string, Nanoseconds> periods;
  for (const Process& process : graph.processes) {
    nodes += process.nodes.size();
    for (const Node& node : process.nodes) {
      for (const Timer& timer : node.timers) {
        for (const std::size_t index : timer.publish) periods[node.publishers[index].topic] = timer.period_ns;
      }
    }
  }
  EXPECT_EQ(nodes, oracle.nodes);

  const VirtualLab lab(graph, kDuration, {{"disturb.delay", "50us"}});
  EXPECT_EQ(lab.live().publishers().size(), oracle.publishers);
  EXPECT_EQ(lab.live().edges().size(), oracle.edges);
  std::uint64_t delivered = 0;
  for (const EdgeView& edge : lab.live().edges()) {
    const auto expected = static_cast<std::uint64_t>(kDuration / periods.at(edge.publisher->topic));
    EXPECT_EQ(edge.recorder->sequence().received(), expected) << edge.publisher->topic;
    EXPECT_EQ(edge.recorder->sequence().gap(), 0u);
    delivered += edge.recorder->sequence().received();
  }
  EXPECT_EQ(delivered, oracle.delivered);
  lab.expect_conservation();
}

INSTANTIATE_TEST_SUITE_P(Published, Oracles,
                         testing::Values(Oracle{"sierra_nevada", 10, 13, 17, 126'480},
                                         Oracle{"mont_blanc", 20, 23, 35, 151'560},
                                         Oracle{"white_mountain", 20, 23, 35, 146'760},
                                         Oracle{"cedar", 9, 13, 19, 92'160}),
                         [](const auto& tested) { return std::string(tested.param.topology); });

}  // namespace
}  // namespace perflab::graph
