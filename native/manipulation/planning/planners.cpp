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

// Those that MoveIt registers (planning_context_manager.cpp), and two more that find optimal paths.
const std::map<std::string, MakePlanner, std::less<>>& planners() {
  static const std::map<std::string, MakePlanner, std::less<>> known = {
      {"AnytimePathShortening", make<og::AnytimePathShortening>},
      {"BFMT", make<og::BFMT>},
      {"BITstar", make<og::BITstar>},
      {"BKPIECE", make<og::BKPIECE1>},
      {"BiEST", make<og::BiEST>},
      {"BiTRRT", make<og::BiTRRT>},
      {"EST", make<og::EST>},
      {"FMT", make<og::FMT>},
      {"InformedRRTstar", make<og::InformedRRTstar>},
      {"KPIECE", make<og::KPIECE1>},
      {"LBKPIECE", make<og::LBKPIECE1>},
      {"LBTRRT", make<og::LBTRRT>},
      {"LazyPRM", make<og::LazyPRM>},
      {"LazyPRMstar", make<og::LazyPRMstar>},
      {"LazyRRT", make<og::LazyRRT>},
      {"PDST", make<og::PDST>},
      {"PRM", make<og::PRM>},
      {"PRMstar", make<og::PRMstar>},
      {"ProjEST", make<og::ProjEST>},
      {"RRT", make<og::RRT>},
      {"RRTConnect", make<og::RRTConnect>},
      {"RRTstar", make<og::RRTstar>},
      {"SBL", make<og::SBL>},
      {"SPARS", make<og::SPARS>},
      {"SPARStwo", make<og::SPARStwo>},
      {"STRIDE", make<og::STRIDE>},
      {"TRRT", make<og::TRRT>},
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
  throw BadInput("there is no planner " + quote(name) + "; known: " +
                 list_of(std::vector<std::string_view>(names.begin(), names.end())));
}

std::vector<std::string> planner_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : planners()) names.push_back(name);
  return names;
}

}  // namespace perflab::manipulation::planning
