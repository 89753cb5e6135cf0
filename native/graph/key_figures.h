// The key figures that graph files declare: read from a file, and resolved once all files are there.
//
// Example, in a graph file:
//   key_figures:
//     hot_path: {from: [front_lidar, rear_lidar], to: detector}   # response where the path ends
//     dropped:  {lost: all}                                       # or topics
//     planner:  {jitter: planner}                                 # of the intervals between its publications
#pragma once

#include <string>
#include <vector>

#include "graph/fields.h"
#include "graph/model.h"

namespace perflab::graph {

// A name as it was written, and where.
struct WrittenName {
  std::string text;
  std::string place;
};

struct WrittenKeyFigure {
  KeyFigureKind kind = KeyFigureKind::kPath;
  WrittenName name;
  std::vector<WrittenName> of;  // where a path begins, topics (none: all), or the node of a jitter
  WrittenName to;               // of a path
};

// "" where what a trial is judged by may be called so: as metrics are, `hot_path.p99`. `what` it is: "key figure".
std::string figure_name_problem(std::string_view what, std::string_view name);

// The mapping at `key_figures`.
std::vector<WrittenKeyFigure> read_key_figures(const Field& field);

// Throws InputError where a figure names what the graph does not have, or what its records cannot tell.
std::vector<KeyFigure> resolve_key_figures(const Graph& graph, const std::vector<WrittenKeyFigure>& written);

}  // namespace perflab::graph
