#include "programs/churn/config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "base/config_file.h"
#include "graph/check.h"

namespace perflab::churn {
namespace {

using nlohmann::json;

// Beyond this, creation and deletion take longer than the period.
constexpr double kHighestRate = 10'000.0;
constexpr double kLowestRate = 0.01;
constexpr std::size_t kMostTopics = 1'000;

What read_what(const std::string& word) {
  if (word == "endpoints") return What::kEndpoints;
  if (word == "participants") return What::kParticipants;
  throw std::invalid_argument("what: unknown '" + word + "', known are endpoints and participants");
}

Config parse(const json& config) {
  Config result;
  const json& middleware = config.at("middleware");
  result.library = middleware.at("library").get<std::string>();
  result.participant.domain = middleware.at("domain").get<std::uint32_t>();
  result.participant.network = middleware.value("network", result.participant.network);
  result.participant.participants_expected = config.value("participants_expected", 2u);
  if (middleware.contains("options")) {
    for (const auto& [key, value] : middleware.at("options").items()) {
      result.participant.options.emplace_back(key, value.get<std::string>());
    }
  }
  result.what = read_what(config.at("what").get<std::string>());
  const double rate_hz = config.at("rate_hz").get<double>();
  if (!(rate_hz >= kLowestRate && rate_hz <= kHighestRate))
    throw std::invalid_argument("rate_hz: must be from 0.01 to 10000");
  result.period_ns = static_cast<Nanoseconds>(std::llround(1e9 / rate_hz));
  result.topics = config.at("topics").get<std::size_t>();
  if (result.topics < 1 || result.topics > kMostTopics)
    throw std::invalid_argument("topics: must be from 1 to 1000");
  const auto type = config.at("type").get<std::string>();
  if (const std::string problem = graph::type_problem(*result.messages, type); !problem.empty())
    throw std::invalid_argument(problem);
  result.type = result.messages->find(type);
  if (config.contains("records") && !config.at("records").is_null())
    result.records = config.at("records").get<std::string>();
  return result;
}

}  // namespace

Config read_config(const std::string& file) { return read_config_file(file, parse); }

}  // namespace perflab::churn
