// Goals: when they are satisfied, their samples, and MoveIt's codes.
#include "manipulation/planning/goal.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "manipulation/planning/error_codes.h"
#include "manipulation/planning/planners.h"
#include "support.h"

namespace perflab::manipulation::planning {
namespace {

TEST(Goal, APoseIsMetWithinItsTolerances) {
  const auto model = panda();
  State state(model);
  state.set(model->named_state("ready"));
  const Pose pose = state.pose(model->flange());
  PoseGoal goal;
  goal.link = model->flange();
  goal.orientation = Eigen::Quaterniond(pose.linear());
  goal.position = pose.translation() + Eigen::Vector3d(0.0099, 0.0, 0.0);
  EXPECT_TRUE(satisfies(goal, state));
  goal.position = pose.translation() + Eigen::Vector3d(0.0, 0.0102, 0.0);
  EXPECT_FALSE(satisfies(goal, state));
  goal.position = pose.translation();
  for (int axis = 0; axis < 3; ++axis) {
    for (const double angle : {-0.09, 0.09, 0.11, -0.11}) {
      for (const auto angles : {PoseGoal::Angles::kXyzEuler, PoseGoal::Angles::kRotationVector}) {
        goal.angles = angles;
        // The arm is rotated by `angle` relative to the goal.
        goal.orientation = Eigen::Quaterniond(pose.linear()) * Eigen::AngleAxisd(-angle, Eigen::Vector3d::Unit(axis));
        EXPECT_EQ(satisfies(goal, state), std::abs(angle) < 0.1) << axis << ' ' << angle;
        EXPECT_NEAR(orientation_error(goal, pose)[axis], std::abs(angle), 1e-9);
      }
    }
  }
}

TEST(Goal, JointsAreMetWithinTheirTolerance) {
  const auto model = panda();
  State state(model);
  JointGoal goal{model->named_state("ready"), 0.01};
  state.set(goal.positions);
  EXPECT_TRUE(satisfies(goal, state));
  goal.positions[6] += 0.02;
  EXPECT_FALSE(satisfies(goal, state));
}

TEST(Goal, SamplesOfAPoseMeetItWithinTheLimitsAndDiffer) {
  const auto model = panda("table");
  State state(model);
  const PoseGoal goal = reach(*model);
  SplitMix64 random(7);
  const GoalSamples samples = sample_goals(model, goal, state, model->named_state("ready"), {}, random);
  ASSERT_EQ(samples.valid.size(), 10U);
  for (const Positions& positions : samples.valid) {
    EXPECT_TRUE(within_limits(*model, positions));
    state.set(positions);
    EXPECT_TRUE(satisfies(goal, state));
    EXPECT_FALSE(state.collides());
  }
  SplitMix64 again(7);
  EXPECT_EQ(sample_goals(model, goal, state, model->named_state("ready"), {}, again).valid, samples.valid);
}

TEST(Goal, WhatCannotBeReachedHasNoSamples) {
  const auto model = panda();
  State state(model);
  PoseGoal goal = reach(*model);
  goal.position = {2.0, 0.0, 0.5};
  SplitMix64 random(1);
  const GoalSearch few{.most = 10, .tries = 5, .stop = {}};
  const GoalSamples samples = sample_goals(model, goal, state, model->named_state("ready"), few, random);
  EXPECT_TRUE(samples.valid.empty());
  EXPECT_EQ(samples.reached, 0U);
  EXPECT_EQ(samples.tries, 5U);
  goal = reach(*model);
  int asked = 0;
  const GoalSearch stopped{.most = 10, .tries = 100, .stop = [&] { return ++asked > 3; }};
  EXPECT_LE(sample_goals(model, goal, state, model->named_state("ready"), stopped, random).tries, 4U);
}

TEST(Goal, AJointGoalIsWhereItSaysOrAtTheLimitThatItIsNear) {
  const auto model = panda();
  State state(model);
  SplitMix64 random(1);
  JointGoal goal{model->named_state("ready"), 0.001};
  EXPECT_EQ(sample_goals(model, goal, state, goal.positions, {}, random).valid, std::vector<Positions>{goal.positions});
  goal.positions[0] = model->limits()[0].upper + 0.0005;
  const GoalSamples samples = sample_goals(model, goal, state, goal.positions, {}, random);
  ASSERT_EQ(samples.valid.size(), 1U);
  EXPECT_EQ(samples.valid[0][0], model->limits()[0].upper);
  goal.positions[0] = model->limits()[0].upper + 0.01;
  EXPECT_TRUE(sample_goals(model, goal, state, goal.positions, {}, random).valid.empty());
}

TEST(ErrorCodes, AreThoseOfMoveItsDefinition) {
  EXPECT_EQ(code_of("SUCCESS"), 1);
  EXPECT_EQ(code_of("START_STATE_INVALID"), -26);
  EXPECT_EQ(label_of(-4), "CONTROL_FAILED");
  EXPECT_EQ(label_of(99999), "FAILURE");
  EXPECT_EQ(label_of(-4711), "unknown");
  EXPECT_THROW((void)code_of("NO_SUCH_CODE"), Failed);
}

TEST(Planners, AreFoundByEachOfTheirNames) {
  EXPECT_NO_THROW((void)planner_named(""));
  EXPECT_NO_THROW((void)planner_named("RRTConnect"));
  EXPECT_NO_THROW((void)planner_named("geometric::RRTstar"));
  EXPECT_NO_THROW((void)planner_named("LazyPRMkConfigDefault"));
  try {
    (void)planner_named("RRTconnect");
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_NE(std::string(error.what()).find("RRTConnect"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace perflab::manipulation::planning
