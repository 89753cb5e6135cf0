// Helpers of the graph tests.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "graph/parse.h"
#include "graph/text.h"

namespace perflab::graph::test {

inline std::filesystem::path source_dir() { return PERFLAB_SOURCE_DIR; }

// Parses a text as the file "g.yaml" (or another label).
inline Graph parse(const std::string& text, const std::string& label = "g.yaml") {
  return parse_graph({{label, text, "g"}});
}

// The error with which `action` refuses its input; "" and a test failure if it does not.
template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const BadInput& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

inline std::string parse_error(const std::string& text, const std::string& label = "g.yaml") {
  return error_of([&] { parse(text, label); });
}

}  // namespace perflab::graph::test
