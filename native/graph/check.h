// The rules that every graph obeys, whichever file it came from.
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
// Publishers, subscriptions, clients, servers, ends of actions, waitables, timers, reactions and their references, over the
// whole graph.
inline constexpr std::size_t kMaxParts = 100'000;
inline constexpr std::string_view kPartWords =
    "publishers, subscriptions, clients, servers, action clients and servers, waitables, timers and reactions";
inline constexpr std::size_t kMaxEdges = 1'000'000;

inline constexpr std::int64_t kLargestBurst = 100'000;
inline constexpr int kMaxExecutorThreads = 64;
inline constexpr int kMaxParticipants = 64;  // of a process

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

// The list of a process or node that holds such parts, as files call it: "publishers".
[[nodiscard]] constexpr const char* list_name(Part part) {
  constexpr std::array<const char*, kParts> kNames{"",           "processes",     "executors", "nodes",
                                                   "publishers", "subscriptions", "clients",   "servers",
                                                   "action_clients", "action_servers", "waitables", "timers", "reactions"};
  return kNames[static_cast<std::size_t>(part)];
}

// One part of a graph, by indexes; those that `part` does not need are 0.
struct Item {
  Part part = Part::kGraph;
  std::size_t process = 0;
  std::size_t node = 0;
  std::size_t index = 0;
};

// visit(node, item) for every node of the graph.
template <typename Visit>
void for_each_node(const Graph& graph, Visit visit) {
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    const std::vector<Node>& nodes = graph.processes[p].nodes;
    for (std::size_t n = 0; n < nodes.size(); ++n) visit(nodes[n], Item{Part::kNode, p, n, 0});
  }
}

// Tells where a part was written: "topology.yaml:3:5".
using Locate = std::function<std::string(const Item&)>;

void check(const Graph& graph, const Locate& locate);

// Graphs in which one message would go round for ever: fails, naming the topics in their order, where
// reactions form a loop that nothing holds back. Relays and transforms answer every message at once; a fusion
// holds a loop back if one of its inputs comes from outside of the loop; a cyclic reaction always does.
// check() includes it.
void check_circulation(const Graph& graph, const Locate& locate);

// The rules that need nothing but the node itself, its types, and whether its process has a program; check() includes them.
void check_node(const Process& process, const Node& node, message::Formats& messages, const Item& item,
                const Locate& locate);

// What a node counts towards kMaxParts.
std::size_t count_parts(const Node& node);

// "" where a waitable may have that name.
std::string waitable_name_problem(std::string_view name);

// "" where the type is known, else a line that offers the nearest one. Throws BadInput, with the place in it, where the type's definition is wrong.
std::string type_problem(message::Formats& messages, std::string_view type);

// The same of the type of a service.
std::string service_type_problem(message::Formats& messages, std::string_view type);
// Likewise of an action.
std::string action_type_problem(message::Formats& messages, std::string_view type);
// Why a server cannot send feedback that is measured; the type is one.
std::string feedback_problem(message::Formats& messages, const std::string& type);

// "" where a publisher of the known type `type` may lend its messages.
std::string loan_problem(message::Formats& messages, std::string_view type);

// "" where the messages of a publisher of that type can be of so many instances.
std::string instances_problem(message::Formats& messages, std::string_view type, std::uint32_t instances);

// "" where a subscription of the known type `type` may have that content filter.
std::string filter_problem(message::Formats& messages, std::string_view type, const std::string& filter);

// Why a subscription is refused that asks for loaned messages.
inline constexpr std::string_view kLoanedSubscription =
    "a subscription cannot ask for loaned messages, its publisher lends them; use shared or unique";

// "" where a timer can tick like that.
std::string pace_problem(const Timer& timer);

// The threads that every process has, as its `threads` call them; others are those of its program.
inline constexpr std::string_view kExecutorThreads = "executors";
inline constexpr std::string_view kMiddlewareThreads = "middleware";
// "" where a thread of a program may be called so.
std::string thread_name_problem(std::string_view name);
// "" where a program may be called so: by its name, or with a path.
std::string program_problem(std::string_view program);

// "" where policy, priority and CPUs go together.
std::string thread_problem(const realtime::ThreadSettings& settings);

// "" where an executor of that kind may have that many threads; 0 is one per CPU.
std::string threads_problem(ExecutorKind kind, int threads);
// "" where an executor of that kind may have that period; 0 is none.
std::string executor_period_problem(ExecutorKind kind, Nanoseconds period_ns);

// "" where a publisher of the known type `type` may ask for that size: the elements of a variable message, the payload's
// bytes of another.
std::string size_problem(message::Formats& messages, std::string_view type, std::uint32_t size);

// A text of QoS: what does not fit into perflab_text, or is no printable line.
std::string text_problem(std::string_view name, std::string_view text);

// The first QoS policy by which `subscription` asks for more than `publisher` offers, with what would be
// right; "" where the two communicate.
std::string compatibility_problem(const perflab_qos& publisher, const perflab_qos& subscription);

// The same for a server, "there", and a client, "here": the client offers requests, the server replies.
std::string service_compatibility_problem(const perflab_qos& server, const perflab_qos& client);

}  // namespace perflab::graph
