#include "graph/resolved.h"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "../rows.h"
#include "support.h"

namespace perflab::graph {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr const char* kGraph = R"(
name: documented
executors:
  - {id: 0, kind: multi_threaded, threads: 4, thread: {cpus: 0-1}}
threads:
  executors: {policy: RR, priority: 98, cpus: [1]}
participants: 3
lock_memory: true
nodes:
  - name: hamburg
    publishers:
      - {topic: parana, type: stamped3_float32, period: 10ms, pass_by: shared}
      - {topic: fast, type: stamped_vector, size: 5, qos: {history: keep_all, reliability: best_effort,
         durability: transient_local, deadline: 1ms, lifespan: 2ms, liveliness: manual_by_topic, lease_duration: 3ms}}
    subscriptions:
      - {topic: nile, type: stamped4_int32}
    clients:
      - {service: sea/depth, type: stamped10b}
    servers:
      - {service: sea/depth, type: stamped10b, work: 2us}
    timers:
      - {name: sound, period: 20ms, request: sea/depth}
    reactions:
      - {kind: cyclic, on: nile, publish: fast, period: 20ms, work: 1us}
)";

// A change to a resolved graph, and the error with which it is refused.
struct Wrong {
  std::string name;
  const char* pointer;
  json value;
  std::string line;
};

TEST(Resolved, IsTheDocumentedJson) {
  const ordered_json expected = ordered_json::parse(R"({"schema": 1, "name": "documented", "processes": [
  {"name": "documented",
   "executors": [{"id": 0, "kind": "multi_threaded", "threads": 4,
                  "thread": {"policy": null, "priority": 0, "cpus": [0, 1]}}],
   "participants": 3,
   "threads": {"executors": {"policy": "RR", "priority": 98, "cpus": [1]}, "middleware": null},
   "lock_memory": true,
   "nodes": [
    {"name": "hamburg", "namespace": "/", "executor": 0,
     "publishers":    [{"topic": "/parana", "type": "stamped3_float32", "size_bytes": 12, "frequency_hz": 100.0,
                        "pass_by": "shared", "qos": {"history": "keep_last", "depth": 10, "reliability": "reliable",
                        "durability": "volatile", "deadline_ns": null, "lifespan_ns": null,
                        "liveliness": "automatic", "lease_duration_ns": null}},
                       {"topic": "/fast", "type": "stamped_vector", "size_bytes": 5, "frequency_hz": 0.0,
                        "pass_by": null, "qos": {"history": "keep_all", "depth": null, "reliability": "best_effort",
                        "durability": "transient_local", "deadline_ns": 1000000, "lifespan_ns": 2000000,
                        "liveliness": "manual_by_topic", "lease_duration_ns": 3000000}}],
     "subscriptions": [{"topic": "/nile", "type": "stamped4_int32", "pass_by": null,
                        "qos": {"history": "keep_last", "depth": 10, "reliability": "reliable",
                        "durability": "volatile", "deadline_ns": null, "lifespan_ns": null,
                        "liveliness": "automatic", "lease_duration_ns": null}}],
     "clients":       [{"service": "/sea/depth", "type": "stamped10b", "frequency_hz": 50.0,
                        "qos": {"history": "keep_last", "depth": 10, "reliability": "reliable",
                        "durability": "volatile", "deadline_ns": null, "lifespan_ns": null,
                        "liveliness": "automatic", "lease_duration_ns": null}}],
     "servers":       [{"service": "/sea/depth", "type": "stamped10b",
                        "qos": {"history": "keep_last", "depth": 10, "reliability": "reliable",
                        "durability": "volatile", "deadline_ns": null, "lifespan_ns": null,
                        "liveliness": "automatic", "lease_duration_ns": null}, "work_ns": 2000}],
     "timers":        [{"name": "parana", "period_ns": 10000000, "publish": [0], "request": [], "work_ns": 0,
                        "overrun": "catch_up", "phase": "aligned"},
                       {"name": "sound", "period_ns": 20000000, "publish": [], "request": [0], "work_ns": 0,
                        "overrun": "catch_up", "phase": "aligned"}],
     "reactions":     [{"kind": "cyclic", "on": [0], "publish": [1], "work_ns": 1000, "period_ns": 20000000,
                        "phase": "aligned"}]}]}]})");
  EXPECT_EQ(graph_to_json(test::parse(kGraph)).dump(2), expected.dump(2));
}

constexpr const char* kWaitables =
    "nodes: [{name: a, waitables: [{name: idle}, {name: w, period: 10ms, work: 5us}]}, {name: b}]";

// A graph without waitables does not have the key.
TEST(Resolved, HasWaitablesWhereThereAreSome) {
  const ordered_json graph = graph_to_json(test::parse(kWaitables));
  const ordered_json& node = graph["processes"][0]["nodes"][0];
  EXPECT_EQ(node["waitables"],
            ordered_json::parse(R"([{"name": "idle", "work_ns": 0}, {"name": "w", "work_ns": 5000}])"));
  EXPECT_EQ(node["timers"],
            ordered_json::parse(R"([{"name": "w", "period_ns": 10000000, "publish": [], "request": [],
                                     "trigger": [1], "work_ns": 0, "overrun": "catch_up", "phase": "aligned"}])"));
  EXPECT_FALSE(graph["processes"][0]["nodes"][1].contains("waitables"));
  EXPECT_EQ(graph_to_json(graph_from_json(json::parse(graph.dump()))).dump(), graph.dump());
}

class WrongWaitable : public testing::TestWithParam<Wrong> {};

TEST_P(WrongWaitable, IsRefusedWithThePathToIt) {
  json graph = json::parse(graph_to_json(test::parse(kWaitables)).dump());
  graph[json::json_pointer(GetParam().pointer)] = GetParam().value;
  EXPECT_EQ(test::error_of([&] { graph_from_json(graph); }), GetParam().line);
}

INSTANTIATE_TEST_SUITE_P(
    , WrongWaitable,
    rows::of<Wrong>(
        {{"ATriggerOfNone", "/processes/0/nodes/0/timers/0/trigger/0", 2,
          "graph.processes[0].nodes[0].timers[0]: triggers waitable 2 of 2"},
         {"ANameTwice", "/processes/0/nodes/0/waitables/1/name", "idle",
          "graph.processes[0].nodes[0].waitables[1]: the node has a waitable 'idle' already; give each "
          "its own name"},
         {"NoList", "/processes/0/nodes/0/waitables", json::object(),
          "graph.processes[0].nodes[0].waitables: must be a list"}}),
    rows::by_name);

TEST(Resolved, TimersFromBeforeThereWerePhasesAreAligned) {
  json graph = json::parse(graph_to_json(test::parse(kGraph)).dump());
  json& node = graph["processes"][0]["nodes"][0];
  for (json& timer : node["timers"]) timer["phase"] = "random";
  EXPECT_EQ(graph_from_json(graph).processes[0].nodes[0].timers[0].phase, Phase::kRandom);
  for (json& timer : node["timers"]) timer.erase("phase");
  node["reactions"][0].erase("phase");
  EXPECT_EQ(graph_from_json(graph).processes[0].nodes[0].timers[0].phase, Phase::kAligned);
  EXPECT_EQ(graph_from_json(graph).processes[0].nodes[0].reactions[0].phase, Phase::kAligned);
}

TEST(Resolved, ComesBackAsItWas) {
  const std::string text = graph_to_json(test::parse(kGraph)).dump();
  EXPECT_EQ(graph_to_json(read_resolved(text)).dump(), text);
}

TEST(Resolved, SaysThatTopicsHaveKeysWhereTheyDo) {
  constexpr const char* kKeyed = "keyed: true\nnodes: [{name: a, subscriptions: [{topic: x, type: keyed_array1k}]}]\n";
  const ordered_json graph = graph_to_json(test::parse(kKeyed));
  EXPECT_EQ(graph["keyed"], true);
  EXPECT_EQ(graph_to_json(graph_from_json(json::parse(graph.dump()))).dump(), graph.dump());
  EXPECT_FALSE(graph_to_json(test::parse(kGraph)).contains("keyed"));
  const ordered_json several = graph_to_json(
      test::parse("nodes: [{name: a, publishers: [{topic: x, type: keyed_array1k, period: 1s, instances: 5}]}]\n"));
  EXPECT_EQ(several["processes"][0]["nodes"][0]["publishers"][0]["instances"], 5);
  EXPECT_EQ(graph_to_json(graph_from_json(json::parse(several.dump()))).dump(), several.dump());
}

TEST(Resolved, IgnoresKeysThatItDoesNotKnow) {
  json graph = json::parse(graph_to_json(test::parse(kGraph)).dump());
  graph["later"] = 1;
  graph["processes"][0]["nodes"][0]["publishers"][0]["later"] = "x";
  EXPECT_NO_THROW(graph_from_json(graph));
}

TEST(Resolved, TakesAbsentQosPoliciesAsTheDefaultOfRos2) {
  json graph = json::parse(graph_to_json(test::parse(kGraph)).dump());
  graph["processes"][0]["nodes"][0]["subscriptions"][0]["qos"] = json::object();
  EXPECT_EQ(graph_to_json(graph_from_json(graph)), graph_to_json(test::parse(kGraph)));
}

// Files from before services and thread settings existed.
TEST(Resolved, TakesAbsentKeysOfLaterVersionsAsTheirDefaults) {
  const char* text = "nodes: [{name: a, publishers: [{topic: x, type: stamped10b, period: 1s}]}]";
  const ordered_json expected = graph_to_json(test::parse(text));
  json graph = json::parse(expected.dump());
  json& process = graph["processes"][0];
  EXPECT_EQ(process.erase("participants") + process.erase("threads") + process.erase("lock_memory"), 3U);
  EXPECT_EQ(process["executors"][0].erase("threads") + process["executors"][0].erase("thread"), 2U);
  json& node = process["nodes"][0];
  EXPECT_EQ(node.erase("clients") + node.erase("servers") + node["timers"][0].erase("request"), 3U);
  EXPECT_EQ(graph_to_json(graph_from_json(graph)).dump(), expected.dump());
}

class WrongValue : public testing::TestWithParam<Wrong> {};

TEST_P(WrongValue, IsRefusedWithThePathToIt) {
  json graph = json::parse(graph_to_json(test::parse(kGraph)).dump());
  graph[json::json_pointer(GetParam().pointer)] = GetParam().value;
  EXPECT_EQ(test::error_of([&] { graph_from_json(graph); }), GetParam().line);
}

INSTANTIATE_TEST_SUITE_P(
    , WrongValue,
    rows::of<Wrong>(
        {{"AnotherSchema", "/schema", 2, "graph.schema: must be 1 for this version"},
         {"ANameThatIsNoText", "/name", 5, "graph.name: must be a string"},
         {"ProcessesThatAreNoList", "/processes", json::object(), "graph.processes: must be a list"},
         {"AProcessThatIsNoObject", "/processes/0", 1, "graph.processes[0]: must be an object"},
         {"AnExecutorThatIsNotWhole", "/processes/0/nodes/0/executor", 1.5,
          "graph.processes[0].nodes[0].executor: must be a whole number"},
         {"AnExecutorThatIsNotThere", "/processes/0/nodes/0/executor", 3,
          "graph.processes[0].nodes[0]: executor 3 is not an executor of process documented"},
         {"ASizeBeyond32Bits", "/processes/0/nodes/0/publishers/0/size_bytes", 4294967296,
          "graph.processes[0].nodes[0].publishers[0].size_bytes: must be from 0 to 4294967295"},
         {"ASizeThatItsLengthDoesNotYield", "/processes/0/nodes/0/publishers/1/length", 7,
          "graph.processes[0].nodes[0].publishers[1]: size_bytes is 5; messages of stamped_vector with a length of 7 "
          "have 7 bytes"},
         {"TheLargestSize", "/processes/0/nodes/0/publishers/0/size_bytes",
          std::numeric_limits<std::uint64_t>::max(),
          "graph.processes[0].nodes[0].publishers[0].size_bytes: must be from 0 to 4294967295"},
         {"AHistoryOfNoName", "/processes/0/nodes/0/publishers/0/qos/history", "keep_some",
          "graph.processes[0].nodes[0].publishers[0].qos.history: 'keep_some' is unknown; use keep_last or "
          "keep_all"},
         {"NoQos", "/processes/0/nodes/0/publishers/0/qos", nullptr,
          "graph.processes[0].nodes[0].publishers[0].qos: must be an object"},
         {"APeriodTooShort", "/processes/0/nodes/0/timers/0/period_ns", 999,
          "graph.processes[0].nodes[0].timers[0].period_ns: must be from 1000 to 86400000000000"},
         {"APublisherThatIsNotThere", "/processes/0/nodes/0/timers/0/publish/0", 9,
          "graph.processes[0].nodes[0].timers[0]: publishes with publisher 9 of 2"},
         {"APublisherBelowZero", "/processes/0/nodes/0/timers/0/publish/0", -1,
          "graph.processes[0].nodes[0].timers[0].publish[0]: must be from 0 to 2147483647"},
         {"ACyclicReactionWithoutPeriod", "/processes/0/nodes/0/reactions/0/period_ns", nullptr,
          "graph.processes[0].nodes[0].reactions[0]: period is 0ns; it must be at least 1us and at most one "
          "day"},
         {"AClientThatIsNotThere", "/processes/0/nodes/0/timers/1/request/0", 1,
          "graph.processes[0].nodes[0].timers[1]: requests with client 1 of 1"},
         {"AClientOfAnotherType", "/processes/0/nodes/0/clients/0/type", "stamped_int64",
          "graph.processes[0].nodes[0].clients[0]: service /sea/depth has type stamped_int64 here but "
          "stamped10b at graph.processes[0].nodes[0].servers[0]; one service has one type"},
         {"WorkBelowZero", "/processes/0/nodes/0/servers/0/work_ns", -1,
          "graph.processes[0].nodes[0].servers[0].work_ns: must be from 0 to 86400000000000"},
         {"NoParticipants", "/processes/0/participants", 0,
          "graph.processes[0].participants: must be from 1 to 64"},
         {"TooManyParticipants", "/processes/0/participants", 65,
          "graph.processes[0].participants: must be from 1 to 64"},
         {"LockMemoryThatIsNoFlag", "/processes/0/lock_memory", "yes",
          "graph.processes[0].lock_memory: must be true or false"},
         {"ThreadsWithoutPolicy", "/processes/0/threads/middleware", json::object(),
          "graph.processes[0].threads.middleware: lacks the key 'policy'"},
         {"APolicyOfNoName", "/processes/0/threads/executors/policy", "rr",
          "graph.processes[0].threads.executors.policy: 'rr' is unknown; use OTHER, FIFO, RR or DEADLINE"},
         {"APolicyWithoutPriority", "/processes/0/threads/executors/priority", 0,
          "graph.processes[0]: policy RR needs a priority from 1 to 99"},
         {"ACpuBeyondTheLast", "/processes/0/threads/executors/cpus/0", 1024,
          "graph.processes[0].threads.executors.cpus[0]: must be from 0 to 1023"},
         {"ACpuTwice", "/processes/0/executors/0/thread/cpus/0", 1,
          "graph.processes[0].executors[0]: CPU 1 is named twice; name it once"},
         {"NoThreads", "/processes/0/executors/0/threads", 0,
          "graph.processes[0].executors[0].threads: must be from 1 to 64"},
         {"ATypeOfNoName", "/processes/0/nodes/0/subscriptions/0/type", "stamped4_int23",
          "graph.processes[0].nodes[0].subscriptions[0]: type 'stamped4_int23' is unknown; did you mean "
          "stamped4_int32?"}}),
    rows::by_name);

TEST(Resolved, RefusesMissingKeys) {
  json graph = json::parse(graph_to_json(test::parse(kGraph)).dump());
  graph["processes"][0]["nodes"][0].erase("timers");
  EXPECT_EQ(test::error_of([&] { graph_from_json(graph); }),
            "graph.processes[0].nodes[0]: lacks the key 'timers'");
}

TEST(Resolved, GivesThreadSettingsOnTheirOwn) {
  const auto read = [](const char* text) {
    return thread_settings_from_json(json::parse(text), "threads.middleware");
  };
  EXPECT_TRUE(read("null").empty());
  EXPECT_EQ(read(R"({"policy": "FIFO", "priority": 7, "cpus": [0, 3]})"),
            (realtime::ThreadSettings{realtime::Policy::kFifo, 7, {0, 3}}));
  EXPECT_EQ(test::error_of([&] { read(R"({"policy": "FIFO", "priority": 0, "cpus": []})"); }),
            "threads.middleware: policy FIFO needs a priority from 1 to 99");
  EXPECT_EQ(test::error_of([&] { read(R"({"policy": "FIFO", "cpus": []})"); }),
            "threads.middleware: lacks the key 'priority'");
  EXPECT_EQ(test::error_of([&] { read("[]"); }), "threads.middleware: must be an object");
}

TEST(Resolved, ANodeMayBelongToACondition) {
  json graph = json::parse(graph_to_json(test::parse(kGraph)).dump());
  json& node = graph["processes"][0]["nodes"][0];
  EXPECT_FALSE(node.contains("condition"));
  node["condition"] = nullptr;
  EXPECT_TRUE(graph_from_json(graph).processes[0].nodes[0].condition.empty());
  node["condition"] = "message_flood";
  for (json& timer : node["timers"]) timer["overrun"] = "skip";
  const Graph read = graph_from_json(graph);
  EXPECT_EQ(read.processes[0].nodes[0].condition, "message_flood");
  EXPECT_EQ(json::parse(graph_to_json(read).dump()), graph);
}

TEST(Resolved, RefusesAConditionWithoutLabelOrThatCatchesUp) {
  json graph = json::parse(graph_to_json(test::parse(kGraph)).dump());
  json& node = graph["processes"][0]["nodes"][0];
  const auto error = [&](const json& label, const char* overrun) {
    node["condition"] = label;
    for (json& timer : node["timers"]) timer["overrun"] = overrun;
    return test::error_of([&] { graph_from_json(graph); });
  };
  EXPECT_EQ(error("", "skip"),
            "graph.processes[0].nodes[0].condition: must be the label of a condition, or null");
  EXPECT_EQ(error(1, "skip"), "graph.processes[0].nodes[0].condition: must be a string");
  EXPECT_EQ(error("message_flood", "catch_up"),
            "graph.processes[0].nodes[0].timers[0].overrun: must be skip in a node of a condition");
}

TEST(Resolved, MessagesMayBeAcknowledgedAndTimersThrottled) {
  json graph = json::parse(graph_to_json(test::parse(kGraph)).dump());
  json& node = graph["processes"][0]["nodes"][0];
  EXPECT_FALSE(node["subscriptions"][0].contains("acknowledge"));
  EXPECT_FALSE(node["timers"][0].contains("throttle"));
  node["subscriptions"][0]["acknowledge"] = {
      {{"from", "/sender"}, {"node", "/hamburg"}, {"topic", "/acknowledgement"}, {"every", 10}}};
  json& throttle = node["timers"][0]["throttle"];
  throttle = {{"sources", {{{"node", "/hamburg"}, {"topic", "/nile"}, {"every", 10}, {"counted", true}}}},
              {"target_ns", 20'000'000}, {"interval_ns", 100'000'000}, {"accepted", 0.9},
              {"decrease", 0.5},         {"increase", 0.05},           {"lowest", 0.01}};
  EXPECT_EQ(json::parse(graph_to_json(graph_from_json(graph)).dump()), graph);
  throttle["decrease"] = 0;
  EXPECT_EQ(test::error_of([&] { graph_from_json(graph); }),
            "graph.processes[0].nodes[0].timers[0].throttle.decrease: must be more than 0 and at most 1");
}

class NoJson : public testing::TestWithParam<const char*> {};

TEST_P(NoJson, IsRefusedInOneLine) {
  const std::string line = test::error_of([] { read_resolved(GetParam()); });
  EXPECT_EQ(line.find("graph: is not valid JSON: "), 0U) << line;
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(, NoJson, testing::Values("", "{", "nodes: []", "[1,]", "\xff"), rows::by_itself);

TEST(Resolved, RefusesJsonThatIsNoObject) {
  EXPECT_EQ(test::error_of([] { read_resolved("[]"); }), "graph: must be an object");
}

}  // namespace
}  // namespace perflab::graph
