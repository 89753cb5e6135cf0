// Plans of the whole pipeline: they reach their goal, keep limits, do not collide, and fail with MoveIt's
// codes.
#include "manipulation/planning/planner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cmath>

#include "base/error.h"
#include "manipulation/planning/error_codes.h"
#include "manipulation/planning/planners.h"
#include "motions.h"
#include "support.h"

namespace perflab::manipulation::planning {
namespace {

TEST(Planner, ReachesAPoseAndSaysWhatEachPartTook) {
  const auto model = panda("table");
  State scene(model);
  const Request request = from_ready(*model, reach(*model));
  const Result result = plan(model, request, scene);
  ASSERT_TRUE(result.succeeded()) << label_of(result.code) << ": " << result.message;
  const Trajectory& trajectory = result.trajectory;
  EXPECT_LT((trajectory.points.front().position - joints_of(request.start)).norm(), 1e-9);
  EXPECT_EQ(trajectory.points.front().velocity.norm(), 0.0);
  EXPECT_EQ(trajectory.points.back().velocity.norm(), 0.0);
  EXPECT_FALSE(check(commanded(trajectory, model->joints()), model->joints())) << "the controller takes it";
  scene.set(positions_of(trajectory.points.back().position));
  EXPECT_TRUE(satisfies(request.goals.front(), scene));
  expect_within_limits(*model, request, trajectory);
  EXPECT_EQ(deepest(trajectory, scene, 1e-3), 0.0);
  for (const Nanoseconds took : {result.times.ik, result.times.solve, result.times.simplify, result.times.parameterize,
                                 result.times.validate}) {
    EXPECT_GT(took, 0);
  }
  EXPECT_GT(result.checked_states, 0U);
  EXPECT_EQ(result.goal_samples, 10U);
  EXPECT_GT(result.path_length, 0.0);
  EXPECT_LE(result.path_length, trajectory.length() * 1.2);
}

TEST(Planner, GoesHomeByJointsAndEndsThere) {
  const auto model = panda("table");
  State scene(model);
  SplitMix64 random(11);
  Request request = from_ready(*model, JointGoal{model->named_state("ready")});
  request.start = random_goal(*model, scene, random);
  const Result result = plan(model, request, scene);
  ASSERT_TRUE(result.succeeded()) << label_of(result.code) << ": " << result.message;
  EXPECT_LT((result.trajectory.points.back().position - joints_of(model->named_state("ready"))).cwiseAbs().maxCoeff(), 1e-6);
}

TEST(Planner, TheSameSeedGivesTheSamePlanAndAnotherOneAnother) {
  const auto model = panda("shelf");
  State scene(model);
  Request request = from_ready(*model, reach(*model));
  request.goals = {JointGoal{{1.5, 0.5, -0.5, -1.5, 0.3, 2.0, -1.0}}};
  const auto with_seed = [&](std::uint32_t seed) {
    request.seed = seed;
    return plan(model, request, scene);
  };
  const Result first = with_seed(5);
  const Result second = with_seed(5);
  const Result other = with_seed(6);
  ASSERT_TRUE(first.succeeded()) << label_of(first.code) << ": " << first.message;
  ASSERT_EQ(first.trajectory.points.size(), second.trajectory.points.size());
  for (std::size_t i = 0; i < first.trajectory.points.size(); ++i) {
    EXPECT_EQ(first.trajectory.points[i].position, second.trajectory.points[i].position);
  }
  EXPECT_EQ(first.checked_states, second.checked_states);
  EXPECT_NE(first.checked_states, other.checked_states);
}

// Regardless of which thread is fastest.
TEST(Planner, TheSameSeedGivesTheSamePlanOfSeveralAttempts) {
  const auto model = panda("obstacle");
  State scene(model);
  Request request = from_ready(*model, reach(*model));
  for (const std::size_t attempts : {3U, 6U}) {
    request.attempts = attempts;
    const Result first = plan(model, request, scene);
    ASSERT_TRUE(first.succeeded()) << label_of(first.code) << ": " << first.message;
    for (int again = 0; again < 5; ++again) {
      const Result next = plan(model, request, scene);
      ASSERT_EQ(first.trajectory.points.size(), next.trajectory.points.size());
      for (std::size_t i = 0; i < first.trajectory.points.size(); ++i) {
        ASSERT_EQ(first.trajectory.points[i].position, next.trajectory.points[i].position);
      }
    }
  }
}

TEST(Planner, SeveralAttemptsAreMadeTogether) {
  const auto model = panda("obstacle");
  State scene(model);
  for (const std::size_t attempts : {3U, 6U}) {
    Request request = from_ready(*model, reach(*model));
    request.attempts = attempts;
    const Result result = plan(model, request, scene);
    ASSERT_TRUE(result.succeeded()) << label_of(result.code) << ": " << result.message;
    EXPECT_EQ(deepest(result.trajectory, scene, 1e-3), 0.0);
  }
}

TEST(Planner, EachPlannerFindsTheWayOrSaysWhyNot) {
  const auto model = panda("table");
  State scene(model);
  for (const std::string& name : planner_names()) {
    Request request = from_ready(*model, JointGoal{{0.6, -0.3, 0.0, -2.0, 0.0, 1.7, 0.785}});
    request.planner = name;
    request.allowed_time = 0.25;
    const Result result = plan(model, request, scene);
    const std::string_view label = label_of(result.code);
    EXPECT_TRUE(result.succeeded() || label == "TIMED_OUT" || label == "PLANNING_FAILED" || label == "INVALID_MOTION_PLAN")
        << name << ": " << label << ": " << result.message;
    if (name == kDefaultPlanner || name == "RRT" || name == "PRM" || name == "KPIECE") {
      EXPECT_TRUE(result.succeeded()) << name << ": " << label << ": " << result.message;
    }
  }
}

TEST(Planner, EachFailureHasMoveItsCode) {
  const auto model = panda("table");
  State scene(model);
  const auto label = [&](const Request& request) {
    const Result result = plan(model, request, scene);
    EXPECT_TRUE(result.trajectory.points.empty());
    EXPECT_FALSE(result.message.empty());
    return label_of(result.code);
  };
  Request right = from_ready(*model, reach(*model));
  right.allowed_time = 60.0;  // only the last one lacks time

  Request request = right;
  request.start[3] = 0.5;
  EXPECT_EQ(label(request), "START_STATE_INVALID");
  request.start = {0.0, 0.0};
  EXPECT_EQ(label(request), "START_STATE_INVALID");
  request.start = right.start;
  request.start[1] = 1.7;  // the arm lies on the table
  EXPECT_EQ(label(request), "START_STATE_IN_COLLISION");

  request = right;
  request.goals.clear();
  EXPECT_EQ(label(request), "INVALID_GOAL_CONSTRAINTS");
  request.goals = {JointGoal{{0.0}}};
  EXPECT_EQ(label(request), "INVALID_GOAL_CONSTRAINTS");
  PoseGoal far = reach(*model);
  far.position = {0.0, 0.0, 1.5};
  request.goals = {far};
  EXPECT_EQ(label(request), "NO_IK_SOLUTION");
  request.workspace = Workspace{Eigen::Vector3d::Constant(-1.0), Eigen::Vector3d::Constant(1.0)};
  EXPECT_EQ(label(request), "INVALID_GOAL_CONSTRAINTS");
  PoseGoal inside = reach(*model);
  inside.position = {0.65, 0.0, 0.18};  // inside the table
  request.goals = {inside};
  EXPECT_EQ(label(request), "GOAL_IN_COLLISION");
  request.goals = {JointGoal{{0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0}}};
  EXPECT_EQ(label(request), "GOAL_STATE_INVALID");

  request = right;
  request.planner = "NoSuchPlanner";
  EXPECT_EQ(label(request), "PLANNING_FAILED");
  request = right;
  request.velocity_scaling = 0.0;
  EXPECT_EQ(label(request), "INVALID_MOTION_PLAN");
  request = right;
  request.allowed_time = 1e-9;
  EXPECT_EQ(label(request), "TIMED_OUT");
}

TEST(Planner, IsCancelled) {
  const auto model = panda("table");
  State scene(model);
  Request request = from_ready(*model, reach(*model));
  request.planner = "RRTstar";  // uses all available time
  request.allowed_time = 600.0;
  std::atomic<int> asked{0};
  request.cancelled = [&] { return ++asked > 1000; };
  const Result result = plan(model, request, scene);
  EXPECT_EQ(label_of(result.code), "PREEMPTED");
}

TEST(Planner, AnAttachedBoxIsAPartOfTheArm) {
  const auto model = panda("pick_and_place");
  State scene(model);
  scene.set(model->named_state("ready"));
  Pose grasp = Pose::Identity();
  scene.attach("workpiece", model->tip(), grasp);
  const Request request = from_ready(*model, JointGoal{{-0.5, 0.2, 0.0, -1.9, 0.0, 2.1, 0.785}});
  const Result result = plan(model, request, scene);
  ASSERT_TRUE(result.succeeded()) << label_of(result.code) << ": " << result.message;
  EXPECT_EQ(deepest(result.trajectory, scene, 1e-3), 0.0);
}

TEST(Planner, NothingOfTheArmIsFartherFromAJointThanItsReachSays) {
  const auto model = panda("pick_and_place");
  State state(model);
  state.attach("workpiece", model->tip(), Pose::Identity());
  const std::vector<double> reach = reaches(state);
  SplitMix64 random(9);
  for (int round = 0; round < 200; ++round) {
    const Positions before = random_positions(*model, random);
    for (std::size_t joint = 0; joint < before.size(); ++joint) {
      // A small rotation of one joint moves the tip and the box by at most its reach times the angle.
      state.set(before);
      const Eigen::Vector3d tip = state.pose(model->tip()).translation();
      const Eigen::Vector3d box = state.object("workpiece").translation();
      Positions turned = before;
      turned[joint] += 1e-3;
      state.set(turned);
      EXPECT_LE((state.pose(model->tip()).translation() - tip).norm(), reach[joint] * 1e-3);
      EXPECT_LE((state.object("workpiece").translation() - box).norm(), reach[joint] * 1e-3);
    }
  }
  EXPECT_LT(reach.back(), 0.5);
  EXPECT_LT(reach.front(), 2.0);
}

TEST(Planner, PlansToRandomGoalsCollideNowhereWhenLookedAtMoreFinely) {
  plan_random_goals("table", 10, 1);
  plan_random_goals("obstacle", 10, 2);
}

}  // namespace
}  // namespace perflab::manipulation::planning
