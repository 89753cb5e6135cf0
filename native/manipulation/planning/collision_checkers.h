// What finds collisions, by name: `mujoco`, convex hulls by MuJoCo; `fcl`, triangle meshes and solid primitives by FCL, the
// library and the shapes that MoveIt has by default.
//
// Example:
//   const auto model = Model::load("panda", "table", collision_checker_named("fcl"));
#pragma once

#include <string>
#include <vector>

#include "manipulation/robot/collision.h"

namespace perflab::manipulation::planning {

inline constexpr const char* kDefaultCollisionChecker = "mujoco";

// Throws BadInput that names those known, Unsupported where this build has none of that name.
[[nodiscard]] MakeChecker collision_checker_named(const std::string& name);

// All that are known, whether this build has them or not.
[[nodiscard]] std::vector<std::string> collision_checker_names();

}  // namespace perflab::manipulation::planning
