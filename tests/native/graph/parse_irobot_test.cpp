#include <gtest/gtest.h>

#include <string>

#include "../rows.h"
#include "support.h"

namespace perflab::graph {
namespace {

using test::parse;

Graph parse_publisher(const std::string& keys) {
  return parse(
      R"({"nodes": [{"node_name": "a", "publishers": [{"topic_name": "x", "msg_type": "stamped10b", )" +
      keys + "}]}]}");
}

struct IrobotPeriod {
  const char* name;
  std::string keys;
  Nanoseconds period_ns;
};
class IrobotPublisher : public testing::TestWithParam<IrobotPeriod> {};

TEST_P(IrobotPublisher, HasAPeriodOfWholeMicroseconds) {
  EXPECT_EQ(parse_publisher(GetParam().keys).processes[0].nodes[0].timers[0].period_ns, GetParam().period_ns);
}

INSTANTIATE_TEST_SUITE_P(, IrobotPublisher,
                         rows::of<IrobotPeriod>({{"Of10ms", R"("period_ms": 10)", 10'000'000},
                                                 {"Of15Hz", R"("freq_hz": 15)", 66'666'000},
                                                 {"Of64Hz", R"("freq_hz": 64)", 15'625'000},
                                                 {"Of3Hz", R"("freq_hz": 3)", 333'333'000},
                                                 {"Of1500ns", R"("period_ms": 0.0015)", 1'000},
                                                 {"Of1us", R"("period_ms": 0.001)", 1'000},
                                                 {"OfADay", R"("period_ms": 86400000)", 86'400'000'000'000},
                                                 {"OfTheFrequencyWhereThereAreBoth",
                                                  R"("freq_hz": 100, "period_ms": 7)", 10'000'000}}),
                         rows::by_name);

TEST(IrobotFormat, SendsThePeriodThatItUsesAsFrequency) {
  EXPECT_DOUBLE_EQ(parse_publisher(R"("freq_hz": 15)").processes[0].nodes[0].publishers[0].frequency_hz,
                   1e9 / 66'666'000);
}

TEST(IrobotFormat, ReadsEveryKey) {
  const Graph graph =
      parse_graph({read_file(test::source_dir() / "tests/data/graphs/irobot/good/every_key.json")});
  ASSERT_EQ(graph.processes.size(), 1U);
  EXPECT_EQ(graph.processes[0].name, "every_key");
  ASSERT_EQ(graph.processes[0].nodes.size(), 3U);
  const Node& second = graph.processes[0].nodes[1];
  EXPECT_EQ(second.qualified_name(), "/robot_2/source_2") << "the number follows name and namespace";
  EXPECT_EQ(second.executor, 4);
  const Publisher& image = second.publishers.at(0);
  EXPECT_EQ(image.topic, "/robot_2/image");
  EXPECT_EQ(image.type, "stamped_vector") << "without its plugin";
  EXPECT_EQ(image.size_bytes, 5'000U);
  EXPECT_EQ(image.pass_by, PassBy::kShared);
  EXPECT_EQ(image.qos.depth, 3);
  EXPECT_EQ(second.timers.at(0).period_ns, 66'666'000);
  EXPECT_EQ(second.timers.at(0).name, "image");
  const Publisher& state = second.publishers.at(1);
  EXPECT_EQ(state.topic, "/state");
  EXPECT_EQ(state.pass_by, PassBy::kUnique);
  EXPECT_EQ(state.qos.history, PERFLAB_KEEP_ALL);
  EXPECT_EQ(state.qos.depth, PERFLAB_DEPTH_UNLIMITED);
  EXPECT_EQ(state.qos.durability, PERFLAB_TRANSIENT_LOCAL);
  EXPECT_EQ(state.qos.liveliness, PERFLAB_MANUAL_BY_TOPIC);
  EXPECT_EQ(second.timers.at(1).period_ns, 2'500'000);
  const Node& sink = graph.processes[0].nodes[2];
  EXPECT_EQ(sink.executor, 0);
  EXPECT_EQ(sink.subscriptions.at(0).topic, "/robot_1/image");
  EXPECT_EQ(sink.subscriptions.at(0).pass_by, PassBy::kUnique);
  EXPECT_EQ(sink.subscriptions.at(0).qos.reliability, PERFLAB_BEST_EFFORT);
  EXPECT_EQ(sink.subscriptions.at(1).pass_by, PassBy::kShared);
  EXPECT_EQ(sink.subscriptions.at(2).pass_by, PassBy::kShared) << "subscriptions cannot be lent messages";
  EXPECT_EQ(sink.publishers.at(0).pass_by, PassBy::kLoaned);
  EXPECT_EQ(sink.servers.at(0).service, "/add");
  EXPECT_EQ(sink.servers.at(0).qos.history, PERFLAB_KEEP_ALL);
  EXPECT_EQ(sink.servers.at(0).work_ns, 0);
  ASSERT_EQ(second.clients.size(), 2U);
  EXPECT_EQ(second.clients[0].service, "/add");
  EXPECT_EQ(second.clients[0].type, "stamped10b") << "without its plugin";
  EXPECT_EQ(second.clients[0].qos.depth, 3);
  EXPECT_EQ(second.clients[0].qos.reliability, PERFLAB_RELIABLE) << "what a writer has by default";
  EXPECT_DOUBLE_EQ(second.clients[0].frequency_hz, 1e9 / 66'666'000);
  EXPECT_EQ(second.clients[1].service, "/robot_2/state");
  EXPECT_EQ(second.servers.at(0).service, "/robot_2/state");
  ASSERT_EQ(second.timers.size(), 4U);
  EXPECT_EQ(second.timers[2].name, "add");
  EXPECT_EQ(second.timers[2].request, std::vector<std::size_t>{0});
  EXPECT_EQ(second.timers[2].period_ns, 66'666'000);
  EXPECT_EQ(second.timers[3].name, "state_request") << "a publisher's timer has the other name";
}

TEST(IrobotFormat, PublishesUniquePointersByDefault) {
  EXPECT_EQ(parse_publisher(R"("period_ms": 10)").processes[0].nodes[0].publishers[0].pass_by,
            PassBy::kUnique);
}

TEST(IrobotFormat, ReadsSystemDefaultAsTheDdsSpecificationHasIt) {
  const Graph graph =
      parse_graph({read_file(test::source_dir() / "tests/data/graphs/irobot/good/system_default.json")});
  const perflab_qos& writer = graph.processes[0].nodes[0].publishers.at(0).qos;
  const perflab_qos& reader = graph.processes[0].nodes[1].subscriptions.at(0).qos;
  EXPECT_EQ(writer.reliability, PERFLAB_RELIABLE);
  EXPECT_EQ(reader.reliability, PERFLAB_BEST_EFFORT);
  for (const perflab_qos* qos : {&writer, &reader}) {
    EXPECT_EQ(qos->history, PERFLAB_KEEP_LAST);
    EXPECT_EQ(qos->depth, 10) << "the kind is the system's, the depth that of ROS 2";
    EXPECT_EQ(qos->durability, PERFLAB_VOLATILE);
    EXPECT_EQ(qos->liveliness, PERFLAB_AUTOMATIC);
  }
}

TEST(IrobotFormat, SharesAnExecutorById) {
  const Graph graph =
      parse_graph({read_file(test::source_dir() / "tests/data/graphs/irobot/good/executors.json")});
  const Process& process = graph.processes.at(0);
  ASSERT_EQ(process.executors.size(), 2U);
  EXPECT_EQ(process.executors[0].id, 2);
  EXPECT_EQ(process.executors[1].id, 1);
  EXPECT_EQ(process.nodes[0].executor, 2);
  EXPECT_EQ(process.nodes[2].executor, 2);
}

TEST(IrobotFormat, IsToldByNodeName) {
  EXPECT_EQ(parse(R"({"nodes": [{"node_name": "a"}]})").processes[0].nodes[0].name, "a");
  EXPECT_EQ(parse(R"({"nodes": [{"name": "a"}]})").processes[0].nodes[0].name, "a");
}

}  // namespace
}  // namespace perflab::graph
