// Many random motions in each scene: they keep their limits, and do not collide according to a finer check.
#include <gtest/gtest.h>

#include "motions.h"

namespace perflab::manipulation::planning {
namespace {

class Scenes : public ::testing::TestWithParam<const char*> {};

TEST_P(Scenes, PlansToRandomGoalsKeepLimitsAndCollideNowhere) { plan_random_goals(GetParam(), 200, 3); }

INSTANTIATE_TEST_SUITE_P(All, Scenes, ::testing::Values("empty", "table", "obstacle", "shelf", "pick_and_place"));

}  // namespace
}  // namespace perflab::manipulation::planning
