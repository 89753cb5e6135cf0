// The rules that every graph obeys, whichever file it came from.
//
// Example:
//   check(graph, [](const Item& item) { return "topology.yaml:3:5"; });
//
// Throws InputError at the first violation: "<place>: <what is wrong, what would be right>".
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "graph/model.h"

namespace perflab::graph {

inline constexpr std::size_t kMaxNodes = 10'000;
// Publishers, subscriptions, timers, reactions and their references, over the whole graph.
inline constexpr std::size_t kMaxParts = 100'000;
inline constexpr std::size_t kMaxEdges = 1'000'000;

enum class Part { kGraph, kProcess, kExecutor, kNode, kPublisher, kSubscription, kTimer, kReaction };

// One part of a graph, by indexes; those that `part` does not need are 0.
struct Item {
  Part part = Part::kGraph;
  std::size_t process = 0;
  std::size_t node = 0;
  std::size_t index = 0;
};

// Tells where a part was written: "topology.yaml:3:5".
using Locate = std::function<std::string(const Item&)>;

void check(const Graph& graph, const Locate& locate);

// The rules that need nothing but the node itself; check() includes them.
void check_node(const Node& node, const Item& item, const Locate& locate);

// What a node counts towards kMaxParts.
std::size_t count_parts(const Node& node);

// "" where the type is known, else a line that offers the nearest one.
std::string type_problem(std::string_view type);

// "" where `size_bytes` is right for a publisher of the known type `type`.
std::string size_problem(std::string_view type, std::uint32_t size_bytes);

// The first QoS policy by which `subscription` asks for more than `publisher` offers, with what would be
// right; "" where the two communicate.
std::string compatibility_problem(const perflab_qos& publisher, const perflab_qos& subscription);

}  // namespace perflab::graph
