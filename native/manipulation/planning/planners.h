// OMPL's planners by MoveIt's names.
//
// Example:
//   const auto make = planner_named("RRTConnect");   // also: "geometric::RRTConnect", "RRTConnectkConfigDefault"
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace ompl::base {
class Planner;
class SpaceInformation;
}  // namespace ompl::base

namespace perflab::manipulation::planning {

inline constexpr const char* kDefaultPlanner = "RRTConnect";

// OMPL's PlannerAllocator.
using MakePlanner =
    std::function<std::shared_ptr<ompl::base::Planner>(const std::shared_ptr<ompl::base::SpaceInformation>&)>;

// "" is the default. Throws BadInput, listing the known names.
[[nodiscard]] MakePlanner planner_named(const std::string& name);

[[nodiscard]] std::vector<std::string> planner_names();  // sorted

}  // namespace perflab::manipulation::planning
