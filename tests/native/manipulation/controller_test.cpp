// How goals start, end and fail, and that commands stay within the joint limits for any trajectory.
#include "manipulation/control/controller.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>

#include "base/random.h"
#include "manipulation/control/servo.h"

namespace perflab::manipulation {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kPeriod = 2 * kMs;
using Status = TrajectoryGoal::Status;

TrajectoryController::Settings settings_of_two() {
  TrajectoryController::Settings settings;
  settings.joints = {"a", "b"};
  settings.limits = {{-2.0, 2.0, 2.0, 5.0}, {-3.0, 3.0, 1.0, 4.0}};
  return settings;
}

// A joint that is at the position commanded one cycle before.
struct Rig {
  explicit Rig(const TrajectoryController::Settings& settings = settings_of_two()) : controller(settings) {
    controller.reset(positions);
  }
  void cycle() {
    controller.update(now_ns, positions, velocities);
    now_ns += kPeriod;
    if (stuck) return;
    for (std::size_t joint = 0; joint < positions.size(); ++joint) {
      const double next = controller.state().output[joint];
      velocities[joint] = (next - positions[joint]) / (1e-9 * kPeriod);
      positions[joint] = next;
    }
  }
  void run_for(Nanoseconds duration) {
    for (Nanoseconds passed = 0; passed < duration; passed += kPeriod) cycle();
  }
  std::shared_ptr<TrajectoryGoal> send(double to_a, double to_b, Nanoseconds duration,
                                       const std::vector<JointTolerance>& path = {},
                                       const std::vector<JointTolerance>& goal = {}, Nanoseconds goal_time = 0) {
    Tolerances tolerances;
    EXPECT_FALSE(controller.apply(path, goal, goal_time, tolerances).has_value());
    Trajectory trajectory{{"a", "b"}, {{duration, {to_a, to_b}, {0.0, 0.0}, {0.0, 0.0}}}};
    EXPECT_FALSE(check(trajectory, controller.settings().joints).has_value());
    return controller.accept(trajectory, tolerances);
  }

  TrajectoryController controller;
  std::vector<double> positions{0.0, 0.0}, velocities{0.0, 0.0};
  Nanoseconds now_ns = 5 * kMs;
  bool stuck = false;
};

TEST(Controller, HoldsWhereItWasReset) {
  Rig rig;
  rig.positions = {0.3, -0.2};
  rig.controller.reset(rig.positions);
  rig.run_for(20 * kMs);
  EXPECT_EQ(rig.controller.state().output, (std::vector<double>{0.3, -0.2}));
  EXPECT_FALSE(rig.controller.active());
}

TEST(Controller, AGoalStartsInTheNextCycleAndSucceedsAtItsEnd) {
  Rig rig;
  rig.cycle();
  const auto goal = rig.send(0.5, -0.4, 1000 * kMs);
  EXPECT_EQ(goal->status(), Status::kPending);
  const Nanoseconds next = rig.now_ns;
  rig.cycle();
  EXPECT_EQ(goal->status(), Status::kActive);
  EXPECT_EQ(goal->started_ns(), next);
  rig.run_for(1100 * kMs);
  ASSERT_EQ(goal->status(), Status::kSucceeded);
  EXPECT_EQ(goal->error(), TrajectoryError::kSuccessful);
  EXPECT_EQ(goal->reason(rig.controller.settings().joints), "");
  EXPECT_GE(goal->settling_ns(), 0);
  EXPECT_LE(goal->settling_ns(), 3 * kPeriod);
  EXPECT_NEAR(rig.positions[0], 0.5, 1e-9);
  EXPECT_NEAR(rig.positions[1], -0.4, 1e-9);
  // A straight path in joint space, one cycle behind.
  EXPECT_NEAR(goal->tracking().path_length, std::hypot(0.5, 0.4), 2e-3);
  EXPECT_GT(goal->tracking().most, goal->tracking().rms());
  EXPECT_EQ(rig.controller.limited(), 0U);
}

TEST(Controller, AGoalMayStartAtAnInstantToCome) {
  Rig rig;
  rig.cycle();
  Trajectory trajectory{{"a", "b"}, {{400 * kMs, {0.5, 0.0}, {0.0, 0.0}, {0.0, 0.0}}}};
  const Nanoseconds start = rig.now_ns + 100 * kMs;
  const auto later = rig.controller.accept(trajectory, rig.controller.tolerances(), start);
  rig.run_for(98 * kMs);
  EXPECT_EQ(later->status(), Status::kActive);
  EXPECT_EQ(rig.positions, (std::vector<double>{0.0, 0.0}));
  rig.run_for(450 * kMs);
  ASSERT_EQ(later->status(), Status::kSucceeded);
  EXPECT_EQ(later->started_ns(), start);
  EXPECT_LE(later->settling_ns(), 3 * kPeriod);
  // If the start is in the past, the rest is followed.
  trajectory.points[0].positions = {0.0, 0.0};
  const auto rest = rig.controller.accept(trajectory, rig.controller.tolerances(), rig.now_ns - 200 * kMs);
  rig.run_for(190 * kMs);
  EXPECT_EQ(rest->status(), Status::kActive);
  rig.run_for(700 * kMs);
  EXPECT_EQ(rest->status(), Status::kSucceeded);
}

TEST(Controller, AnotherGoalTakesThePlaceOfTheOneBefore) {
  Rig rig;
  const auto first = rig.send(0.5, 0.5, 1000 * kMs);
  rig.run_for(200 * kMs);
  const auto never_seen = rig.send(1.0, 1.0, 1000 * kMs);
  const auto second = rig.send(-0.5, -0.5, 2000 * kMs);
  EXPECT_EQ(never_seen->status(), Status::kCanceled);
  rig.run_for(2200 * kMs);
  EXPECT_EQ(first->status(), Status::kCanceled);
  EXPECT_EQ(first->error(), TrajectoryError::kInvalidGoal);
  EXPECT_EQ(second->status(), Status::kSucceeded);
}

TEST(Controller, AJointThatLeavesThePathAbortsTheGoalAndTheArmHolds) {
  Rig rig;
  const auto goal = rig.send(0.5, 0.0, 1000 * kMs, {{"a", 0.05, 0.0}});
  rig.run_for(100 * kMs);
  rig.stuck = true;
  rig.velocities = {0.0, 0.0};
  rig.run_for(500 * kMs);
  ASSERT_EQ(goal->status(), Status::kAborted);
  EXPECT_EQ(goal->error(), TrajectoryError::kPathToleranceViolated);
  EXPECT_EQ(goal->reason(rig.controller.settings().joints).rfind("a is off by 0.05", 0), 0U);
  EXPECT_EQ(rig.controller.state().output, rig.positions);
  EXPECT_TRUE(goal->stopped());
}

TEST(Controller, WhatDoesNotComeToItsEndInTimeIsAborted) {
  Rig rig;
  rig.stuck = true;
  const auto goal = rig.send(0.5, 0.0, 100 * kMs, {}, {{"a", 0.01, 0.0}}, 300 * kMs);
  rig.run_for(390 * kMs);
  EXPECT_EQ(goal->status(), Status::kActive);
  rig.run_for(40 * kMs);
  ASSERT_EQ(goal->status(), Status::kAborted);
  EXPECT_EQ(goal->error(), TrajectoryError::kGoalToleranceViolated);
  // Without a position tolerance only standstill is required, as in the default configuration.
  const auto other = rig.send(0.5, 0.0, 100 * kMs);
  rig.run_for(110 * kMs);
  EXPECT_EQ(other->status(), Status::kSucceeded);
}

TEST(Controller, TolerancesOfAGoalTakeThePlaceOfItsOwn) {
  TrajectoryController::Settings settings = settings_of_two();
  settings.goal_tolerance = 0.02;
  const TrajectoryController controller(settings);
  Tolerances tolerances;
  EXPECT_FALSE(controller.apply({{"b", 0.3, -1.0}}, {{"a", -1.0, 0.0}}, -1, tolerances).has_value());
  EXPECT_EQ(tolerances.path_positions, (std::vector<double>{0.0, 0.3}));
  EXPECT_EQ(tolerances.goal_positions, (std::vector<double>{0.0, 0.02}));
  EXPECT_EQ(tolerances.goal_velocities, (std::vector<double>{0.01, 0.01}));
  EXPECT_EQ(tolerances.goal_time_ns, 0);
  EXPECT_TRUE(controller.apply({{"c", 0.3, 0.0}}, {}, 0, tolerances).has_value());
  EXPECT_TRUE(controller.apply({{"a", -0.3, 0.0}}, {}, 0, tolerances).has_value());
}

TEST(Controller, CancellingHoldsAtOnce) {
  Rig rig;
  const auto goal = rig.send(1.0, 0.0, 1000 * kMs);
  rig.run_for(500 * kMs);
  EXPECT_TRUE(rig.controller.cancel(*goal));
  const Nanoseconds next = rig.now_ns;
  const std::vector<double> measured = rig.positions;
  rig.cycle();
  ASSERT_EQ(goal->status(), Status::kCanceled);
  EXPECT_EQ(goal->error(), TrajectoryError::kSuccessful);
  EXPECT_EQ(rig.controller.state().output, measured);
  rig.run_for(20 * kMs);
  ASSERT_TRUE(goal->stopped());
  EXPECT_EQ(goal->stop().from_ns, next);
  EXPECT_EQ(goal->stop().until_ns, next + kPeriod);
  EXPECT_FALSE(rig.controller.cancel(*goal));
}

TEST(Controller, AnArmThatSwingsBackWasFarthestBetweenCancelAndStandstill) {
  Rig rig;
  const auto goal = rig.send(1.0, 0.0, 1000 * kMs);
  rig.run_for(500 * kMs);
  rig.controller.cancel(*goal);
  const std::vector<double> from = rig.positions;
  for (const double beyond : {0.0, 0.01, 0.02, 0.01, 0.0}) {
    rig.controller.update(rig.now_ns, std::vector<double>{from[0] + beyond, from[1]}, std::vector<double>{0.5, 0.0});
    rig.now_ns += kPeriod;
    EXPECT_FALSE(goal->stopped());
  }
  rig.controller.update(rig.now_ns, from, std::vector<double>{0.0, 0.0});
  ASSERT_TRUE(goal->stopped());
  EXPECT_EQ(goal->stop().until, from);
  EXPECT_DOUBLE_EQ(goal->stop().farthest[0], from[0] + 0.02);
}

TEST(Controller, CancellingCanSlowDownWithinTheLimits) {
  TrajectoryController::Settings settings = settings_of_two();
  settings.on_cancel = TrajectoryController::OnCancel::kDecelerate;
  Rig rig(settings);
  const auto goal = rig.send(1.0, 0.0, 1000 * kMs);
  rig.run_for(500 * kMs);
  const double speed = rig.controller.state().desired.velocities[0];
  rig.controller.cancel(*goal);
  double before = rig.positions[0], velocity = speed;
  while (!goal->stopped()) {
    rig.cycle();
    const double next = (rig.positions[0] - before) / (1e-9 * kPeriod);
    EXPECT_LE(std::abs(next - velocity) / (1e-9 * kPeriod), 5.0 * 1.01 + 1e-6);
    before = rig.positions[0];
    velocity = next;
  }
  // v^2 / 2a, and v / a.
  EXPECT_NEAR(goal->stop().until[0] - goal->stop().from[0], speed * speed / 10.0, 0.01);
  EXPECT_NEAR(1e-9 * static_cast<double>(goal->stop().until_ns - goal->stop().from_ns), speed / 5.0, 0.01);
}

TEST(Controller, CommandsKeepToTheLimitsWhateverIsAskedFor) {
  Rig rig;
  SplitMix64 random(17);
  const auto& limits = rig.controller.settings().limits;
  std::vector<double> before = rig.positions;
  for (int round = 0; round < 100; ++round) {
    const auto goal = rig.send(8.0 * random.uniform() - 4.0, 12.0 * random.uniform() - 6.0,
                               static_cast<Nanoseconds>(random.uniform() * 800) * kMs + kMs);
    const int cycles = static_cast<int>(random.uniform() * 300.0);
    for (int cycle = 0; cycle < cycles; ++cycle) {
      if (random.uniform() < 0.003) rig.controller.cancel(*goal);
      rig.cycle();
      for (std::size_t joint = 0; joint < limits.size(); ++joint) {
        const double output = rig.controller.state().output[joint];
        ASSERT_GE(output, limits[joint].lower);
        ASSERT_LE(output, limits[joint].upper);
        ASSERT_LE(std::abs(output - before[joint]), limits[joint].velocity * 1e-9 * kPeriod + 1e-12);
      }
      before = rig.controller.state().output;
    }
  }
  EXPECT_GT(rig.controller.limited(), 100U);
}

TEST(Controller, GoalsComeFromOtherThreads) {
  Rig rig;
  std::atomic<bool> done{false};
  std::thread sender([&] {
    for (int each = 0; each < 500; ++each) {
      const auto goal = rig.send(0.01 * (each % 7), 0.0, 4 * kMs);
      if (each % 3 == 0) rig.controller.cancel(*goal);
      while (!goal->ended()) std::this_thread::yield();
    }
    done = true;
  });
  while (!done) rig.cycle();
  sender.join();
}

TEST(Servo, AVelocityIsInProportionToTheErrorAndLimited) {
  const VelocityServo servo(500.0, {2.0, 2.0, 2.0});
  std::vector<double> velocities(3);
  servo.update(std::vector<double>{0.01, -0.01, 1.0}, std::vector<double>{0.0, 0.01, 0.0}, velocities);
  EXPECT_NEAR(velocities[0], 0.5, 1e-12);
  EXPECT_NEAR(velocities[1], -1.0, 1e-12);
  EXPECT_EQ(velocities[2], 2.0);
}

TEST(Servo, ATorqueIsInProportionToBothErrorsAndLimited) {
  const TorqueServo servo({100.0, 100.0}, {10.0, 10.0}, {12.0, 12.0});
  std::vector<double> efforts(2);
  servo.update(std::vector<double>{0.1, 1.0}, std::vector<double>{0.0, 0.0}, std::vector<double>{0.0, 0.0},
               std::vector<double>{0.2, 0.0}, efforts);
  EXPECT_NEAR(efforts[0], 8.0, 1e-12);
  EXPECT_EQ(efforts[1], 12.0);
}

}  // namespace
}  // namespace perflab::manipulation
