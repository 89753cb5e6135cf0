// The rules that every graph must satisfy, whichever file it came from.
//
// Example:
//   check(graph, [](const Item& item) { return "topology.yaml:3:5"; });
//
// Throws InputError at the first violation: "<place>: <what is wrong, what would be right>".
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/model.h"

namespace perflab::graph {

inline constexpr std::size_t kMaxNodes = 10'000;
// Publishers, subscriptions, clients, servers, action ends, waitables, timers, reactions and their
// references, in the whole graph.
inline constexpr std::size_t kMaxParts = 100'000;
inline constexpr std::string_view kPartWords =
    "publishers, subscriptions, clients, servers, action clients and servers, waitables, timers and reactions";
inline constexpr std::size_t kMaxEdges = 1'000'000;

inline constexpr std::int64_t kLargestBurst = 100'000;
inline constexpr int kMaxExecutorThreads = 64;
inline constexpr int kMaxParticipants = 64;  // per process

enum class Part {
  kGraph,
  kProcess,
  kExecutor,
  kNode,
  kPublisher,
  kSubscription,
  kClient,
  kServer,
  kActionClient,
  kActionServer,
  kWaitable,
  kTimer,
  kReaction
};
inline constexpr std::size_t kParts = 13;

// The key of the list of such parts in files, in a process or node: "publishers".
[[nodiscard]] constexpr const char* list_name(Part part) {
  constexpr std::array<const char*, kParts> kNames{"",           "processes",     "executors", "nodes",
                                                   "publishers", "subscriptions", "clients",   "servers",
                                                   "action_clients", "action_servers", "waitables", "timers", "reactions"};
  return kNames[static_cast<std::size_t>(part)];
}

// One part of a graph, by indexes; indexes that `part` does not need are 0.
struct Item {
  Part part = Part::kGraph;
  std::size_t process = 0;
  std::size_t node = 0;
  std::size_t index = 0;
};

// Calls visit(node, item) for every node of the graph.
template <typename Visit>
void for_each_node(const Graph& graph, Visit visit) {
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    const std::vector<Node>& nodes = graph.processes[p].nodes;
    for (std::size_t n = 0; n < nodes.size(); ++n) visit(nodes[n], Item{Part::kNode, p, n, 0});
  }
}

// Returns the place where a part was written: "topology.yaml:3:5".
using Locate = std::function<std::string(const Item&)>;

void check(const Graph& graph, const Locate& locate);

// Finds graphs in which one message would circulate forever: throws, naming the topics in order, if reactions
// form a loop that nothing holds back. Relays and transforms answer every message at once; a fusion holds a
// loop back if one of its inputs comes from outside of the loop; a cyclic reaction always does. Part of
// check().
void check_circulation(const Graph& graph, const Locate& locate);

// The rules that depend only on the node, its types, and whether its process has a program. Part of check().
void check_node(const Process& process, const Node& node, message::Formats& messages, const Item& item,
                const Locate& locate);

// The number of parts of a node that count towards kMaxParts.
std::size_t count_parts(const Node& node);

// "" if the name is valid for a waitable, otherwise what is wrong; likewise below.
std::string waitable_name_problem(std::string_view name);

// "" if the type is known, otherwise a message that suggests the nearest one. Throws BadInput, with the place
// in the definition, if the type's definition is wrong.
std::string type_problem(message::Formats& messages, std::string_view type);

// Like type_problem(), for a service type.
std::string service_type_problem(message::Formats& messages, std::string_view type);
// Like type_problem(), for an action type.
std::string action_type_problem(message::Formats& messages, std::string_view type);
// Why a server of this (known) action type cannot send measurable feedback.
std::string feedback_problem(message::Formats& messages, const std::string& type);

// "" if a publisher of the known type `type` may loan its messages.
std::string loan_problem(message::Formats& messages, std::string_view type);

// "" if a publisher of this type can send messages of that many instances.
std::string instances_problem(message::Formats& messages, std::string_view type, std::uint32_t instances);

// "" if a subscription of the known type `type` may have this content filter.
std::string filter_problem(message::Formats& messages, std::string_view type, const std::string& filter);

// The error for a subscription that asks for loaned messages.
inline constexpr std::string_view kLoanedSubscription =
    "a subscription cannot ask for loaned messages, only a publisher can loan them; use shared or unique";

// "" if a timer can have these ticks.
std::string pace_problem(const Timer& timer);

// The threads that every process has, as in its `threads`; other names are threads of its program.
inline constexpr std::string_view kExecutorThreads = "executors";
inline constexpr std::string_view kMiddlewareThreads = "middleware";
// "" if the name is valid for a thread of a program.
std::string thread_name_problem(std::string_view name);
// "" if the name or path is valid for a program.
std::string program_problem(std::string_view program);

// "" if policy, priority and CPUs are consistent.
std::string thread_problem(const realtime::ThreadSettings& settings);

// "" if an executor of this kind may have this many threads; 0: one per CPU.
std::string threads_problem(ExecutorKind kind, int threads);
// "" if an executor of this kind may have this period; 0: none.
std::string executor_period_problem(ExecutorKind kind, Nanoseconds period_ns);

// "" if a publisher of the known type `type` may have this size: the number of elements of a variable
// message, or the payload bytes of a fixed one.
std::string size_problem(message::Formats& messages, std::string_view type, std::uint32_t size);

// A QoS text: a problem if it does not fit into perflab_text or is not a printable line.
std::string text_problem(std::string_view name, std::string_view text);

// The first QoS policy by which `subscription` requests more than `publisher` offers, with what would be
// right; "" if the two are compatible.
std::string compatibility_problem(const perflab_qos& publisher, const perflab_qos& subscription);

// Like the above, for a server ("there") and a client ("here"): the client offers requests, the server
// replies.
std::string service_compatibility_problem(const perflab_qos& server, const perflab_qos& client);

}  // namespace perflab::graph
