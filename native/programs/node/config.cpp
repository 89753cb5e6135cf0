#include "programs/node/config.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "graph/resolved.h"

namespace perflab::node {
namespace {

using nlohmann::json;

runtime::ExecutorKind executor_kind(const std::string& name) {
  if (name == "inline") return runtime::ExecutorKind::kInline;
  if (name == "single_threaded") return runtime::ExecutorKind::kSingleThreaded;
  throw std::invalid_argument("executor: unknown kind '" + name + "', known are inline and single_threaded");
}

Nanoseconds positive(const json& config, const char* key, Nanoseconds otherwise) {
  const Nanoseconds value = config.value(key, otherwise);
  if (value <= 0) throw std::invalid_argument(std::string(key) + ": must be more than 0");
  return value;
}

Nanoseconds not_negative(const json& config, const char* key, Nanoseconds otherwise) {
  const Nanoseconds value = config.value(key, otherwise);
  if (value < 0) throw std::invalid_argument(std::string(key) + ": must not be negative");
  return value;
}

Config parse(const json& config) {
  Config result;
  if (config.at("schema").get<int>() != 1)
    throw std::invalid_argument("schema: this perflab-node reads schema 1");
  result.graph = graph::graph_from_json(config.at("graph"));
  result.runtime = config.at("runtime").get<std::string>();
  if (result.runtime != "dds" && result.runtime != "virtual") {
    throw std::invalid_argument("runtime: unknown '" + result.runtime + "', known are dds and virtual");
  }
  const json& process = config.at("process");
  if (process.is_null()) {
    if (result.runtime != "virtual")
      throw std::invalid_argument("process: only the virtual runtime runs all of them");
    result.process_name = result.graph.name;
  } else {
    result.process_name = process.get<std::string>();
    for (std::size_t i = 0; i < result.graph.processes.size(); ++i) {
      if (result.graph.processes[i].name == result.process_name) result.process = i;
    }
    if (!result.process)
      throw std::invalid_argument("process: the graph has no process '" + result.process_name + "'");
  }
  const json& middleware = config.at("middleware");
  result.middleware_name = middleware.at("name").get<std::string>();
  if (result.runtime == "dds") {
    result.middleware_library = middleware.at("library").get<std::string>();
    result.domain = middleware.at("domain").get<std::uint32_t>();
    result.network = middleware.value("network", result.network);
  }
  if (middleware.contains("options")) {
    for (const auto& [key, value] : middleware.at("options").items()) {
      result.middleware_options.emplace_back(key, value.get<std::string>());
    }
  }
  if (config.contains("executor") && !config.at("executor").is_null()) {
    result.live.executor = executor_kind(config.at("executor").get<std::string>());
  }
  result.live.duration_ns = positive(config, "duration_ns", 0);
  result.live.warmup_ns = not_negative(config, "warmup_ns", 0);
  result.sampling_ns = positive(config, "sampling_ns", result.sampling_ns);
  result.checkpoint_ns = positive(config, "checkpoint_ns", result.checkpoint_ns);
  result.discovery_timeout_ns = not_negative(config, "discovery_timeout_ns", result.discovery_timeout_ns);
  result.seed = config.value("seed", result.seed);
  result.records = config.at("records").get<std::string>();
  if (config.contains("thresholds")) {
    const json& thresholds = config.at("thresholds");
    measure::ThresholdSettings& to = result.live.thresholds;
    to.late_percent = thresholds.value("late_percent", to.late_percent);
    to.late_ns = thresholds.value("late_ns", to.late_ns);
    to.too_late_percent = thresholds.value("too_late_percent", to.too_late_percent);
    to.too_late_ns = thresholds.value("too_late_ns", to.too_late_ns);
  }
  for (const json& name : config.value("measure", json::array())) {
    if (name == "dispatch") {
      result.live.measure_dispatch = true;
    } else if (name == "work") {
      result.live.measure_work = true;
    } else {
      throw std::invalid_argument("measure: unknown '" + name.dump() + "', known are dispatch and work");
    }
  }
  return result;
}

}  // namespace

Config read_config(const std::string& file) {
  std::ifstream stream(file);
  if (!stream) throw runtime::Error(runtime::Error::Kind::kBadInput, file + ": cannot be read");
  try {
    return parse(json::parse(stream));
  } catch (const std::exception& error) {
    throw runtime::Error(runtime::Error::Kind::kBadInput, file + ": " + error.what());
  }
}

}  // namespace perflab::node
