// Reads a program's configuration file: one JSON document.
//
// Example:
//   const Config config = read_config_file(file, [](const nlohmann::json& document) { return parse(document); });
#pragma once

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "base/error.h"

namespace perflab {

// Returns parse(document). Throws BadInput with one line that names the file and the error.
template <typename Parse>
auto read_config_file(const std::string& file, const Parse& parse) {
  std::ifstream stream(file);
  if (!stream) throw BadInput(file + ": cannot be read");
  try {
    return parse(nlohmann::json::parse(stream));
  } catch (const std::exception& error) {
    throw BadInput(file + ": " + error.what());
  }
}

}  // namespace perflab
