#include "manipulation/planning/error_codes.h"

#include <algorithm>
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

}  // namespace perflab::manipulation::planning
