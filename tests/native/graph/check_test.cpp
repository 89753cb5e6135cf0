// The rules of check() that a resolved graph, or a graph made by a program, can break; what a user's file can
// break is in tests/data/graphs/bad.
#include "graph/check.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

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

TEST(Check, RefusesRequestsThatNameNothing) {
  EXPECT_EQ(problem_of([](Graph& g) { node(g).timers[1].request = {1}; }), "requests with client 1 of 1");
  EXPECT_EQ(problem_of([](Graph& g) {
              node(g).timers[1].request = {0, 0};
            }),
            "requests /add twice; name it once");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).timers[0].request = {0}; }),
            "/add is requested at here already; a client has one timer");
  EXPECT_EQ(problem_of([](Graph& g) {
              node(g).timers[1].request.clear();
              node(g).timers[1].work_ns = 1;
            }),
            "nothing requests /add; give it a period, or name it in `request` of a timer");
}

TEST(Check, RefusesServicesThatCannotWork) {
  EXPECT_EQ(problem_of([](Graph& g) { node(g).servers.clear(); }),
            "the graph has no server of /add; add one");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).servers[0].service = "/ada"; }),
            "the graph has no server of /add; did you mean /ada?");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).clients[0].service = "add"; }),
            "service 'add' does not begin with '/'");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).servers[0].type = "stamped_vector"; }),
            "type stamped_vector has no fixed size, which services need; use one that has, like stamped1kb");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).servers[0].work_ns = -1; }),
            "work is -1ns; it must be at least 0 and at most one day");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).clients[0].qos.depth = 0; }),
            "depth is 0; it must be at least 1");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).clients[0].frequency_hz = 49.0; }),
            "frequency_hz of /add is 49; by the timer that requests it, it is 50");
}

TEST(Check, AcceptsAServerWithoutClients) {
  Graph graph = valid_graph();
  node(graph).clients.clear();
  node(graph).timers.pop_back();
  EXPECT_NO_THROW(check(graph, [](const Item&) { return std::string(); }));
}

TEST(Check, RefusesWaitablesAndTriggersThatCannotBe) {
  const auto with_waitables = [](const std::function<void(Node&)>& change) {
    return problem_of([&](Graph& g) {
      node(g).waitables = {{.name = "v"}, {.name = "w"}};
      node(g).timers[0].trigger = {0, 1};
      node(g).timers[1].trigger = {0};
      EXPECT_NO_THROW(check(g, [](const Item&) { return std::string(); })) << "two timers may trigger one";
      change(node(g));
    });
  };
  EXPECT_EQ(with_waitables([](Node& n) { n.timers[0].trigger = {2}; }), "triggers waitable 2 of 2");
  EXPECT_EQ(with_waitables([](Node& n) {
              n.timers[0].trigger = {1, 1};
            }),
            "triggers 'w' twice; name it once");
  EXPECT_EQ(with_waitables([](Node& n) { n.waitables[1].name = "v"; }),
            "the node has a waitable 'v' already; give each its own name");
  EXPECT_EQ(with_waitables([](Node& n) { n.waitables[1].name.clear(); }),
            "waitable name must have 1 to 255 characters");
  EXPECT_EQ(with_waitables([](Node& n) { n.waitables[1].work_ns = -1; }),
            "work is -1ns; it must be at least 0 and at most one day");
}

TEST(Check, RefusesLoansThatCannotBe) {
  EXPECT_EQ(problem_of([](Graph& g) { node(g).publishers[1].pass_by = PassBy::kLoaned; }),
            "a stamped_vector cannot be loaned, it has no fixed size; use shared or unique, or another type");
  EXPECT_EQ(problem_of([](Graph& g) { node(g).subscriptions[0].pass_by = PassBy::kLoaned; }),
            "a subscription cannot ask for loaned messages, its publisher lends them; use shared or unique");
}

TEST(Check, RefusesNumbersOfParticipantsOutOfRange) {
  for (const int count : {-1, 0, 65}) {
    EXPECT_EQ(problem_of([&](Graph& g) { g.processes[0].participants = count; }),
              "participants is " + std::to_string(count) + "; it must be from 1 to 64");
  }
}

TEST(Check, RefusesThreadSettingsThatDoNotGoTogether) {
  using realtime::Policy;
  const auto executors = [](realtime::ThreadSettings settings) {
    return problem_of([&](Graph& g) { g.processes[0].threads.executors = settings; });
  };
  EXPECT_EQ(executors({Policy::kFifo, 0, {}}), "policy FIFO needs a priority from 1 to 99");
  EXPECT_EQ(executors({Policy::kRoundRobin, 100, {}}), "policy RR needs a priority from 1 to 99");
  EXPECT_EQ(executors({Policy::kOther, 1, {}}), "policy OTHER has no priority; remove it, or use FIFO or RR");
  EXPECT_EQ(executors({std::nullopt, 1, {}}), "priority 1 has no policy; add policy FIFO or RR");
  EXPECT_EQ(executors({static_cast<Policy>(9), 1, {}}), "the scheduling policy has no value of this version");
  EXPECT_EQ(executors({{}, 0, {1, 0}}), "cpus are not in ascending order; sort them");
  EXPECT_EQ(executors({{}, 0, {1, 1}}), "CPU 1 is named twice; name it once");
  EXPECT_EQ(executors({{}, 0, {-1, 1}}), "CPU -1 is out of range; CPUs are from 0 to 1023");
  EXPECT_EQ(executors({{}, 0, {0, 1024}}), "CPU 1024 is out of range; CPUs are from 0 to 1023");
  EXPECT_EQ(problem_of([](Graph& g) { g.processes[0].threads.middleware.priority = 1; }),
            "priority 1 has no policy; add policy FIFO or RR");
  EXPECT_EQ(problem_of([](Graph& g) { g.processes[0].executors[0].thread.priority = 1; }),
            "priority 1 has no policy; add policy FIFO or RR");
}

TEST(Check, RefusesThreadsThatAnExecutorCannotHave) {
  EXPECT_EQ(problem_of([](Graph& g) { g.processes[0].executors[0].threads = 1; }),
            "threads is for multi_threaded executors, but this one is single_threaded; remove it");
  for (const int threads : {-1, 65}) {
    EXPECT_EQ(problem_of([&](Graph& g) {
                g.processes[0].executors[0] = {0, ExecutorKind::kMultiThreaded, threads, {}};
              }),
              "threads is " + std::to_string(threads) + "; it must be from 1 to 64");
  }
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

TEST(Compatibility, OfServicesHoldsForRequestsAndReplies) {
  const auto changed = [](auto change) {
    perflab_qos qos = default_qos();
    change(qos);
    return qos;
  };
  const auto policy_of = [](const perflab_qos& server, const perflab_qos& client) {
    const std::string problem = service_compatibility_problem(server, client);
    return problem.substr(0, problem.find(' '));
  };
  const std::vector<std::pair<std::string, perflab_qos>> different{
      {"reliability", changed([](auto& qos) { qos.reliability = PERFLAB_BEST_EFFORT; })},
      {"durability", changed([](auto& qos) { qos.durability = PERFLAB_TRANSIENT_LOCAL; })},
      {"deadline", changed([](auto& qos) { qos.deadline_ns = 10; })},
      {"liveliness", changed([](auto& qos) { qos.liveliness = PERFLAB_MANUAL_BY_TOPIC; })},
      {"lease_duration", changed([](auto& qos) { qos.lease_duration_ns = 10; })}};
  for (const auto& [policy, qos] : different) {
    EXPECT_EQ(policy_of(qos, default_qos()), policy);
    EXPECT_EQ(policy_of(default_qos(), qos), policy);
    EXPECT_EQ(service_compatibility_problem(qos, qos), "");
  }
  const perflab_qos unmatched = changed([](auto& qos) {
    qos.history = PERFLAB_KEEP_ALL;
    qos.lifespan_ns = 1;
  });
  EXPECT_EQ(service_compatibility_problem(unmatched, default_qos()), "");
}

TEST(Compatibility, OfServicesTellsWhichEndHasWhat) {
  perflab_qos server = default_qos();
  server.deadline_ns = 20'000'000;
  EXPECT_EQ(service_compatibility_problem(server, default_qos()),
            "deadline is 20ms there and infinite here; make both the same, for requests and replies");
  EXPECT_EQ(service_compatibility_problem(default_qos(), server),
            "deadline is infinite there and 20ms here; make both the same, for requests and replies");
}

}  // namespace
}  // namespace perflab::graph
