// Resolved graphs, as perflab-node reads them.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "graph/describe.h"
#include "graph/resolved.h"
#include "require.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  perflab::graph::Graph graph;
  try {
    graph = perflab::graph::read_resolved(text);
  } catch (const perflab::BadInput& error) {
    perflab::fuzz::require_one_line(error.what());
    return 0;
  }
  const std::string once = perflab::graph::graph_to_json(graph).dump();
  const std::string twice = perflab::graph::graph_to_json(perflab::graph::read_resolved(once)).dump();
  perflab::fuzz::require(once == twice, "an accepted graph survives");
  perflab::graph::describe(graph);
  return 0;
}
