#include "traceview/export_input.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace perflab::traceview {
namespace {

using Json = nlohmann::json;

std::optional<std::int64_t> time_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || found->is_null()) return std::nullopt;
  return found->get<std::int64_t>();
}

template <typename T>
T value_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found == json.end() ? T{} : found->get<T>();
}

}  // namespace

ExportOptions parse_export_options(std::string_view text) {
  ExportOptions out;
  try {
    const Json json = Json::parse(text);
    out.begin_ns = time_of(json, "begin_ns"), out.end_ns = time_of(json, "end_ns");
    out.epoch_offset_ns = time_of(json, "epoch_offset_ns");
    for (const auto& [key, names] : {std::pair{"processes", &out.processes},
                                     {"threads", &out.threads},
                                     {"callbacks", &out.callbacks},
                                     {"publishers", &out.publishers},
                                     {"subscriptions", &out.subscriptions},
                                     {"functions", &out.functions},
                                     {"quality", &out.quality}}) {
      *names = value_of<std::vector<std::string>>(json, key);
    }
    for (const Json& loss : value_of<Json>(json, "losses")) {
      out.losses.push_back({{time_of(loss, "begin_ns"), time_of(loss, "end_ns")},
                            loss.at("track").get<std::string>(),
                            loss.at("text").get<std::string>()});
    }
    for (const Json& mark : value_of<Json>(json, "marks")) {
      out.marks.push_back({mark.at(0).get<std::int64_t>(), mark.at(1).get<std::string>()});
    }
    out.gaps = value_of<std::vector<std::pair<std::int64_t, std::int64_t>>>(json, "gaps");
    out.not_taken = value_of<std::vector<std::pair<std::int32_t, std::int32_t>>>(json, "not_taken");
    out.wall = value_of<bool>(json, "wall");
  } catch (const Json::exception& error) {
    throw std::invalid_argument(std::string("options of the export: ") + error.what());
  }
  return out;
}

std::string export_name(const std::vector<std::string>& names, std::int32_t row) {
  if (row >= 0 && at(row) < names.size()) return names[at(row)];
  std::string number = "#";
  number += std::to_string(row);
  return number;
}

}  // namespace perflab::traceview
