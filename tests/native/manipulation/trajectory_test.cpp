// Requirements on a trajectory, and the desired joint state at an instant.
#include "manipulation/control/trajectory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/random.h"

namespace perflab::manipulation {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
const std::vector<std::string> kJoints = {"a", "b"};

Trajectory two_points() {
  return {kJoints,
          {{100 * kMs, {0.0, 1.0}, {0.0, 0.5}, {0.0, 0.0}}, {600 * kMs, {1.0, 2.0}, {0.0, 0.0}, {0.0, 0.0}}}};
}

TEST(Trajectory, AGoodOneIsTakenInAnyOrderOfJoints) {
  EXPECT_FALSE(check(two_points(), kJoints).has_value());
  const std::vector<std::string> other = {"b", "a"};
  EXPECT_FALSE(check(two_points(), other).has_value());
  const Trajectory turned = sorted(two_points(), other);
  EXPECT_EQ(turned.joints, other);
  EXPECT_EQ(turned.points[0].positions, (std::vector<double>{1.0, 0.0}));
  EXPECT_EQ(turned.points[0].velocities, (std::vector<double>{0.5, 0.0}));
}

struct Bad {
  const char* what;
  void (*spoil)(Trajectory&);
  TrajectoryError error;
};

TEST(Trajectory, ABadOneIsRefusedWithWhatIsWrong) {
  const Bad all[] = {
      {"once", [](Trajectory& t) { t.joints[0] = "c"; }, TrajectoryError::kInvalidJoints},
      {"once", [](Trajectory& t) { t.joints[0] = "b"; }, TrajectoryError::kInvalidJoints},
      {"1 joints", [](Trajectory& t) { t.joints.pop_back(); }, TrajectoryError::kInvalidJoints},
      {"no points", [](Trajectory& t) { t.points.clear(); }, TrajectoryError::kInvalidGoal},
      {"before the start", [](Trajectory& t) { t.points[0].time_ns = -5; }, TrajectoryError::kInvalidGoal},
      {"not after", [](Trajectory& t) { t.points[1].time_ns = 100 * kMs; }, TrajectoryError::kInvalidGoal},
      {"1 positions", [](Trajectory& t) { t.points[1].positions.pop_back(); }, TrajectoryError::kInvalidGoal},
      {"3 velocities", [](Trajectory& t) { t.points[0].velocities.push_back(0.0); }, TrajectoryError::kInvalidGoal},
      {"1 accelerations", [](Trajectory& t) { t.points[0].accelerations.pop_back(); }, TrajectoryError::kInvalidGoal},
      {"not a number", [](Trajectory& t) { t.points[0].positions[1] = std::nan(""); }, TrajectoryError::kInvalidGoal},
      {"not a number",
       [](Trajectory& t) { t.points[0].velocities[1] = std::numeric_limits<double>::infinity(); },
       TrajectoryError::kInvalidGoal},
      {"while a joint moves", [](Trajectory& t) { t.points[1].velocities[1] = 0.1; }, TrajectoryError::kInvalidGoal}};
  for (const Bad& bad : all) {
    Trajectory trajectory = two_points();
    bad.spoil(trajectory);
    const auto refusal = check(trajectory, kJoints);
    ASSERT_TRUE(refusal.has_value()) << bad.what;
    EXPECT_EQ(refusal->error, bad.error) << refusal->text;
    EXPECT_NE(refusal->text.find(bad.what), std::string::npos) << refusal->text;
  }
}

TEST(Trajectory, AQuinticFromRestToRestIsTheKnownOne) {
  const Spline spline(two_points());
  JointState start(2), desired(2);
  // 10 s^3 - 15 s^4 + 6 s^5 at the middle: 1/2, with velocity 15/8 / T and no acceleration.
  EXPECT_TRUE(spline.sample(350 * kMs, start, desired));
  EXPECT_NEAR(desired.positions[0], 0.5, 1e-12);
  EXPECT_NEAR(desired.velocities[0], 1.875 / 0.5, 1e-12);
  EXPECT_NEAR(desired.accelerations[0], 0.0, 1e-9);
  // Meets its points.
  EXPECT_TRUE(spline.sample(100 * kMs, start, desired));
  EXPECT_NEAR(desired.positions[1], 1.0, 1e-12);
  EXPECT_NEAR(desired.velocities[1], 0.5, 1e-12);
  EXPECT_FALSE(spline.sample(600 * kMs, start, desired));
  EXPECT_EQ(desired.positions, (std::vector<double>{1.0, 2.0}));
  EXPECT_FALSE(spline.sample(900 * kMs, start, desired));
  EXPECT_EQ(desired.positions, (std::vector<double>{1.0, 2.0}));
}

TEST(Trajectory, BeforeTheFirstPointItComesFromTheStart) {
  const Spline spline(two_points());
  JointState start(2), desired(2);
  start.positions = {-1.0, 0.5};
  start.velocities = {0.2, -0.1};
  EXPECT_TRUE(spline.sample(0, start, desired));
  EXPECT_NEAR(desired.positions[0], -1.0, 1e-12);
  EXPECT_NEAR(desired.velocities[1], -0.1, 1e-12);
}

TEST(Trajectory, WithoutAccelerationsItIsCubicAndWithoutVelocitiesStraight) {
  Trajectory trajectory = two_points();
  for (TrajectoryPoint& point : trajectory.points) point.accelerations.clear();
  JointState start(2), desired(2);
  // 3 s^2 - 2 s^3 at a quarter: 5/32, with velocity 9/8 / T.
  EXPECT_TRUE(Spline(trajectory).sample(225 * kMs, start, desired));
  EXPECT_NEAR(desired.positions[0], 0.15625, 1e-12);
  EXPECT_NEAR(desired.velocities[0], 1.125 / 0.5, 1e-12);
  for (TrajectoryPoint& point : trajectory.points) point.velocities.clear();
  EXPECT_TRUE(Spline(trajectory).sample(225 * kMs, start, desired));
  EXPECT_NEAR(desired.positions[0], 0.25, 1e-12);
  EXPECT_NEAR(desired.velocities[1], 2.0, 1e-12);
  EXPECT_EQ(desired.accelerations[0], 0.0);
}

TEST(Trajectory, VelocityAndAccelerationAreDerivatives) {
  SplitMix64 random(3);
  const auto any = [&] { return 4.0 * random.uniform() - 2.0; };
  JointState start(2), before(2), at(2), after(2);
  constexpr Nanoseconds kStep = 10'000;
  for (int round = 0; round < 100; ++round) {
    Trajectory trajectory = two_points();
    for (TrajectoryPoint& point : trajectory.points) {
      for (auto* each : {&point.positions, &point.velocities, &point.accelerations}) *each = {any(), any()};
    }
    const Spline spline(trajectory);
    start.positions = {any(), any()};
    const Nanoseconds time = kStep + static_cast<Nanoseconds>(random.uniform() * 598e6);
    if (std::abs(time - 100 * kMs) <= kStep) continue;
    spline.sample(time - kStep, start, before);
    spline.sample(time, start, at);
    spline.sample(time + kStep, start, after);
    const double step = 1e-9 * kStep;
    EXPECT_NEAR(at.velocities[0], (after.positions[0] - before.positions[0]) / (2 * step), 1e-3);
    EXPECT_NEAR(at.accelerations[1], (after.velocities[1] - before.velocities[1]) / (2 * step), 1e-2);
  }
}

}  // namespace
}  // namespace perflab::manipulation
