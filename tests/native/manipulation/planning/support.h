// The arm and the goal of the planning tests.
#pragma once

#include <memory>
#include <string>

#include "manipulation/planning/goal.h"

namespace perflab::manipulation::planning {

inline std::shared_ptr<const Model> panda(const std::string& scene = "empty") { return Model::load("panda", scene); }

// The pose that the benchmark reaches for; the hand points down.
inline PoseGoal reach(const Model& model) {
  PoseGoal goal;
  goal.link = model.flange();
  goal.position = {0.4, 0.2, 0.5};
  goal.orientation = Eigen::Quaterniond(0.0, 1.0, 0.0, 0.0);
  return goal;
}

}  // namespace perflab::manipulation::planning
