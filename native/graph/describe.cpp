#include "graph/describe.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string_view>

#include "graph/check.h"
#include "message/format.h"

namespace perflab::graph {
namespace {

// More rounds than any chain of reactions is long; rates that have not settled by then will not settle soon.
constexpr int kMaxRounds = 1'000;

struct Totals {
  double messages = 0.0;
  double bytes = 0.0;
};

using Rates = std::map<std::string_view, Totals>;

double rate_of(const Rates& rates, const Node& node, std::size_t subscription) {
  const auto found = rates.find(node.subscriptions[subscription].topic);
  return found == rates.end() ? 0.0 : found->second.messages;
}

// Reactions per second, given the rates of the topics.
double reaction_rate(const Reaction& reaction, const Node& node, const Rates& rates) {
  if (reaction.kind == ReactionKind::kCyclic) return 1e9 / static_cast<double>(reaction.period_ns);
  if (reaction.kind == ReactionKind::kFusion) {
    double slowest = std::numeric_limits<double>::infinity();
    for (const std::size_t in : reaction.on) slowest = std::min(slowest, rate_of(rates, node, in));
    return slowest;
  }
  double sum = 0.0;
  for (const std::size_t in : reaction.on) sum += rate_of(rates, node, in);
  return sum;
}

// The rates after one step along every reaction.
Rates step(const Graph& graph, const Rates& before) {
  Rates rates;
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    const auto add = [&](std::size_t index, double per_s) {
      const Publisher& publisher = node.publishers[index];
      Totals& totals = rates[publisher.topic];
      totals.messages += per_s;
      totals.bytes += per_s * publisher.size_bytes;
    };
    for (const Timer& timer : node.timers) {
      for (const std::size_t index : timer.publish) add(index, timer.frequency_hz());
    }
    for (const Reaction& reaction : node.reactions) {
      const double per_s = reaction_rate(reaction, node, before);
      for (const std::size_t index : reaction.publish) add(index, per_s);
    }
  });
  return rates;
}

bool same(const Rates& a, const Rates& b) {
  return std::ranges::equal(a, b, [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.messages == y.second.messages;
  });
}

std::vector<ServiceDescription> describe_services(const Graph& graph) {
  std::map<std::string_view, ServiceDescription> services;
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    for (const Server& server : node.servers) {
      ServiceDescription& service = services[server.service];
      if (!node.condition.empty() && !service.server.empty()) continue;  // a second server besides the
                                                                         // workload's
      service.server = node.qualified_name();
      service.type = server.type;
    }
    for (const Client& client : node.clients) {
      ServiceDescription& service = services[client.service];
      service.clients.push_back(node.qualified_name());
      service.requests_per_s += client.frequency_hz;
      service.request_bytes_per_s += client.frequency_hz * static_cast<double>(graph.messages->find_request(client.type)->payload_bytes(message::kServiceLength));
    }
  });
  std::vector<ServiceDescription> result;
  for (auto& [name, service] : services) {
    service.service = name;
    result.push_back(std::move(service));
  }
  return result;
}

std::vector<ActionDescription> describe_actions(const Graph& graph) {
  std::map<std::string_view, ActionDescription> actions;
  std::map<std::string_view, const ActionServer*> servers;
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    for (const ActionServer& server : node.action_servers) {
      if (!node.condition.empty() && servers.contains(server.action)) continue;  // a second server besides
                                                                                 // the workload's
      ActionDescription& action = actions[server.action];
      action.server = node.qualified_name();
      action.type = server.type;
      action.duration_ns = server.duration_ns;
      servers[server.action] = &server;
    }
    for (const ActionClient& client : node.action_clients) {
      ActionDescription& action = actions[client.action];
      action.clients.push_back(node.qualified_name());
      action.goals_per_s += client.frequency_hz;
    }
  });
  std::vector<ActionDescription> result;
  for (auto& [name, action] : actions) {
    action.action = name;
    const ActionServer& server = *servers.at(name);
    const auto accepted = server.reject_every > 0 ? 1.0 - 1.0 / server.reject_every : 1.0;
    const auto steps = static_cast<double>((server.duration_ns + server.step_ns - 1) / server.step_ns);
    if (server.feedback) action.feedback_per_s = action.goals_per_s * accepted * std::max(1.0, steps);
    result.push_back(std::move(action));
  }
  return result;
}

}  // namespace

Description describe(const Graph& graph) {
  Description result;
  Rates rates;
  result.rates_settled = false;
  for (int round = 0; round < kMaxRounds && !result.rates_settled; ++round) {
    Rates next = step(graph, rates);
    result.rates_settled = same(rates, next);
    rates = std::move(next);
  }

  std::map<std::string_view, TopicDescription> topics;
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    result.nodes += 1;
    result.publishers += node.publishers.size();
    result.subscriptions += node.subscriptions.size();
    result.clients += node.clients.size();
    result.servers += node.servers.size();
    result.action_clients += node.action_clients.size();
    result.action_servers += node.action_servers.size();
    result.waitables += node.waitables.size();
    result.timers += node.timers.size();
    result.reactions += node.reactions.size();
    for (const Publisher& publisher : node.publishers) {
      topics[publisher.topic].publishers.push_back(node.qualified_name());
      topics[publisher.topic].type = publisher.type;
    }
    for (const Subscription& subscription : node.subscriptions) {
      topics[subscription.topic].subscriptions.push_back(node.qualified_name());
      topics[subscription.topic].type = subscription.type;
    }
  });
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    if (std::ranges::any_of(node.timers, [](const Timer& timer) { return timer.arrivals == Arrivals::kUnthrottled; }))
      result.rates_settled = false;
  });
  result.processes = graph.processes.size();
  for (const Process& process : graph.processes) {
    result.executors += process.executors.size();
    result.participants += static_cast<std::size_t>(process.participants);
  }

  for (auto& [name, topic] : topics) {
    topic.topic = name;
    const Totals totals = rates[name];
    topic.published_per_s = totals.messages;
    topic.published_bytes_per_s = totals.bytes;
    const auto readers = static_cast<double>(topic.subscriptions.size());
    result.edges += topic.publishers.size() * topic.subscriptions.size();
    if (topic.subscriptions.empty()) result.unmatched_publishers += topic.publishers.size();
    if (topic.publishers.empty()) result.unmatched_subscriptions += topic.subscriptions.size();
    result.published_per_s += totals.messages;
    result.published_bytes_per_s += totals.bytes;
    result.delivered_per_s += totals.messages * readers;
    result.delivered_bytes_per_s += totals.bytes * readers;
    result.topics.push_back(std::move(topic));
  }
  result.services = describe_services(graph);
  result.actions = describe_actions(graph);
  for (const ServiceDescription& service : result.services) result.requests_per_s += service.requests_per_s;
  return result;
}

std::uint64_t timed_deliveries(const Graph& graph, Nanoseconds duration_ns) {
  std::map<std::string_view, std::uint64_t> readers;
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    for (const Subscription& subscription : node.subscriptions) readers[subscription.topic] += 1;
  });
  std::uint64_t messages = 0;
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    for (const Timer& timer : node.timers) {
      if (timer.arrivals != Arrivals::kPeriodic) continue;
      const auto ticks = static_cast<std::uint64_t>(duration_ns / (timer.period_ns * timer.burst) * timer.burst);
      for (const std::size_t index : timer.publish) {
        const auto found = readers.find(node.publishers[index].topic);
        if (found != readers.end()) messages += ticks * found->second;
      }
    }
  });
  return messages;
}

}  // namespace perflab::graph
