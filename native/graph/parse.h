// User files into graphs: perflab's YAML or JSON, and the topology files of irobot_benchmark.
//
// Example:
//   const Graph graph = parse_graph({read_file("ping_pong.yaml")});
//   const Graph both = parse_graph({read_file("a.json"), read_file("b.json")});  // a process of each
//
// Throws InputError with one line, "FILE:LINE:COLUMN: <what is wrong, what would be right>".
#pragma once

#include <string>
#include <vector>

#include "graph/model.h"

namespace perflab::graph {

struct Input {
  std::string label;         // what messages call it
  std::string text;          // at most kMaxFileBytes (document.h)
  std::string default_name;  // the graph's, where the text gives none
};

// Reads a regular file, or a pipe up to the size that a graph may have.
Input read_file(const std::string& path);

// Standard input, called `name`.
Input read_standard_input(const std::string& name);

// One graph of all inputs; processes that share a name get a number. At least one input. `messages`: the types that it
// may use.
Graph parse_graph(const std::vector<Input>& inputs,
                  const std::shared_ptr<message::Formats>& messages = std::make_shared<message::Formats>());

}  // namespace perflab::graph
