// The resolved graph: the model as JSON, with every default filled in (docs/formats.md, section 1).
//
// Example:
//   const Graph graph = read_resolved(text);            // or graph_from_json(config.at("graph"))
//   std::cout << graph_to_json(graph).dump() << '\n';
//
// Reading checks everything that the parser of user files checks, and throws InputError with one line:
// "graph.processes[0].nodes[1]: <what is wrong, what would be right>".
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "graph/model.h"

namespace perflab::graph {

nlohmann::ordered_json graph_to_json(const Graph& graph);
// The table of QoS policies (middleware/policies.h) as JSON, for programs with a table of their own.
nlohmann::ordered_json policies_to_json();
Graph graph_from_json(const nlohmann::json& json);
Graph read_resolved(std::string_view text);

// Thread settings of a process or executor in the resolved graph; null is empty. `path` names the value in
// messages.
realtime::ThreadSettings thread_settings_from_json(const nlohmann::json& json,
                                                   std::string_view path = "thread");
nlohmann::ordered_json thread_settings_to_json(const realtime::ThreadSettings& settings);

}  // namespace perflab::graph
