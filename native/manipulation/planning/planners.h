// OMPL's planners by the names that MoveIt has for them.
//
// Example:
//   const auto make = planner_named("RRTConnect");   // as well: "geometric::RRTConnect", "RRTConnectkConfigDefault"
#pragma once

#include <ompl/base/Planner.h>

#include <string>
#include <vector>

namespace perflab::manipulation::planning {

inline constexpr const char* kDefaultPlanner = "RRTConnect";

// "" is the default. Throws BadInput that names those known.
[[nodiscard]] ompl::base::PlannerAllocator planner_named(const std::string& name);

[[nodiscard]] std::vector<std::string> planner_names();  // sorted

}  // namespace perflab::manipulation::planning
