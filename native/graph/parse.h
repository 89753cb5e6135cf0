// Parses user files into graphs: perflab's YAML or JSON, and the topology files of irobot_benchmark.
//
// Example:
//   const Graph graph = parse_graph({read_file("ping_pong.yaml")});
//   const Graph both = parse_graph({read_file("a.json"), read_file("b.json")});  // one process from each
//
// Throws InputError with one line, "FILE:LINE:COLUMN: <what is wrong, what would be right>".
#pragma once

#include <string>
#include <vector>

#include "graph/model.h"

namespace perflab::graph {

struct Input {
  std::string label;         // name in messages
  std::string text;          // at most kMaxFileBytes (document.h)
  std::string default_name;  // name of the graph if the text has none
};

// Reads a regular file, or a pipe up to the size that a graph may have.
Input read_file(const std::string& path);

// Standard input, named `name` in messages.
Input read_standard_input(const std::string& name);

// One graph from all inputs, at least one; processes with the same name get a number. `messages`: the types
// that the graph may use.
Graph parse_graph(const std::vector<Input>& inputs,
                  const std::shared_ptr<message::Formats>& messages = std::make_shared<message::Formats>());

}  // namespace perflab::graph
