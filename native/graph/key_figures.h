// The key figures that graph files declare: read from each file, and resolved once all files are read.
//
// Example, in a graph file:
//   key_figures:
//     hot_path: {from: [front_lidar, rear_lidar], to: detector}   # response at the end of the path
//     dropped:  {lost: all}                                       # or topics
//     planner:  {jitter: planner}                                 # of the intervals between its publications
#pragma once

#include <string>
#include <vector>

#include "graph/fields.h"
#include "graph/model.h"

namespace perflab::graph {

// A name as written, and its place.
struct WrittenName {
  std::string text;
  std::string place;
};

struct WrittenKeyFigure {
  KeyFigureKind kind = KeyFigureKind::kPath;
  WrittenName name;
  std::vector<WrittenName> of;  // start of a path, topics (none: all), or the node of a jitter
  WrittenName to;               // end of a path
};

// "" if the name is valid for a figure that judges trials: like names of metrics, `hot_path.p99`. `what` is
// its kind: "key figure".
std::string figure_name_problem(std::string_view what, std::string_view name);

// The mapping at `key_figures`.
std::vector<WrittenKeyFigure> read_key_figures(const Field& field);

// Throws InputError if a figure names something that the graph does not have, or that its records cannot
// provide.
std::vector<KeyFigure> resolve_key_figures(const Graph& graph, const std::vector<WrittenKeyFigure>& written);

}  // namespace perflab::graph
