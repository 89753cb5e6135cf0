#include "manipulation/planning/error_codes.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "message/definitions.h"
#include "message/library.h"

namespace perflab::manipulation::planning {
namespace {

using Codes = std::vector<std::pair<std::string, std::int32_t>>;

const Codes& codes() {
  static const Codes known = [] {
    message::Library library(message::brought());
    Codes result;
    for (const message::Constant& constant : library.find("moveit_msgs/msg/MoveItErrorCodes").constants) {
      result.emplace_back(constant.name, static_cast<std::int32_t>(std::get<std::int64_t>(constant.value)));
    }
    return result;
  }();
  return known;
}

}  // namespace

std::int32_t code_of(std::string_view label) {
  const auto found = std::find_if(codes().begin(), codes().end(), [&](const auto& code) { return code.first == label; });
  if (found == codes().end()) throw Failed("moveit_msgs/msg/MoveItErrorCodes has no " + std::string(label));
  return found->second;
}

std::string_view label_of(std::int32_t code) {
  const auto found = std::find_if(codes().begin(), codes().end(), [&](const auto& each) { return each.second == code; });
  return found == codes().end() ? std::string_view("unknown") : std::string_view(found->first);
}

std::string_view outcome_of(std::int32_t code, bool executing) {
  static const std::map<std::string_view, std::string_view> known = {
      {"MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE", "would_collide"},
      {"START_STATE_IN_COLLISION", "would_collide"},
      {"GOAL_IN_COLLISION", "would_collide"},
      {"UNABLE_TO_AQUIRE_SENSOR_DATA", "no_state"},
      {"ROBOT_STATE_STALE", "no_state"},
      {"COMMUNICATION_FAILURE", "server_not_ready"},
      {"PREEMPTED", "preempted"}};
  const std::string_view label = label_of(code);
  if (label == "TIMED_OUT") return executing ? "execution_timeout" : "planning_timeout";
  const auto found = known.find(label);
  if (found != known.end()) return found->second;
  return executing ? "goal_aborted" : "planning_failed";
}

}  // namespace perflab::manipulation::planning
