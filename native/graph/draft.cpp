#include "graph/draft.h"

#include <fmt/format.h>

#include <unordered_set>

namespace perflab::graph {
namespace {

const Position* find_position(const ProcessOrigin& origin, const NodeOrigin& node, const Item& item) {
  const auto at = [&](const std::vector<Position>& positions) {
    return item.index < positions.size() ? &positions[item.index] : &node.node;
  };
  switch (item.part) {
    case Part::kGraph:
    case Part::kProcess:
      return &origin.process;
    case Part::kExecutor:
      return item.index < origin.executors.size() ? &origin.executors[item.index] : &origin.process;
    case Part::kNode:
      return &node.node;
    case Part::kPublisher:
      return at(node.publishers);
    case Part::kSubscription:
      return at(node.subscriptions);
    case Part::kClient:
      return at(node.clients);
    case Part::kServer:
      return at(node.servers);
    case Part::kWaitable:
      return at(node.waitables);
    case Part::kTimer:
      return at(node.timers);
    case Part::kReaction:
      return at(node.reactions);
  }
  return &origin.process;
}

std::string place_in(const ProcessOrigin& origin, const NodeOrigin& node, const Item& item) {
  const Position* position = find_position(origin, node, item);
  return fmt::format("{}:{}:{}", origin.label, position->line, position->column);
}

}  // namespace

std::string Draft::place(const Item& item) const {
  static const NodeOrigin kNowhere;
  const ProcessOrigin& origin = origins.at(item.process);
  const bool in_node = item.node < origin.node_of.size();
  return place_in(origin, in_node ? origin.nodes.at(origin.node_of[item.node]) : kNowhere, item);
}

void NodeAdder::first_copy(const Node& node, const ProcessOrigin& origin, std::size_t offset,
                           std::size_t copies) {
  nodes_ += copies;
  parts_ += copies * count_parts(node);
  if (nodes_ > kMaxNodes) document_.fail(offset, fmt::format("the graph has more than {} nodes", kMaxNodes));
  if (parts_ > kMaxParts) {
    document_.fail(offset, fmt::format("the graph has more than {} {}", kMaxParts, kPartWords));
  }
  check_node(node, {Part::kNode, 0, 0, 0},
             [&](const Item& item) { return place_in(origin, origin.nodes.back(), item); });
}

std::string timer_name(std::string_view written) {
  if (written.starts_with("~/")) written.remove_prefix(2);
  if (written.starts_with('/')) written.remove_prefix(1);
  return std::string(written);
}

Timer publishing_timer(std::string_view topic, Nanoseconds period_ns, std::size_t publisher) {
  Timer timer;
  timer.name = timer_name(topic);
  timer.period_ns = period_ns;
  timer.publish = {publisher};
  return timer;
}

Timer requesting_timer(std::string_view service, Nanoseconds period_ns, std::size_t client) {
  Timer timer;
  timer.name = timer_name(service);
  timer.period_ns = period_ns;
  timer.request = {client};
  return timer;
}

Timer triggering_timer(std::string_view waitable, Nanoseconds period_ns, std::size_t index) {
  Timer timer;
  timer.name = waitable;
  timer.period_ns = period_ns;
  timer.trigger = {index};
  return timer;
}

void separate_timer_names(Node& node) {
  std::unordered_set<std::string> names;
  const auto separate = [&](const std::vector<std::size_t> Timer::*what, const char* suffix) {
    for (Timer& timer : node.timers) {
      if ((timer.*what).empty()) continue;
      if (!names.insert(timer.name).second) names.insert(timer.name += suffix);
    }
  };
  separate(&Timer::publish, "");
  separate(&Timer::request, "_request");
  separate(&Timer::trigger, "_trigger");
}

std::vector<Executor> executors_in_use(const std::vector<Node>& nodes) {
  std::vector<Executor> executors;
  std::unordered_set<int> seen;
  for (const Node& node : nodes) {
    if (seen.insert(node.executor).second) executors.push_back({.id = node.executor});
  }
  return executors;
}

}  // namespace perflab::graph
