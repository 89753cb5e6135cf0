#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "../rows.h"
#include "graph/describe.h"
#include "support.h"

namespace perflab::graph {
namespace {

using test::error_of;
using test::parse;
using test::parse_error;

TEST(PerflabFormat, FillsInTheDefaults) {
  const Graph graph = parse(R"(
nodes:
  - name: a
    publishers: [{topic: x, type: stamped9_float32, period: 10ms}]
    subscriptions: [{topic: y, type: stamped_vector}]
)");
  EXPECT_EQ(graph.name, "g");
  ASSERT_EQ(graph.processes.size(), 1U);
  const Process& process = graph.processes[0];
  EXPECT_EQ(process.name, "g");
  ASSERT_EQ(process.executors.size(), 1U);
  EXPECT_EQ(process.executors[0].id, 0);
  EXPECT_EQ(process.executors[0].kind, ExecutorKind::kSingleThreaded);
  const Node& node = process.nodes.at(0);
  EXPECT_EQ(node.node_namespace, "/");
  EXPECT_EQ(node.executor, 0);
  const Publisher& publisher = node.publishers.at(0);
  EXPECT_EQ(publisher.topic, "/x");
  EXPECT_EQ(publisher.size_bytes, 36U);
  EXPECT_DOUBLE_EQ(publisher.frequency_hz, 100.0);
  EXPECT_EQ(publisher.pass_by, PassBy::kUnspecified);
  EXPECT_EQ(publisher.qos.history, PERFLAB_KEEP_LAST);
  EXPECT_EQ(publisher.qos.depth, 10);
  EXPECT_EQ(publisher.qos.reliability, PERFLAB_RELIABLE);
  EXPECT_EQ(publisher.qos.durability, PERFLAB_VOLATILE);
  EXPECT_EQ(publisher.qos.deadline_ns, PERFLAB_DURATION_INFINITE);
  EXPECT_EQ(publisher.qos.lifespan_ns, PERFLAB_DURATION_INFINITE);
  EXPECT_EQ(publisher.qos.liveliness, PERFLAB_AUTOMATIC);
  EXPECT_EQ(publisher.qos.lease_duration_ns, PERFLAB_DURATION_INFINITE);
  const Timer& timer = node.timers.at(0);
  EXPECT_EQ(timer.name, "x");
  EXPECT_EQ(timer.period_ns, 10'000'000);
  EXPECT_EQ(timer.publish, std::vector<std::size_t>{0});
  EXPECT_EQ(timer.work_ns, 0);
  EXPECT_EQ(timer.overrun, Overrun::kCatchUp);
  EXPECT_TRUE(node.reactions.empty());
}

TEST(PerflabFormat, ReadsEveryKey) {
  const Graph graph = parse_graph({read_file(test::source_dir() / "tests/data/graphs/good/every_key.yaml")});
  EXPECT_EQ(graph.name, "every_key");
  ASSERT_EQ(graph.processes.size(), 2U);
  const Process& driver = graph.processes[0];
  EXPECT_EQ(driver.executors.at(0).kind, ExecutorKind::kInline);
  EXPECT_TRUE(driver.executors.at(0).thread.empty());
  EXPECT_EQ(driver.executors.at(1).kind, ExecutorKind::kMultiThreaded);
  EXPECT_EQ(driver.executors.at(1).threads, 4);
  EXPECT_EQ(driver.executors.at(1).thread, (realtime::ThreadSettings{realtime::Policy::kFifo, 10, {0, 2}}));
  EXPECT_EQ(driver.threads.executors, (realtime::ThreadSettings{realtime::Policy::kRoundRobin, 98, {1}}));
  EXPECT_EQ(driver.threads.middleware, (realtime::ThreadSettings{realtime::Policy::kOther, 0, {0, 1}}));
  EXPECT_EQ(driver.participants, 2);
  EXPECT_TRUE(driver.lock_memory);
  ASSERT_EQ(driver.nodes.size(), 3U);
  EXPECT_EQ(driver.nodes[1].qualified_name(), "/robot/left/source_2");
  EXPECT_EQ(driver.nodes[1].executor, 7);
  EXPECT_EQ(driver.nodes[2].executor, 3) << "the first executor of the process";
  const Publisher& state = driver.nodes[1].publishers.at(0);
  EXPECT_EQ(state.topic, "/robot/left/source_2/state");
  EXPECT_EQ(state.pass_by, PassBy::kShared);
  EXPECT_EQ(state.qos.depth, 5);
  EXPECT_EQ(state.qos.reliability, PERFLAB_BEST_EFFORT);
  EXPECT_EQ(state.qos.deadline_ns, 10'000'000);
  EXPECT_EQ(state.qos.lifespan_ns, 1'000'000'000);
  EXPECT_EQ(state.qos.liveliness, PERFLAB_MANUAL_BY_TOPIC);
  EXPECT_EQ(state.qos.lease_duration_ns, 250'000'000);
  EXPECT_EQ(driver.nodes[0].timers.at(1).period_ns, 80'000'000);
  EXPECT_EQ(driver.nodes[0].timers.at(1).work_ns, 3'000);
  const Node& camera = driver.nodes[2];
  EXPECT_EQ(camera.publishers.at(0).qos.history, PERFLAB_KEEP_ALL);
  EXPECT_EQ(camera.publishers.at(0).qos.depth, PERFLAB_DEPTH_UNLIMITED);
  EXPECT_EQ(camera.publishers.at(0).size_bytes, 65'536U);
  EXPECT_DOUBLE_EQ(camera.publishers.at(1).frequency_hz, 25.0);
  EXPECT_EQ(camera.timers.at(0).publish, (std::vector<std::size_t>{0, 1}));
  EXPECT_EQ(camera.timers.at(0).overrun, Overrun::kSkip);
  EXPECT_EQ(camera.publishers.at(1).pass_by, PassBy::kLoaned);
  EXPECT_EQ(camera.servers.at(0).service, "/camera/set_exposure");
  EXPECT_EQ(camera.servers.at(0).type, "stamped10b");
  EXPECT_EQ(camera.servers.at(0).work_ns, 1'000'000);
  EXPECT_EQ(camera.servers.at(0).qos.depth, 3);
  EXPECT_EQ(camera.servers.at(0).qos.lifespan_ns, 1'000'000'000);
  const Node& relay = graph.processes[1].nodes.at(0);
  EXPECT_EQ(relay.reactions.at(0).kind, ReactionKind::kRelay);
  EXPECT_EQ(relay.reactions.at(1).kind, ReactionKind::kTransform) << "kind left out";
  EXPECT_EQ(relay.reactions.at(1).work_ns, 250);
  EXPECT_EQ(relay.reactions.at(2).kind, ReactionKind::kFusion);
  EXPECT_EQ(relay.reactions.at(2).on, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(relay.publishers.at(0).frequency_hz, 0.0) << "published by a reaction";
  ASSERT_EQ(relay.waitables.size(), 3U);
  EXPECT_EQ(relay.waitables[0].name, "graph changes_1");
  EXPECT_EQ(relay.waitables[1].work_ns, 3'000);
  EXPECT_EQ(relay.waitables[2].name, "idle");
  EXPECT_EQ(relay.waitables[2].work_ns, 0);
  ASSERT_EQ(relay.timers.size(), 3U);
  EXPECT_EQ(relay.timers[1].name, "graph changes_2");
  EXPECT_EQ(relay.timers[1].trigger, std::vector<std::size_t>{1});
  EXPECT_EQ(relay.timers[1].phase, Phase::kStaggered);
  EXPECT_EQ(relay.timers[2].name, "idle") << "the first waitable it triggers";
  EXPECT_EQ(relay.timers[2].trigger, (std::vector<std::size_t>{2, 1}));
  const Node& end = graph.processes[1].nodes.at(1);
  EXPECT_EQ(end.reactions.at(0).kind, ReactionKind::kSink);
  EXPECT_EQ(end.reactions.at(1).kind, ReactionKind::kCyclic);
  EXPECT_EQ(end.reactions.at(1).period_ns, 1'000'000'000);
  ASSERT_EQ(end.clients.size(), 3U);
  EXPECT_EQ(end.clients[0].service, "/camera/set_exposure");
  EXPECT_DOUBLE_EQ(end.clients[0].frequency_hz, 10.0);
  EXPECT_EQ(end.clients[1].service, "/end/reset");
  EXPECT_EQ(end.clients[1].type, "stamped_int64");
  EXPECT_DOUBLE_EQ(end.clients[1].frequency_hz, 2.0);
  EXPECT_DOUBLE_EQ(end.clients[2].frequency_hz, 2.0) << "that of the timer that requests";
  ASSERT_EQ(end.timers.size(), 3U);
  EXPECT_EQ(end.timers[0].name, "camera/set_exposure");
  EXPECT_EQ(end.timers[0].period_ns, 100'000'000);
  EXPECT_EQ(end.timers[0].request, std::vector<std::size_t>{0});
  EXPECT_EQ(end.timers[1].name, "reset");
  EXPECT_EQ(end.timers[2].name, "status") << "the first service it requests";
  EXPECT_EQ(end.timers[2].request, std::vector<std::size_t>{2});
  EXPECT_TRUE(end.timers[2].publish.empty());
  EXPECT_EQ(end.timers[2].work_ns, 2'000);
  const Process& consumer = graph.processes[1];
  EXPECT_TRUE(consumer.threads.executors.empty());
  EXPECT_TRUE(consumer.threads.middleware.empty());
  EXPECT_EQ(consumer.participants, 1);
  EXPECT_FALSE(consumer.lock_memory);
}

struct WrittenCpus {
  std::string text;
  std::vector<int> cpus;
};
class CpusOfThreads : public testing::TestWithParam<WrittenCpus> {};

TEST_P(CpusOfThreads, AreAListANumberOrAText) {
  const Graph graph = parse("threads: {middleware: {cpus: " + GetParam().text + "}}\nnodes: [{name: a}]");
  EXPECT_EQ(graph.processes[0].threads.middleware.cpus, GetParam().cpus);
}

INSTANTIATE_TEST_SUITE_P(, CpusOfThreads,
                         rows::of<WrittenCpus>({{"[5, 0, 2]", {0, 2, 5}},
                                                {"1023", {1023}},
                                                {"\"1023\"", {1023}},
                                                {"0-2", {0, 1, 2}},
                                                {"\"7,0-2,5-5\"", {0, 1, 2, 5, 7}}}),
                         rows::by_text);

TEST(PerflabFormat, TakesSettingsOfItsOnlyProcessAtTheTopLevel) {
  const Graph graph = parse(
      "threads: {executors: {policy: FIFO, priority: 1}}\nlock_memory: true\nexecutors: [{id: 0, kind: "
      "events}]\nparticipants: 64\nnodes: [{name: a}]");
  EXPECT_EQ(graph.processes[0].participants, 64);
  EXPECT_EQ(graph.processes[0].threads.executors.policy, realtime::Policy::kFifo);
  EXPECT_EQ(graph.processes[0].threads.executors.priority, 1);
  EXPECT_TRUE(graph.processes[0].lock_memory);
  EXPECT_EQ(graph.processes[0].executors[0].kind, ExecutorKind::kEvents);
}

TEST(PerflabFormat, LeavesTheThreadsOfAMultiThreadedExecutorToTheMachine) {
  const Graph graph = parse("executors: [{id: 0, kind: multi_threaded}]\nnodes: [{name: a}]");
  EXPECT_EQ(graph.processes[0].executors[0].kind, ExecutorKind::kMultiThreaded);
  EXPECT_EQ(graph.processes[0].executors[0].threads, 0);
}

TEST(PerflabFormat, GivesCallbacksTheirPriorityOrThatOfTheirNode) {
  const Graph graph = parse_graph({read_file(test::source_dir() / "tests/data/graphs/good/priorities.yaml")});
  const Process& process = graph.processes[0];
  EXPECT_EQ(process.executors[0].kind, ExecutorKind::kPriority);
  EXPECT_EQ(process.executors[1].kind, ExecutorKind::kLet);
  EXPECT_EQ(process.executors[1].period_ns, 10'000'000);
  const Node& plain = process.nodes[0];
  EXPECT_EQ(plain.subscriptions[0].priority, 0);
  EXPECT_EQ(plain.subscriptions[1].priority, 4);
  EXPECT_EQ(plain.timers[0].priority, -3);
  EXPECT_EQ(plain.timers[1].priority, 5);
  const Node& urgent = process.nodes[1];
  EXPECT_EQ(urgent.subscriptions[0].priority, 20);
  EXPECT_EQ(urgent.subscriptions[1].priority, 21);
  EXPECT_EQ(urgent.reactions[0].priority, 22);
  EXPECT_EQ(urgent.waitables[0].priority, 23);
  EXPECT_EQ(urgent.timers[0].priority, 20);
  EXPECT_EQ(urgent.timers[1].priority, 23) << "that of the waitable which it triggers";
  EXPECT_EQ(urgent.servers[0].priority, 20);
  EXPECT_EQ(process.nodes[2].clients[0].priority, 2);
  EXPECT_EQ(process.nodes[2].timers[0].priority, 2);
}

TEST(PerflabFormat, TriggersWaitablesByTimersOfTheirOwnAndByOthers) {
  const Graph graph = parse_graph({read_file(test::source_dir() / "tests/data/graphs/good/waitables.yaml")});
  const Node& node = graph.processes[0].nodes[0];
  ASSERT_EQ(node.waitables.size(), 6U);
  EXPECT_EQ(node.waitables[3].name, "graph changes_3");
  std::vector<std::pair<std::string, std::vector<std::size_t>>> timers;
  for (const Timer& timer : node.timers) timers.emplace_back(timer.name, timer.trigger);
  using Indexes = std::vector<std::size_t>;
  EXPECT_EQ(timers, (std::vector<std::pair<std::string, Indexes>>{
                        {"w", {}},  // the publisher's
                        {"w_trigger", {0}},
                        {"v_1", {4}},
                        {"v_2", {5}},
                        {"graph changes_1", {1, 3, 4}},
                        {"x", {0}},
                        {"timer of w", {0}}}));
  EXPECT_EQ(node.timers[3].phase, Phase::kStaggered);
  EXPECT_EQ(node.timers[5].overrun, Overrun::kSkip);
}

TEST(PerflabFormat, KeepsTimersApartThatGoByOneName) {
  const Graph graph =
      parse_graph({read_file(test::source_dir() / "tests/data/graphs/good/service_timers.yaml")});
  const Node& node = graph.processes[0].nodes[0];
  ASSERT_EQ(node.timers.size(), 3U);
  EXPECT_EQ(node.timers[0].name, "add") << "the publisher's";
  EXPECT_EQ(node.timers[1].name, "add_request") << "the client's";
  EXPECT_EQ(node.timers[2].name, "state");
  EXPECT_EQ(node.timers[2].request, (std::vector<std::size_t>{2, 1})) << "in the order of the file";
  EXPECT_EQ(node.clients[1].service, "/a/own");
  EXPECT_DOUBLE_EQ(node.clients[1].frequency_hz, 4.0);
}

struct WrittenReaction {
  std::string name;
  std::string text;
  ReactionKind kind;
};
class KindOfAReaction : public testing::TestWithParam<WrittenReaction> {};

TEST_P(KindOfAReaction, FollowsFromItsKeys) {
  const Graph graph = parse(
      "nodes:\n  - name: a\n    subscriptions: [{topic: x, type: stamped10b}, {topic: y, type: stamped10b}]\n"
      "    publishers: [{topic: z, type: stamped10b}, {topic: w, type: stamped10b, period: 1s}]\n"
      "    reactions: [{on: y, publish: z}, " +
      GetParam().text + "]\n");
  EXPECT_EQ(graph.processes[0].nodes[0].reactions[1].kind, GetParam().kind);
}

INSTANTIATE_TEST_SUITE_P(
    , KindOfAReaction,
    rows::of<WrittenReaction>({{"Transform", "{on: x, publish: z}", ReactionKind::kTransform},
                               {"Sink", "{on: x}", ReactionKind::kSink},
                               {"Cyclic", "{on: x, publish: z, period: 1s}", ReactionKind::kCyclic}}),
    rows::by_name);

struct WrittenFrequency {
  std::string text;
  Nanoseconds period_ns;
};
class FrequencyOfAPublisher : public testing::TestWithParam<WrittenFrequency> {};

TEST_P(FrequencyOfAPublisher, IsTheInverseOfItsPeriod) {
  const Graph graph = parse(
      "nodes: [{name: a, publishers: [{topic: x, type: stamped10b, frequency: " + GetParam().text + "}]}]");
  EXPECT_EQ(graph.processes[0].nodes[0].timers[0].period_ns, GetParam().period_ns);
}

INSTANTIATE_TEST_SUITE_P(, FrequencyOfAPublisher,
                         rows::of<WrittenFrequency>({{"64", 15'625'000},
                                                     {"64Hz", 15'625'000},
                                                     {"0.5", 2'000'000'000},
                                                     {"1kHz", 1'000'000}}),
                         rows::by_text);

TEST(PerflabFormat, CopiesShareTheirTopicsUnlessPrivate) {
  const Graph graph = parse(R"(
nodes:
  - name: a
    namespace: r
    number: 3
    subscriptions: [{topic: x, type: stamped10b}, {topic: ~/y, type: stamped10b}]
)");
  ASSERT_EQ(graph.processes[0].nodes.size(), 3U);
  EXPECT_EQ(graph.processes[0].nodes[2].name, "a_3");
  EXPECT_EQ(graph.processes[0].nodes[2].subscriptions[0].topic, "/r/x");
  EXPECT_EQ(graph.processes[0].nodes[2].subscriptions[1].topic, "/r/a_3/y");
}

TEST(PerflabFormat, TakesExecutorsFromTheNodesWhereNoneAreListed) {
  const Graph graph =
      parse("nodes: [{name: a, executor: 5}, {name: b, executor: 2}, {name: c, executor: 5}]");
  ASSERT_EQ(graph.processes[0].executors.size(), 2U);
  EXPECT_EQ(graph.processes[0].executors[0].id, 5);
  EXPECT_EQ(graph.processes[0].executors[1].id, 2);
}

TEST(PerflabFormat, ReadsJsonAndYamlAlike) {
  const Graph graph = parse(
      R"({"nodes": [{"name": "a", "publishers": [{"topic": "x", "type": "stamped10b", "period": "1ms"}]}]})");
  EXPECT_EQ(graph.processes[0].nodes[0].timers[0].period_ns, 1'000'000);
}

TEST(SeveralFiles, BecomeOneGraph) {
  const Input a{"a.yaml", "nodes: [{name: a, publishers: [{topic: x, type: stamped10b, period: 1s}]}]",
                "first"};
  const Input b{"b.yaml", "nodes: [{name: b, subscriptions: [{topic: x, type: stamped10b}]}]", "second"};
  const Graph graph = parse_graph({a, b});
  EXPECT_EQ(graph.name, "first+second");
  ASSERT_EQ(graph.processes.size(), 2U);
  EXPECT_EQ(graph.processes[1].name, "second");
  EXPECT_EQ(describe(graph).edges, 1U);
}

TEST(SeveralFiles, MayHoldAClientAndItsServerApart) {
  const Input a{"a.yaml", "nodes: [{name: a, clients: [{service: s, type: stamped10b, period: 1s}]}]", "a"};
  const Input b{"b.yaml", "nodes: [{name: b, servers: [{service: s, type: stamped10b}]}]", "b"};
  const Graph graph = parse_graph({a, b});
  ASSERT_EQ(describe(graph).services.size(), 1U);
  EXPECT_EQ(describe(graph).services[0].server, "/b");
  EXPECT_EQ(error_of([&] { parse_graph({a}); }), "a.yaml:1:29: the graph has no server of /s; add one");
  const Input c{"c.yaml", "nodes: [{name: c, servers: [{service: s, type: stamped10b}]}]", "c"};
  EXPECT_EQ(error_of([&] {
              parse_graph({a, b, c});
            }),
            "c.yaml:1:29: service /s has a server already, at b.yaml:1:29; a service has one");
}

TEST(SeveralFiles, GetUniqueProcessNames) {
  const auto input = [](const std::string& node) {
    return Input{"f.yaml", "nodes: [{name: " + node + "}]", "same"};
  };
  const Graph graph = parse_graph({input("a"), input("b"), input("c")});
  EXPECT_EQ(graph.processes[0].name, "same");
  EXPECT_EQ(graph.processes[1].name, "same_2");
  EXPECT_EQ(graph.processes[2].name, "same_3");
}

TEST(SeveralFiles, AreCheckedTogether) {
  const Input a{"a.yaml", "nodes: [{name: a, publishers: [{topic: x, type: stamped10b, period: 1s}]}]", "a"};
  const Input b{"b.yaml", "nodes: [{name: b, subscriptions: [{topic: x, type: stamped_int64}]}]", "b"};
  EXPECT_EQ(error_of([&] {
              parse_graph({a, b});
            }),
            "b.yaml:1:35: topic /x has type stamped_int64 here but stamped10b at a.yaml:1:32; one topic has "
            "one type");
  EXPECT_EQ(error_of([&] {
              parse_graph({a, a});
            }),
            "a.yaml:1:9: node /a is also at a.yaml:1:9; give each its own name or namespace");
}

TEST(SeveralFiles, HaveANameOfBoundedLength) {
  std::vector<Input> inputs;
  for (int i = 0; i < 50; ++i) {
    const std::string name = "a_rather_long_name_" + std::to_string(i);
    inputs.push_back({"f.yaml", "nodes: [{name: " + name + "}]", name});
  }
  EXPECT_EQ(parse_graph(inputs).name, "a_rather_long_name_0+49_more");
}

TEST(File, MustBeThereAndReadable) {
  EXPECT_EQ(error_of([] { read_file("no/such/file.yaml"); }),
            "no/such/file.yaml: does not exist; check the path");
  const std::string directory = test::source_dir() / "tests";
  EXPECT_EQ(error_of([&] { read_file(directory); }), directory + ": is a directory; name a graph file in it");
  EXPECT_NE(error_of([] { parse_graph({read_file("/dev/zero")}); }).find("16 MiB"), std::string::npos);
}

TEST(File, GivesTheGraphItsName) {
  const auto path = std::filesystem::temp_directory_path() / "perflab graph (1).yaml";
  std::ofstream(path) << "nodes: [{name: a}]\n";
  EXPECT_EQ(parse_graph({read_file(path)}).name, "perflab_graph__1_");
  std::filesystem::remove(path);
}

TEST(PerflabFormat, ErrorsStayOneLineWhateverTheFileIsCalled) {
  EXPECT_EQ(parse_error("nodes: 1", "a\nb"), "a\\x0ab:1:8: 'nodes' must be a list, but it is a number");
}

}  // namespace
}  // namespace perflab::graph
