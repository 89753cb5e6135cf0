// Looks up parts of a graph for a program: ends by name, and timers in the executors of its nodes.
#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "graph/live.h"
#include "graph/live_timers.h"

namespace perflab::graph {
namespace {

// "; it has /a, /b", "; did you mean /a?" or "; it has none".
std::string hint(const std::string& name, const std::vector<std::string_view>& known) {
  if (known.empty()) return "; it has none";
  const std::string_view near = closest(name, known);
  return near.empty() ? "; it has " + list_of(known) : "; did you mean " + std::string(near) + "?";
}

// The node's end with this name. `driver` names the driver of an end that the program does not drive.
template <typename End>
End& find(const std::vector<std::unique_ptr<End>>& ends, const std::string& node, const std::string& name,
          const std::string& what, const char* driver) {
  std::vector<std::string_view> known;
  for (const auto& end : ends) {
    if (end->node().name_in_program() != node) continue;
    if (end->end_name() != name) {
      known.emplace_back(end->end_name());
      continue;
    }
    if constexpr (requires { end->driven(); }) {
      if (end->driven())
        throw BadInput("node " + node + ", " + what + " " + name + ": " + driver +
                       ", but the program uses it too; right would be only one of them");
    }
    return *end;
  }
  throw BadInput("node " + node + " has no " + what + " " + name + " in the graph" + hint(name, known));
}

}  // namespace

std::pair<const Node*, LiveGraph::Place> LiveGraph::node_of(const std::string& name) const {
  std::vector<std::string> names;
  for (const auto& [node, place] : program_nodes_) {
    names.push_back(node->name_in_program());
    if (names.back() == name) return {node, place};
  }
  throw BadInput("the process has no node " + name + " in the graph" + hint(name, {names.begin(), names.end()}));
}

PublisherEnd& LiveGraph::publisher_end(const std::string& node, const std::string& topic) {
  static_cast<void>(node_of(node));
  return find(publishers_, node, topic, "publisher", "a timer or reaction publishes it");
}

SubscriptionEnd& LiveGraph::subscription_end(const std::string& node, const std::string& topic) {
  static_cast<void>(node_of(node));
  return find(subscriptions_, node, topic, "subscription", "it has a reaction");
}

ClientEnd& LiveGraph::client_end(const std::string& node, const std::string& service) {
  static_cast<void>(node_of(node));
  return find(clients_, node, service, "client", "a timer requests it");
}

ServerEnd& LiveGraph::server_end(const std::string& node, const std::string& service) {
  static_cast<void>(node_of(node));
  return find(servers_, node, service, "server", "");
}

ActionClientEnd& LiveGraph::action_client_end(const std::string& node, const std::string& action) {
  static_cast<void>(node_of(node));
  return find(action_clients_, node, action, "action client", "a timer sends its goals");
}

ActionServerEnd& LiveGraph::action_server_end(const std::string& node, const std::string& action) {
  static_cast<void>(node_of(node));
  return find(action_servers_, node, action, "action server", "");
}

std::string LiveGraph::unhandled_action_server() const {
  const auto found = std::ranges::find_if(action_servers_, [](const auto& server) { return !server->handled(); });
  return found == action_servers_.end() ? std::string() : (*found)->name();
}

std::string LiveGraph::type_hash(const message::Type& type) const { return graph_.messages->library().hash(type.name); }

void LiveGraph::add_timer(const std::string& node_name, const std::string& name, Nanoseconds period_ns, bool skip_missed,
                          std::function<void(Nanoseconds)> on_tick) {
  const auto [node, place] = node_of(node_name);
  program_timers_.push_back(std::make_unique<ProgramTimer>(std::move(on_tick)));
  build_timer(place, *node, {.name = name, .period_ns = period_ns, .skip_missed = skip_missed}, Phase::kAligned, 0,
              *program_timers_.back());
}

runtime::Span* LiveGraph::add_span(const std::string& node_name, const std::string& name, Nanoseconds period_ns) {
  return runtime_.create_span(node_of(node_name).second.group, name, period_ns);
}

}  // namespace perflab::graph
