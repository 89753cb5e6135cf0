// Summarizes a graph: counts and rates.
//
// Example:
//   Description d = describe(graph);
//   d.delivered_per_s;                                  // 1054 for sierra_nevada
//   timed_deliveries(graph, 120'000'000'000);           // 126'480
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/model.h"

namespace perflab::graph {

struct TopicDescription {
  std::string topic;
  std::string type;
  std::vector<std::string> publishers;     // qualified names of nodes
  std::vector<std::string> subscriptions;  // likewise
  double published_per_s = 0.0;
  double published_bytes_per_s = 0.0;  // payload without headers
};

struct ServiceDescription {
  std::string service;
  std::string type;
  std::string server;                // qualified name of its node
  std::vector<std::string> clients;  // likewise
  double requests_per_s = 0.0;       // sum of all clients; there are as many replies, of the same size
  double request_bytes_per_s = 0.0;  // payload without headers
};

struct ActionDescription {
  std::string action;
  std::string type;
  std::string server;                // qualified name of its node
  std::vector<std::string> clients;  // likewise
  double goals_per_s = 0.0;          // sum of all clients
  Nanoseconds duration_ns = 0;       // duration of each goal
  double feedback_per_s = 0.0;       // to all clients, for goals that are accepted and run to their end
};

struct Description {
  std::size_t processes = 0;
  std::size_t executors = 0;
  std::size_t participants = 0;  // DDS participants in all processes
  std::size_t nodes = 0;
  std::size_t publishers = 0;
  std::size_t subscriptions = 0;
  std::size_t clients = 0;
  std::size_t servers = 0;
  std::size_t action_clients = 0;
  std::size_t action_servers = 0;
  std::size_t waitables = 0;
  std::size_t timers = 0;
  std::size_t reactions = 0;
  std::size_t edges = 0;
  std::size_t unmatched_publishers = 0;     // publishers without a subscription to their topic in this graph
  std::size_t unmatched_subscriptions = 0;  // subscriptions without a publisher of their topic in this graph
  // False if the rate of a loop through a fusion, or of an unthrottled timer, cannot be determined; rates are
  // then lower bounds.
  bool rates_settled = true;
  double published_per_s = 0.0;
  double delivered_per_s = 0.0;
  double published_bytes_per_s = 0.0;
  double delivered_bytes_per_s = 0.0;
  double requests_per_s = 0.0;
  std::vector<TopicDescription> topics;      // sorted by name
  std::vector<ServiceDescription> services;  // sorted by name
  std::vector<ActionDescription> actions;    // sorted by name
};

// Rates of a graph that keeps up: a relay or transform sends as many messages as it receives, a fusion as
// many as its slowest input, a cyclic reaction one per period. Topics published outside of the graph count as
// 0. Requests and replies count only in the figures of services, and everything that actions send only in
// those of actions.
Description describe(const Graph& graph);

// Messages that periodic timers deliver over all edges in a run of this length: the sum of floor(duration /
// period).
std::uint64_t timed_deliveries(const Graph& graph, Nanoseconds duration_ns);

}  // namespace perflab::graph
