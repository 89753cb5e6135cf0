// Collision checkers by name: `mujoco`, convex hulls by MuJoCo; `fcl`, triangle meshes and solid primitives
// by FCL, MoveIt's default library and shapes.
//
// Example:
//   const auto model = Model::load("panda", "table", collision_checker_named("fcl"));
#pragma once

#include <string>
#include <vector>

#include "manipulation/robot/collision.h"

namespace perflab::manipulation::planning {

inline constexpr const char* kDefaultCollisionChecker = "mujoco";

// Throws BadInput, listing the known names; Unsupported if this build does not include the checker.
[[nodiscard]] MakeChecker collision_checker_named(const std::string& name);

// All known names, including those that this build does not include.
[[nodiscard]] std::vector<std::string> collision_checker_names();

}  // namespace perflab::manipulation::planning
