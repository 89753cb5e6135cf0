// The rules of check() that a resolved graph, or a graph made by a program, can break; what a user's file can
// break is in tests/data/graphs/bad.
#include "graph/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "../rows.h"
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
    clients:
      - {service: add, type: stamped10b, period: 20ms}
    servers:
      - {service: add, type: stamped10b}
)");
}

Node& node(Graph& graph) { return graph.processes[0].nodes[0]; }

std::string here(const Item&) { return "here"; }

// How a graph is broken, and the error for the first broken rule, without its place.
struct Broken {
  const char* name;
  void (*change)(Graph&);
  std::string line;
};
class Check : public testing::TestWithParam<Broken> {};

TEST(CheckOfInstances, WantsAKeyThatTellsThemApart) {
  message::Formats messages({{"my_msgs/msg/Named", "string name # @key\n"},
                             {"my_msgs/msg/Small", "string name # @key\nuint8 number # @key\n"}});
  EXPECT_EQ(instances_problem(messages, "keyed_array1k", 4'000'000'000), "");
  EXPECT_EQ(instances_problem(messages, "my_msgs/msg/Named", 1), "");
  EXPECT_EQ(instances_problem(messages, "my_msgs/msg/Small", 256), "");
  EXPECT_EQ(instances_problem(messages, "my_msgs/msg/Small", 257),
            "instances is 257; the key of my_msgs/msg/Small can distinguish 256");
  for (const std::string type : {"my_msgs/msg/Named", "array1k"}) {
    EXPECT_EQ(instances_problem(messages, type, 2),
              type + " has no integer key to distinguish instances; use another type, like "
                     "keyed_array1k, or remove 'instances'");
  }
}

TEST(CheckOfKeys, WantsATypeThatHasSome) {
  Graph graph = valid_graph();
  graph.keyed = true;
  EXPECT_EQ(test::error_of([&] { check(graph, here); }),
            "here: the graph is keyed, but no type of its topics declares a key; remove 'keyed', or use a "
            "type with @key, like keyed_array1k");
}

TEST_P(Check, RefusesAGraphThatIsBroken) {
  Graph graph = valid_graph();
  GetParam().change(graph);
  EXPECT_EQ(test::error_of([&] { check(graph, here); }), "here: " + GetParam().line);
}

INSTANTIATE_TEST_SUITE_P(
    Indexes, Check,
    rows::of<Broken>({{"OfATimersPublisher", [](Graph& g) { node(g).timers[0].publish = {2}; },
                       "publishes with publisher 2 of 2"},
                      {"OfAReactionsPublisher", [](Graph& g) { node(g).reactions[0].publish = {7}; },
                       "publishes with publisher 7 of 2"},
                      {"OfAReactionsSubscription", [](Graph& g) { node(g).reactions[0].on = {1}; },
                       "reacts on subscription 1 of 1"},
                      {"OfAPublisherTwice", [](Graph& g) { node(g).timers[0].publish = {0, 0}; },
                       "publishes /x twice; name it once"},
                      {"OfATimersClient", [](Graph& g) { node(g).timers[1].request = {1}; },
                       "requests with client 1 of 1"},
                      {"OfAClientTwice", [](Graph& g) { node(g).timers[1].request = {0, 0}; },
                       "requests /add twice; name it once"},
                      {"OfAClientThatHasATimer", [](Graph& g) { node(g).timers[0].request = {0}; },
                       "/add is requested at here already; a client has one timer"},
                      {"OfNoClientThoughThereIsOne",
                       [](Graph& g) {
                         node(g).timers[1].request.clear();
                         node(g).timers[1].work_ns = 1;
                       },
                       "nothing requests /add; give it a period, or name it in `request` of a timer"}}),
    rows::by_name);
INSTANTIATE_TEST_SUITE_P(
    Services, Check,
    rows::of<Broken>(
        {{"WithoutServer", [](Graph& g) { node(g).servers.clear(); },
          "the graph has no server of /add; add one"},
         {"WithoutServerButOneOfAlmostThatName", [](Graph& g) { node(g).servers[0].service = "/ada"; },
          "the graph has no server of /add; did you mean /ada?"},
         {"WithoutASlash", [](Graph& g) { node(g).clients[0].service = "add"; },
          "service 'add' does not begin with '/'"},
         {"OfVariableSize", [](Graph& g) { node(g).servers[0].type = "stamped_vector"; },
          "type stamped_vector is not a service; use one, like stamped1kb"},
         {"WithWorkBelowZero", [](Graph& g) { node(g).servers[0].work_ns = -1; },
          "work is -1ns; it must be at least 0 and at most one day"},
         {"WithoutHistory", [](Graph& g) { node(g).clients[0].qos.depth = 0; },
          "depth is 0; it must be at least 1"},
         {"AtAnotherFrequency", [](Graph& g) { node(g).clients[0].frequency_hz = 49.0; },
          "frequency_hz of /add is 49; according to the timer that requests it, it is 50"}}),
    rows::by_name);
INSTANTIATE_TEST_SUITE_P(
    Loans, Check,
    rows::of<Broken>(
        {{"OfVariableSize", [](Graph& g) { node(g).publishers[1].pass_by = PassBy::kLoaned; },
          "stamped_vector cannot be loaned, because its size varies; use shared or unique, or another type"},
         {"OfASubscription", [](Graph& g) { node(g).subscriptions[0].pass_by = PassBy::kLoaned; },
          "a subscription cannot ask for loaned messages, only a publisher can loan them; use shared or "
          "unique"}}),
    rows::by_name);
INSTANTIATE_TEST_SUITE_P(Participants, Check,
                         rows::of<Broken>({{"BelowZero", [](Graph& g) { g.processes[0].participants = -1; },
                                            "participants is -1; it must be from 1 to 64"},
                                           {"None", [](Graph& g) { g.processes[0].participants = 0; },
                                            "participants is 0; it must be from 1 to 64"},
                                           {"TooMany", [](Graph& g) { g.processes[0].participants = 65; },
                                            "participants is 65; it must be from 1 to 64"}}),
                         rows::by_name);

void schedule(Graph& graph, const realtime::ThreadSettings& settings) {
  graph.processes[0].threads.executors = settings;
}
using realtime::Policy;
INSTANTIATE_TEST_SUITE_P(
    ThreadSettings, Check,
    rows::of<Broken>({{"FifoWithoutPriority", [](Graph& g) { schedule(g, {Policy::kFifo, 0, {}}); },
                       "policy FIFO needs a priority from 1 to 99"},
                      {"RoundRobinAbove99", [](Graph& g) { schedule(g, {Policy::kRoundRobin, 100, {}}); },
                       "policy RR needs a priority from 1 to 99"},
                      {"OtherWithPriority", [](Graph& g) { schedule(g, {Policy::kOther, 1, {}}); },
                       "policy OTHER has no priority; remove it, or use FIFO or RR"},
                      {"PriorityWithoutPolicy", [](Graph& g) { schedule(g, {std::nullopt, 1, {}}); },
                       "priority 1 has no policy; add policy FIFO or RR"},
                      {"PolicyOfNoName", [](Graph& g) { schedule(g, {static_cast<Policy>(9), 1, {}}); },
                       "the scheduling policy has an unknown value"},
                      {"CpusThatDescend", [](Graph& g) { schedule(g, {{}, 0, {1, 0}}); },
                       "cpus are not in ascending order; sort them"},
                      {"ACpuTwice", [](Graph& g) { schedule(g, {{}, 0, {1, 1}}); },
                       "CPU 1 is named twice; name it once"},
                      {"ACpuBelowZero", [](Graph& g) { schedule(g, {{}, 0, {-1, 1}}); },
                       "CPU -1 is out of range; CPUs are from 0 to 1023"},
                      {"ACpuAbove1023", [](Graph& g) { schedule(g, {{}, 0, {0, 1024}}); },
                       "CPU 1024 is out of range; CPUs are from 0 to 1023"},
                      {"OfTheMiddleware", [](Graph& g) { g.processes[0].threads.middleware.priority = 1; },
                       "priority 1 has no policy; add policy FIFO or RR"},
                      {"OfOneExecutor", [](Graph& g) { g.processes[0].executors[0].thread.priority = 1; },
                       "priority 1 has no policy; add policy FIFO or RR"}}),
    rows::by_name);

void give_threads(Graph& graph, int threads) {
  graph.processes[0].executors[0] = {0, ExecutorKind::kMultiThreaded, threads, {}};
}
INSTANTIATE_TEST_SUITE_P(
    Threads, Check,
    rows::of<Broken>(
        {{"OfASingleThreadedExecutor", [](Graph& g) { g.processes[0].executors[0].threads = 1; },
          "threads is for multi_threaded executors, but this one is single_threaded; remove it"},
         {"BelowZero", [](Graph& g) { give_threads(g, -1); }, "threads is -1; it must be from 1 to 64"},
         {"TooMany", [](Graph& g) { give_threads(g, 65); }, "threads is 65; it must be from 1 to 64"}}),
    rows::by_name);
INSTANTIATE_TEST_SUITE_P(
    Numbers, Check,
    rows::of<Broken>(
        {{"APeriodOfZero", [](Graph& g) { node(g).timers[0].period_ns = 0; },
          "period is 0ns; it must be at least 1us and at most one day"},
         {"APeriodBelowZero", [](Graph& g) { node(g).timers[0].period_ns = -1; },
          "period is -1ns; it must be at least 1us and at most one day"},
         {"WorkBelowZero", [](Graph& g) { node(g).timers[0].work_ns = -1; },
          "work is -1ns; it must be at least 0 and at most one day"},
         {"WorkWithoutEnd",
          [](Graph& g) { node(g).reactions[0].work_ns = std::numeric_limits<Nanoseconds>::max(); },
          "work is 9223372036854775807ns; it must be at least 0 and at most one day"},
         {"ADepthOfZero", [](Graph& g) { node(g).publishers[0].qos.depth = 0; },
          "depth is 0; it must be at least 1"},
         {"ADeadlineOfZero", [](Graph& g) { node(g).publishers[0].qos.deadline_ns = 0; },
          "deadline is 0ns; it must be more than 0 and at most one day"},
         {"ALifespanOfASubscription", [](Graph& g) { node(g).subscriptions[0].qos.lifespan_ns = 5; },
          "lifespan is a policy of publishers; remove it from the subscription"},
         {"ASizeThatIsNotTheTypes", [](Graph& g) { node(g).publishers[0].size_bytes = 11; },
          "size 11 does not fit type stamped10b, which always has 10 bytes; remove it"},
         {"AFrequencyThatIsNotTheTimers", [](Graph& g) { node(g).publishers[0].frequency_hz = 99.0; },
          "frequency_hz of /x is 99; according to what publishes it, it is 100"},
         {"AFrequencyOfAReaction", [](Graph& g) { node(g).publishers[1].frequency_hz = 1.0; },
          "frequency_hz of /y is 1; according to what publishes it, it is 0"},
         {"AFrequencyThatIsNoNumber", [](Graph& g) { node(g).publishers[0].frequency_hz = std::nan(""); },
          "frequency_hz of /x is nan; according to what publishes it, it is 100"}}),
    rows::by_name);
INSTANTIATE_TEST_SUITE_P(
    Content, Check,
    rows::of<Broken>({{"NoProcesses", [](Graph& g) { g.processes.clear(); },
                       "the graph has no processes; give it at least one"},
                      {"NoNodes", [](Graph& g) { g.processes[0].nodes.clear(); },
                       "process g has no nodes; give it at least one"},
                      {"NoExecutors", [](Graph& g) { g.processes[0].executors.clear(); },
                       "executor 0 is not an executor of process g"},
                      {"AnExecutorBelowZero", [](Graph& g) { g.processes[0].executors[0].id = -1; },
                       "executor id -1 is negative"},
                      {"AReactionOfNoKind",
                       [](Graph& g) { node(g).reactions[0].kind = static_cast<ReactionKind>(99); },
                       "the reaction has an unknown kind"},
                      {"AnExecutorOfNoKind",
                       [](Graph& g) { g.processes[0].executors[0].kind = static_cast<ExecutorKind>(99); },
                       "the executor has an unknown kind"}}),
    rows::by_name);

// Two waitables, each with its own timer and a common one.
void add_waitables(Graph& graph) {
  node(graph).waitables = {{.name = "v"}, {.name = "w"}};
  node(graph).timers[0].trigger = {0, 1};
  node(graph).timers[1].trigger = {0};
}
INSTANTIATE_TEST_SUITE_P(Waitables, Check,
                         rows::of<Broken>({{"ATriggerOfNone",
                                            [](Graph& g) {
                                              add_waitables(g);
                                              node(g).timers[0].trigger = {2};
                                            },
                                            "triggers waitable 2 of 2"},
                                           {"ATriggerTwice",
                                            [](Graph& g) {
                                              add_waitables(g);
                                              node(g).timers[0].trigger = {1, 1};
                                            },
                                            "triggers 'w' twice; name it once"},
                                           {"ANameTwice",
                                            [](Graph& g) {
                                              add_waitables(g);
                                              node(g).waitables[1].name = "v";
                                            },
                                            "the node has a waitable 'v' already; give each its own name"},
                                           {"WithoutName",
                                            [](Graph& g) {
                                              add_waitables(g);
                                              node(g).waitables[1].name.clear();
                                            },
                                            "waitable name must have 1 to 255 characters"},
                                           {"WithWorkBelowZero",
                                            [](Graph& g) {
                                              add_waitables(g);
                                              node(g).waitables[1].work_ns = -1;
                                            },
                                            "work is -1ns; it must be at least 0 and at most one day"}}),
                         rows::by_name);

TEST(CheckOfNames, SaysWhichIsWrong) {
  Graph graph = valid_graph();
  graph.name = "../x";
  EXPECT_EQ(test::error_of([&] { check(graph, here); }).substr(0, 18), "here: name '../x' ");
}

struct Whole {
  const char* name;
  void (*change)(Graph&);
};
class GoodGraph : public testing::TestWithParam<Whole> {};

TEST_P(GoodGraph, IsAccepted) {
  Graph graph = valid_graph();
  GetParam().change(graph);
  EXPECT_NO_THROW(check(graph, here));
}

INSTANTIATE_TEST_SUITE_P(, GoodGraph,
                         rows::of<Whole>({{"AsItIs", [](Graph&) {}},
                                          {"WithAServerWithoutClients",
                                           [](Graph& g) {
                                             node(g).clients.clear();
                                             node(g).timers.pop_back();
                                           }},
                                          {"WithAWaitableThatTwoTimersTrigger", add_waitables}}),
                         rows::by_name);

// A policy, and changes that make two ends incompatible.
struct Policies {
  const char* name;
  void (*weaken)(perflab_qos&);      // what a strict publisher offers
  void (*strengthen)(perflab_qos&);  // what a client or server has by default
};
class Compatibility : public testing::TestWithParam<Policies> {};

perflab_qos strict() {
  perflab_qos qos = default_qos();
  qos.durability = PERFLAB_TRANSIENT_LOCAL;
  qos.deadline_ns = 10;
  qos.liveliness = PERFLAB_MANUAL_BY_TOPIC;
  qos.lease_duration_ns = 10;
  return qos;
}

std::string policy_of(const std::string& problem) { return problem.substr(0, problem.find(' ')); }

TEST_P(Compatibility, FollowsRequestAgainstOffer) {
  perflab_qos offered = strict();
  GetParam().weaken(offered);
  EXPECT_EQ(policy_of(compatibility_problem(offered, strict())), GetParam().name);
}

TEST_P(Compatibility, OfServicesHoldsForRequestsAndReplies) {
  perflab_qos changed = default_qos();
  GetParam().strengthen(changed);
  EXPECT_EQ(policy_of(service_compatibility_problem(changed, default_qos())), GetParam().name);
  EXPECT_EQ(policy_of(service_compatibility_problem(default_qos(), changed)), GetParam().name);
  EXPECT_EQ(service_compatibility_problem(changed, changed), "");
}

INSTANTIATE_TEST_SUITE_P(
    , Compatibility,
    rows::of<Policies>({{"reliability", [](perflab_qos& qos) { qos.reliability = PERFLAB_BEST_EFFORT; },
                         [](perflab_qos& qos) { qos.reliability = PERFLAB_BEST_EFFORT; }},
                        {"durability", [](perflab_qos& qos) { qos.durability = PERFLAB_VOLATILE; },
                         [](perflab_qos& qos) { qos.durability = PERFLAB_TRANSIENT_LOCAL; }},
                        {"deadline", [](perflab_qos& qos) { qos.deadline_ns = 11; },
                         [](perflab_qos& qos) { qos.deadline_ns = 10; }},
                        {"liveliness", [](perflab_qos& qos) { qos.liveliness = PERFLAB_AUTOMATIC; },
                         [](perflab_qos& qos) { qos.liveliness = PERFLAB_MANUAL_BY_TOPIC; }},
                        {"lease_duration",
                         [](perflab_qos& qos) { qos.lease_duration_ns = PERFLAB_DURATION_INFINITE; },
                         [](perflab_qos& qos) { qos.lease_duration_ns = 10; }}}),
    rows::by_name);

TEST(NoIncompatibility, OfWhatOffersMoreNorOfHistoryAndLifespan) {
  EXPECT_EQ(compatibility_problem(strict(), strict()), "");
  EXPECT_EQ(compatibility_problem(strict(), default_qos()), "") << "more may be offered than is asked for";
  perflab_qos offered = strict();
  offered.history = PERFLAB_KEEP_ALL;
  offered.lifespan_ns = 1;
  EXPECT_EQ(compatibility_problem(offered, strict()), "");
  perflab_qos unmatched = default_qos();
  unmatched.history = PERFLAB_KEEP_ALL;
  unmatched.lifespan_ns = 1;
  EXPECT_EQ(service_compatibility_problem(unmatched, default_qos()), "");
}

TEST(Incompatibility, OfServicesTellsWhichEndHasWhat) {
  perflab_qos server = default_qos();
  server.deadline_ns = 20'000'000;
  EXPECT_EQ(service_compatibility_problem(server, default_qos()),
            "deadline is 20ms there and infinite here; make both the same, for requests and replies");
  EXPECT_EQ(service_compatibility_problem(default_qos(), server),
            "deadline is infinite there and 20ms here; make both the same, for requests and replies");
}

}  // namespace
}  // namespace perflab::graph
