// Collision checkers compared: FCL on meshes, as in MoveIt, and MuJoCo on convex hulls.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/random.h"
#include "manipulation/planning/collision_checkers.h"
#include "manipulation/planning/error_codes.h"
#include "manipulation/planning/planner.h"
#include "motions.h"
#include "support.h"

namespace perflab::manipulation::planning {
namespace {

TEST(CollisionCheckers, AnUnknownNameIsRefusedWithThoseKnown) {
  try {
    static_cast<void>(collision_checker_named("bullet"));
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "unknown collision checker 'bullet'; known: fcl or mujoco");
  }
}

#if PERFLAB_HAS_FCL

TEST(CollisionCheckers, AgreeOnRandomConfigurationsBeyondAMargin) {
  // The Panda's meshes are convex: beyond this distance or depth, FCL agrees with MuJoCo. FCL misses objects
  // entirely inside a mesh, as a finger can be in link5, which requires a depth of more than its size.
  constexpr double kMargin = 1e-4;
  constexpr double kFinger = 0.02;
  constexpr int kConfigurations = 2000;
  for (const char* const name : {"table", "shelf", "pick_and_place"}) {
    State hulls(Model::load("panda", name)), meshes(Model::load("panda", name, collision_checker_named("fcl")));
    SplitMix64 random(7);
    int free = 0, touching = 0, within = 0;
    for (int each = 0; each < kConfigurations; ++each) {
      const Positions positions = random_positions(hulls.model(), random);
      hulls.set(positions);
      meshes.set(positions);
      if (const auto contact = hulls.contact(); contact && contact->distance < -kMargin) {
        ++touching;
        if (meshes.collides()) continue;
        ++within;
        EXPECT_LT(contact->distance, -kFinger) << name << ": " << contact->first << ", " << contact->second;
      } else if (!hulls.nearest(kMargin)) {
        ++free;
        const auto mesh = meshes.contact();
        EXPECT_FALSE(mesh) << name << ": " << mesh->first << ", " << mesh->second;
      }
    }
    EXPECT_GT(free, kConfigurations / 10) << name;
    EXPECT_GT(touching, kConfigurations / 10) << name;
    EXPECT_LT(within, touching / 50) << name;
  }
}

TEST(CollisionCheckers, AgreeOnWhatIsNearest) {
  constexpr double kMost = 0.1;
  State hulls(Model::load("panda", "shelf")), meshes(Model::load("panda", "shelf", collision_checker_named("fcl")));
  SplitMix64 random(8);
  int compared = 0;
  for (int each = 0; each < 200; ++each) {
    const Positions positions = random_positions(hulls.model(), random);
    hulls.set(positions);
    meshes.set(positions);
    const auto hull = hulls.nearest(kMost), mesh = meshes.nearest(kMost);
    if (!hull || hull->distance <= 0.0) continue;
    ++compared;
    ASSERT_TRUE(mesh) << hull->distance;
    EXPECT_NEAR(mesh->distance, hull->distance, 1e-4) << hull->first << ", " << hull->second;
    EXPECT_LT((mesh->point - hull->point).norm(), 0.05) << hull->first << ", " << hull->second;
  }
  EXPECT_GT(compared, 20);
}

TEST(CollisionCheckers, FclKnowsWhatIsHeldAndWhatMayTouch) {
  State state(Model::load("panda", "pick_and_place", collision_checker_named("fcl")));
  const std::string object = [&] {
    for (const SceneObject& each : state.model().scene().objects) {
      if (each.movable()) return each.name;
    }
    return std::string();
  }();
  ASSERT_FALSE(object.empty());
  state.place(object, state.pose(state.model().tip()));
  ASSERT_TRUE(state.collides()) << "the object is between the fingers";
  state.attach(object, state.model().tip());
  EXPECT_FALSE(state.collides()) << "the hand holds it";
}

TEST(CollisionCheckers, APlanByFclCollidesNowhereByMujoco) {
  const auto by_fcl = Model::load("panda", "table", collision_checker_named("fcl"));
  const auto by_mujoco = panda("table");
  State scene(by_fcl), other(by_mujoco);
  const Request request = from_ready(*by_fcl, reach(*by_fcl));
  const Result result = plan(by_fcl, request, scene);
  ASSERT_TRUE(result.succeeded()) << label_of(result.code) << ": " << result.message;
  EXPECT_EQ(deepest(result.trajectory, other, 1e-3), 0.0);
}

#else

TEST(CollisionCheckers, WhatThisBuildDoesNotHaveIsRefused) {
  EXPECT_THROW(static_cast<void>(collision_checker_named("fcl")), Unsupported);
}

#endif

}  // namespace
}  // namespace perflab::manipulation::planning
