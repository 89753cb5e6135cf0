#include <gtest/gtest.h>

#include <string>

#include "../rows.h"
#include "graph/check.h"
#include "support.h"

namespace perflab::graph {
namespace {

// A node that reacts to topics by publishing others, all of one type.
std::string node(const std::string& name, const std::string& kind, const std::vector<std::string>& on,
                 const std::vector<std::string>& publish) {
  const auto joined = [](const std::vector<std::string>& topics, bool endpoints) {
    std::string list;
    for (const std::string& topic : topics) {
      list += (list.empty() ? "" : ", ") + (endpoints ? "{topic: " + topic + ", type: stamped10b}" : topic);
    }
    return "[" + list + "]";
  };
  return "  - name: " + name + "\n    subscriptions: " + joined(on, true) +
         "\n    publishers: " + joined(publish, true) + "\n    reactions: [{kind: " + kind +
         ", on: " + joined(on, false) + ", publish: " + joined(publish, false) +
         (kind == "cyclic" ? ", period: 1s" : "") + "}]\n";
}

const std::string kClock = "  - {name: clock, publishers: [{topic: tick, type: stamped10b, period: 1s}]}\n";

struct Loop {
  const char* name;
  std::string nodes;
  std::string through;  // topics through which messages circulate; empty: none
};
class Circulation : public testing::TestWithParam<Loop> {};

TEST_P(Circulation, IsRefusedWhereNothingHoldsItBack) {
  const std::string graph = "nodes:\n" + GetParam().nodes;
  if (GetParam().through.empty()) {
    EXPECT_NO_THROW(test::parse(graph)) << graph;
    return;
  }
  const std::string line = test::parse_error(graph);
  EXPECT_NE(line.find("circulate forever through " + GetParam().through + ";"), std::string::npos) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Refused, Circulation,
    rows::of<Loop>({{"OfThreeTopics",
                     node("n1", "relay", {"c"}, {"a"}) + node("n2", "transform", {"a"}, {"b"}) +
                         node("n3", "relay", {"b"}, {"c"}),
                     "/a -> /b -> /c -> /a"},
                    {"OfOneTopic", node("n1", "relay", {"a"}, {"a"}), "/a -> /a"},
                    {"BehindAndBeforeOtherReactions",
                     kClock + node("in", "relay", {"tick"}, {"a"}) + node("n1", "relay", {"a"}, {"b"}) +
                         node("n2", "relay", {"b"}, {"a", "c"}) + node("out", "relay", {"c"}, {"d"}),
                     "/a -> /b -> /a"},
                    {"WithAFusionThatFeedsItself",
                     node("n1", "fusion", {"a", "b"}, {"c"}) + node("n2", "relay", {"c"}, {"a", "b"}),
                     "/a -> /c -> /a"},
                    {"BesideALoopThatIsHeldBack",
                     kClock + node("n1", "fusion", {"tick", "a"}, {"b"}) + node("n2", "relay", {"b"}, {"a"}) +
                         node("n3", "relay", {"x"}, {"y"}) + node("n4", "relay", {"y"}, {"x"}),
                     "/x -> /y -> /x"}}),
    rows::by_name);
INSTANTIATE_TEST_SUITE_P(
    Accepted, Circulation,
    rows::of<Loop>({{"ChainsAndDiamonds",
                     kClock + node("n1", "relay", {"tick"}, {"a", "b"}) +
                         node("n2", "transform", {"a", "b"}, {"c"}) + node("n3", "relay", {"c"}, {"d"}),
                     ""},
                    {"HeldBackByACyclicReaction",
                     node("n1", "cyclic", {"a"}, {"b"}) + node("n2", "relay", {"b"}, {"a"}), ""},
                    {"HeldBackByAFusionThatWaitsForAClock",
                     kClock + node("n1", "fusion", {"tick", "a"}, {"b"}) + node("n2", "relay", {"b"}, {"a"}),
                     ""},
                    {"HeldBackByAFusionThatWaitsForTheOutside",
                     node("n1", "fusion", {"outside", "a"}, {"b"}) + node("n2", "relay", {"b"}, {"a"}), ""},
                    {"ServicesThatNodesAskOfEachOther",
                     "  - {name: n1, clients: [{service: b, type: stamped10b, period: 1s}], servers: "
                     "[{service: a, type: "
                     "stamped10b}]}\n"
                     "  - {name: n2, clients: [{service: a, type: stamped10b, period: 1s}], servers: "
                     "[{service: b, type: "
                     "stamped10b}]}\n",
                     ""}}),
    rows::by_name);

TEST(LongCirculation, IsShortened) {
  std::string nodes;
  for (int i = 0; i < 500; ++i) {
    nodes += node("n" + std::to_string(i), "relay", {"t" + std::to_string(i)},
                  {"t" + std::to_string((i + 1) % 500)});
  }
  const std::string line = test::parse_error("nodes:\n" + nodes);
  EXPECT_NE(line.find("-> ... -> /t0;"), std::string::npos) << line;
  EXPECT_LT(line.size(), 400U);
}

}  // namespace
}  // namespace perflab::graph
