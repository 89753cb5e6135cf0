// A robot and its surroundings for a film of a trial (docs/programs.md#a-film-of-a-trial).
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "manipulation/robot/robot.h"

namespace perflab::manipulation {

struct Stage {
  nlohmann::json scene;
  std::vector<std::string> columns;  // positions of all joints, in MuJoCo's order (qpos)
};

[[nodiscard]] Stage stage_of(const Model& model);

}  // namespace perflab::manipulation
