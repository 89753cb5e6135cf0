#include "manipulation/planning/collision_checkers.h"

#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "manipulation/planning/fcl_checker.h"

namespace perflab::manipulation::planning {

MakeChecker collision_checker_named(const std::string& name) {
  if (name == kDefaultCollisionChecker) return mujoco_checker;
  if (name == "fcl") {
#if PERFLAB_HAS_FCL
    return fcl_checker;
#else
    throw Unsupported("collision checking by fcl: FCL was not found when perflab was built; `make manipulation` installs it");
#endif
  }
  const std::vector<std::string> names = collision_checker_names();
  throw BadInput("unknown collision checker " + quote(name) + "; known: " +
                 list_of(std::vector<std::string_view>(names.begin(), names.end())));
}

std::vector<std::string> collision_checker_names() { return {"fcl", kDefaultCollisionChecker}; }

}  // namespace perflab::manipulation::planning
