#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "graph/check.h"
#include "graph/text.h"

namespace perflab::graph {
namespace {

constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

// A directed graph whose vertices are topics and reactions: topic -> reaction -> topic.
struct Flow {
  std::vector<std::vector<std::size_t>> next;
  std::vector<std::vector<std::size_t>> previous;
  std::vector<std::string_view> topic;  // empty for a reaction
  std::vector<Item> item;               // of a reaction
  std::vector<bool> fusion;

  std::size_t add(std::string_view name, const Item& where, bool is_fusion) {
    next.emplace_back();
    previous.emplace_back();
    topic.push_back(name);
    item.push_back(where);
    fusion.push_back(is_fusion);
    return next.size() - 1;
  }
  void connect(std::size_t from, std::size_t to) {
    next[from].push_back(to);
    previous[to].push_back(from);
  }
};

Flow flow_of(const Graph& graph) {
  Flow flow;
  std::unordered_map<std::string_view, std::size_t> topics;
  const auto vertex_of = [&](std::string_view topic) {
    const auto [found, added] = topics.emplace(topic, kNone);
    if (added) found->second = flow.add(topic, {}, false);
    return found->second;
  };
  for_each_node(graph, [&](const Node& node, const Item& item) {
    for (std::size_t r = 0; r < node.reactions.size(); ++r) {
      const Reaction& reaction = node.reactions[r];
      if (reaction.kind == ReactionKind::kCyclic || reaction.publish.empty()) continue;
      const std::size_t vertex =
          flow.add({}, {Part::kReaction, item.process, item.node, r}, reaction.kind == ReactionKind::kFusion);
      for (const std::size_t in : reaction.on) flow.connect(vertex_of(node.subscriptions[in].topic), vertex);
      for (const std::size_t out : reaction.publish)
        flow.connect(vertex, vertex_of(node.publishers[out].topic));
    }
  });
  return flow;
}

// Repeatedly removes vertices that cannot be part of a self-feeding loop: an ordinary vertex without input
// from the rest, and a fusion with an input from outside of the rest.
std::vector<bool> self_feeding(const Flow& flow) {
  const std::size_t count = flow.next.size();
  std::vector<bool> kept(count, true);
  std::vector<std::size_t> missing(count, 0);  // inputs that were removed
  std::deque<std::size_t> removed;
  const auto remove = [&](std::size_t vertex) {
    kept[vertex] = false;
    removed.push_back(vertex);
  };
  for (std::size_t v = 0; v < count; ++v) {
    if (flow.previous[v].empty()) remove(v);
  }
  while (!removed.empty()) {
    const std::size_t vertex = removed.front();
    removed.pop_front();
    for (const std::size_t follower : flow.next[vertex]) {
      missing[follower] += 1;
      const bool starved = flow.fusion[follower] || missing[follower] == flow.previous[follower].size();
      if (kept[follower] && starved) remove(follower);
    }
  }
  return kept;
}

// Every kept vertex has a kept predecessor, so walking backwards must close a loop.
std::vector<std::size_t> loop_among(const Flow& flow, const std::vector<bool>& kept, std::size_t start) {
  std::vector<std::size_t> position(flow.next.size(), kNone);
  std::vector<std::size_t> path;
  std::size_t vertex = start;
  while (position[vertex] == kNone) {
    position[vertex] = path.size();
    path.push_back(vertex);
    vertex = *std::ranges::find_if(flow.previous[vertex], [&](std::size_t before) { return kept[before]; });
  }
  path.erase(path.begin(), path.begin() + static_cast<std::ptrdiff_t>(position[vertex]));
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace

void check_circulation(const Graph& graph, const Locate& locate) {
  const Flow flow = flow_of(graph);
  const std::vector<bool> kept = self_feeding(flow);
  const auto start = std::ranges::find(kept, true);
  if (start == kept.end()) return;
  std::vector<std::size_t> loop = loop_among(flow, kept, static_cast<std::size_t>(start - kept.begin()));

  // Starts with the topic that sorts first, so that the message does not depend on the order in the file.
  const auto before = [&](std::size_t a, std::size_t b) {
    if (flow.topic[a].empty() != flow.topic[b].empty()) return flow.topic[b].empty();
    return flow.topic[a] < flow.topic[b];
  };
  std::rotate(loop.begin(), std::min_element(loop.begin(), loop.end(), before), loop.end());
  constexpr std::size_t kMaxNamed = 12;
  std::string names;
  std::size_t named = 0;
  for (const std::size_t vertex : loop) {
    if (flow.topic[vertex].empty() || ++named > kMaxNamed) continue;
    names += fmt::format("{} -> ", flow.topic[vertex]);
  }
  if (named > kMaxNamed) names += "... -> ";
  const std::size_t reaction =
      *std::ranges::find_if(loop, [&](std::size_t vertex) { return flow.topic[vertex].empty(); });
  throw InputError(
      fmt::format("{}: a message would circulate forever through {}{}; break the loop, or make one of "
                  "its reactions cyclic",
                  locate(flow.item[reaction]), names, flow.topic[loop.front()]));
}

}  // namespace perflab::graph
