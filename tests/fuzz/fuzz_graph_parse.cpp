// User files of both formats, each text once as YAML (or JSON, by its first character) and once as strict
// JSON.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"
#include "graph/describe.h"
#include "graph/parse.h"
#include "graph/resolved.h"
#include "message/format.h"
#include "require.h"

namespace {

using perflab::fuzz::require;

// The types are the same for all inputs, and take longer to list than most inputs to parse. Made anew now and then, as
// they keep each filter that they were asked for.
std::shared_ptr<perflab::message::Formats> messages() {
  constexpr int kInputs = 1'000;
  static std::shared_ptr<perflab::message::Formats> made;
  static int inputs = 0;
  if (inputs++ % kInputs == 0) made = std::make_shared<perflab::message::Formats>();
  return made;
}

void parse(const char* label, const std::string& text) {
  perflab::graph::Graph graph;
  try {
    graph = perflab::graph::parse_graph({{label, text, "fuzz"}}, messages());
  } catch (const perflab::BadInput& error) {
    perflab::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).starts_with(label), "a rejection begins with its place");
    return;
  }
  // What was accepted is accepted again in its resolved form, and means the same.
  const std::string resolved = perflab::graph::graph_to_json(graph).dump();
  const perflab::graph::Graph again = perflab::graph::read_resolved(resolved);
  // But for the order of figures, which is for tables alone.
  require(nlohmann::json(perflab::graph::graph_to_json(again)) == nlohmann::json::parse(resolved), "the resolved graph survives");
  perflab::graph::describe(graph);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  parse("g.yaml", text);
  parse("g.json", text);
  return 0;
}
