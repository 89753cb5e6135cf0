#include "manipulation/planning/planners.h"

#include <ompl/base/Planner.h>
#include <ompl/geometric/planners/AnytimePathShortening.h>
#include <ompl/geometric/planners/est/BiEST.h>
#include <ompl/geometric/planners/est/EST.h>
#include <ompl/geometric/planners/est/ProjEST.h>
#include <ompl/geometric/planners/fmt/BFMT.h>
#include <ompl/geometric/planners/fmt/FMT.h>
#include <ompl/geometric/planners/informedtrees/BITstar.h>
#include <ompl/geometric/planners/kpiece/BKPIECE1.h>
#include <ompl/geometric/planners/kpiece/KPIECE1.h>
#include <ompl/geometric/planners/kpiece/LBKPIECE1.h>
#include <ompl/geometric/planners/pdst/PDST.h>
#include <ompl/geometric/planners/prm/LazyPRM.h>
#include <ompl/geometric/planners/prm/LazyPRMstar.h>
#include <ompl/geometric/planners/prm/PRM.h>
#include <ompl/geometric/planners/prm/PRMstar.h>
#include <ompl/geometric/planners/prm/SPARS.h>
#include <ompl/geometric/planners/prm/SPARStwo.h>
#include <ompl/geometric/planners/rrt/BiTRRT.h>
#include <ompl/geometric/planners/rrt/InformedRRTstar.h>
#include <ompl/geometric/planners/rrt/LBTRRT.h>
#include <ompl/geometric/planners/rrt/LazyRRT.h>
#include <ompl/geometric/planners/rrt/RRT.h>
#include <ompl/geometric/planners/rrt/RRTConnect.h>
#include <ompl/geometric/planners/rrt/RRTstar.h>
#include <ompl/geometric/planners/rrt/TRRT.h>
#include <ompl/geometric/planners/sbl/SBL.h>
#include <ompl/geometric/planners/stride/STRIDE.h>

#include <map>
#include <memory>
#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace perflab::manipulation::planning {
namespace {

namespace og = ompl::geometric;

template <typename Planner>
ompl::base::PlannerPtr make(const ompl::base::SpaceInformationPtr& space) {
  return std::make_shared<Planner>(space);
}

// Those registered by MoveIt (planning_context_manager.cpp), and two more that find optimal paths;
// catalog/planners.json maps names to OMPL's classes.
const std::map<std::string, MakePlanner, std::less<>>& planners() {
  static const std::map<std::string, MakePlanner, std::less<>> known = {
#include "planners.inc"
  };
  return known;
}

}  // namespace

MakePlanner planner_named(const std::string& name) {
  std::string_view plain = name.empty() ? std::string_view(kDefaultPlanner) : std::string_view(name);
  constexpr std::string_view kPrefix = "geometric::";
  constexpr std::string_view kSuffix = "kConfigDefault";
  if (plain.starts_with(kPrefix)) plain.remove_prefix(kPrefix.size());
  if (plain.ends_with(kSuffix)) plain.remove_suffix(kSuffix.size());
  const auto found = planners().find(plain);
  if (found != planners().end()) return found->second;
  const std::vector<std::string> names = planner_names();
  throw BadInput("unknown planner " + quote(name) + "; known: " +
                 list_of(std::vector<std::string_view>(names.begin(), names.end())));
}

std::vector<std::string> planner_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : planners()) names.push_back(name);
  return names;
}

}  // namespace perflab::manipulation::planning
