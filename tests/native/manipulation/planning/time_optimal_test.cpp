#include "manipulation/planning/time_optimal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/random.h"

namespace perflab::manipulation::planning {
namespace {

Joints joints(std::initializer_list<double> values) {
  Joints result(static_cast<Eigen::Index>(values.size()));
  std::size_t i = 0;
  for (const double value : values) result[static_cast<Eigen::Index>(i++)] = value;
  return result;
}

// Time from standstill to standstill over a distance: a trapezoidal speed profile, or a triangle if the top
// speed is not reached.
double closed_form(double distance, double velocity, double acceleration) {
  if (distance * acceleration <= velocity * velocity) return 2.0 * std::sqrt(distance / acceleration);
  return distance / velocity + velocity / acceleration;
}

double duration_of(const std::vector<Joints>& points, const Joints& velocity, const Joints& acceleration) {
  return TimeOptimal(Path(points, kPathTolerance), velocity, acceleration).duration();
}

// The largest |velocity|/limit and |acceleration|/limit of any joint.
struct Largest {
  double velocity = 0.0;
  double acceleration = 0.0;
};

Largest largest_of(const TimeOptimal& timed, const Joints& velocity, const Joints& acceleration, double step) {
  Largest largest;
  for (double time = 0.0; time < timed.duration(); time += step) {
    const TrajectoryPoint point = timed.at(time);
    largest.velocity = std::max(largest.velocity, (point.velocity.array() / velocity.array()).abs().maxCoeff());
    largest.acceleration =
        std::max(largest.acceleration, (point.acceleration.array() / acceleration.array()).abs().maxCoeff());
  }
  return largest;
}

std::vector<Joints> random_points(SplitMix64& random, Eigen::Index joint_count, std::size_t count, double span) {
  std::vector<Joints> points;
  for (std::size_t i = 0; i < count; ++i) {
    Joints point(joint_count);
    for (Eigen::Index j = 0; j < joint_count; ++j) point[j] = span * (2.0 * random.uniform() - 1.0);
    points.push_back(point);
  }
  return points;
}

Joints random_limits(SplitMix64& random, Eigen::Index joint_count) {
  Joints limits(joint_count);
  for (Eigen::Index j = 0; j < joint_count; ++j) limits[j] = 0.2 + 3.0 * random.uniform();
  return limits;
}

TEST(Path, IsStraightBetweenTwoPoints) {
  const Path path({joints({0.0, 0.0}), joints({3.0, 4.0})}, 0.1);
  EXPECT_DOUBLE_EQ(path.length(), 5.0);
  Path::Point point;
  path.at(2.5, point);
  EXPECT_NEAR((point.position - joints({1.5, 2.0})).norm(), 0.0, 1e-12);
  EXPECT_NEAR((point.direction - joints({0.6, 0.8})).norm(), 0.0, 1e-12);
  EXPECT_EQ(point.curvature.norm(), 0.0);
}

TEST(Path, RoundsACornerWithinItsTolerance) {
  // A right angle, blended with d = 0.1: the arc's radius is d (1 + sqrt 2), and its middle is at d from the corner.
  const Path path({joints({0.0, 0.0}), joints({1.0, 0.0}), joints({1.0, 1.0})}, 0.1);
  const double radius = 0.1 * (1.0 + std::sqrt(2.0));
  ASSERT_EQ(path.segments().size(), 3U);
  EXPECT_NEAR(path.segments()[1].radius, radius, 1e-12);
  EXPECT_NEAR(path.length(), 2.0 * (1.0 - radius) + 0.5 * M_PI * radius, 1e-12);
  Path::Point point;
  path.at(0.5 * path.length(), point);
  EXPECT_NEAR((point.position - joints({1.0, 0.0})).norm(), 0.1, 1e-12);
  EXPECT_NEAR(point.curvature.norm(), 1.0 / radius, 1e-9);
}

TEST(Path, DirectionNeverJumpsAndStepsAreAsLongAsTheyAre) {
  SplitMix64 random(1);
  for (int round = 0; round < 20; ++round) {
    const Path path(random_points(random, 7, 6, 2.0), 0.1);
    constexpr int kSteps = 20'000;
    Path::Point before;
    Path::Point point;
    path.at(0.0, before);
    for (int i = 1; i <= kSteps; ++i) {
      path.at(path.length() * i / kSteps, point);
      EXPECT_NEAR(point.direction.norm(), 1.0, 1e-9);
      EXPECT_NEAR((point.position - before.position).norm(), path.length() / kSteps, 1e-6);
      // The sharpest arc of these paths has a radius of a few milliradians.
      EXPECT_LT((point.direction - before.direction).norm(), 0.6);
      before = point;
    }
  }
}

TEST(Path, RefusesWhatIsNoPath) {
  EXPECT_THROW(Path({}, 0.1), BadInput);
  EXPECT_THROW(Path({joints({0.0}), joints({0.0, 1.0})}, 0.1), BadInput);
  EXPECT_THROW(Path({joints({0.0}), joints({std::nan("")})}, 0.1), BadInput);
  EXPECT_THROW(Path({joints({0.0}), joints({1.0})}, 0.0), BadInput);
}

TEST(TimeOptimal, OneJointIsATrapezoidOrATriangle) {
  for (const double distance : {0.01, 0.3, 1.0, 2.0, 5.0}) {
    for (const double velocity : {0.2, 1.0, 10.0}) {
      for (const double acceleration : {0.5, 1.0, 4.0}) {
        const double duration = duration_of({joints({1.0}), joints({1.0 + distance})}, joints({velocity}), joints({acceleration}));
        const double expected = closed_form(distance, velocity, acceleration);
        EXPECT_NEAR(duration, expected, 2e-5 * expected) << distance << ' ' << velocity << ' ' << acceleration;
      }
    }
  }
}

TEST(TimeOptimal, OnALineTheSlowestJointDecides) {
  // Each joint separately: 1.0/1.0 + 1.0/2.0 s, 0.5/0.25 + 0.25/1.0 s; along a line both bounds apply.
  const std::vector<Joints> line = {joints({0.0, 0.0}), joints({1.0, 0.5})};
  const double duration = duration_of(line, joints({1.0, 0.25}), joints({2.0, 1.0}));
  const double length = std::sqrt(1.25);
  const double along = std::min(1.0 / (1.0 / length), 0.25 / (0.5 / length));
  const double acceleration = std::min(2.0 / (1.0 / length), 1.0 / (0.5 / length));
  EXPECT_NEAR(duration, closed_form(length, along, acceleration), 1e-4);
}

TEST(TimeOptimal, ComesBackTheWayItWentByStopping) {
  const double duration = duration_of({joints({0.0}), joints({1.0}), joints({0.0})}, joints({1.0}), joints({2.0}));
  EXPECT_NEAR(duration, 2.0 * closed_form(1.0, 1.0, 2.0), 1e-3);
}

TEST(TimeOptimal, TwiceTheLimitsHalveWhatIsLimitedByVelocity) {
  // Velocity limits v and acceleration limits v^2: doubling v and quadrupling a halves all times.
  SplitMix64 random(2);
  for (int round = 0; round < 20; ++round) {
    const auto points = random_points(random, 7, 5, 1.0);
    const Joints velocity = random_limits(random, 7);
    const Joints acceleration = random_limits(random, 7);
    const double slow = duration_of(points, velocity, acceleration);
    EXPECT_NEAR(duration_of(points, 2.0 * velocity, 4.0 * acceleration), 0.5 * slow, 1e-9 * slow);
  }
}

TEST(TimeOptimal, IsTheSameBackward) {
  SplitMix64 random(3);
  for (int round = 0; round < 20; ++round) {
    auto points = random_points(random, 7, 5, 1.0);
    const Joints velocity = random_limits(random, 7);
    const Joints acceleration = random_limits(random, 7);
    const double forward = duration_of(points, velocity, acceleration);
    std::reverse(points.begin(), points.end());
    EXPECT_NEAR(duration_of(points, velocity, acceleration), forward, 2e-3 * forward);
  }
}

TEST(TimeOptimal, KeepsLimitsReachesTheEndsAndIsWithinItsBounds) {
  SplitMix64 random(4);
  for (int round = 0; round < 100; ++round) {
    const auto count = 2 + random.next() % 8;
    const double span = round % 2 == 0 ? 2.5 : 0.05;
    const auto points = random_points(random, 7, count, span);
    const Joints velocity = random_limits(random, 7);
    const Joints acceleration = random_limits(random, 7);
    const TimeOptimal timed(Path(points, kPathTolerance), velocity, acceleration);
    const Largest largest = largest_of(timed, velocity, acceleration, timed.duration() / 5003.0);
    EXPECT_LT(largest.velocity, 1.0 + 1e-4);
    EXPECT_LT(largest.acceleration, 1.0 + 1e-3);
    // Some joint is always at its limit; in samples, nearly.
    EXPECT_GT(std::max(largest.velocity, largest.acceleration), 0.98);

    const TrajectoryPoint first = timed.at(0.0);
    const TrajectoryPoint last = timed.at(timed.duration());
    EXPECT_LT((first.position - points.front()).norm(), 1e-9);
    EXPECT_LT((last.position - points.back()).norm(), 1e-6);
    EXPECT_LT(first.velocity.norm(), 1e-9);
    EXPECT_LT(last.velocity.norm(), 1e-4);

    // Lower bound: each joint separately, only between the ends. Upper bound: stopping at each way-point; if
    // corners are cut only within the tolerance, this is slower.
    double below = 0.0;
    for (Eigen::Index j = 0; j < 7; ++j) {
      below = std::max(below, closed_form(std::abs(points.back()[j] - points.front()[j]), velocity[j], acceleration[j]));
    }
    EXPECT_GT(timed.duration(), below * (1.0 - 1e-9));
    double above = 0.0;
    for (std::size_t i = 1; i < points.size(); ++i) {
      above += duration_of({points[i - 1], points[i]}, velocity, acceleration);
    }
    EXPECT_LT(timed.duration(), above * (1.0 + 1e-3)) << count << " points";
  }
}

TEST(TimeOptimal, PositionIsTheIntegralOfVelocityAndVelocityThatOfAcceleration) {
  SplitMix64 random(5);
  const TimeOptimal timed(Path(random_points(random, 7, 5, 1.5), kPathTolerance), random_limits(random, 7), random_limits(random, 7));
  constexpr int kSteps = 50'000;
  const double step = timed.duration() / kSteps;
  Joints position = timed.at(0.0).position;
  Joints velocity = timed.at(0.0).velocity;
  for (int i = 0; i < kSteps; ++i) {
    const TrajectoryPoint middle = timed.at(step * (i + 0.5));
    position += step * middle.velocity;
    velocity += step * middle.acceleration;
  }
  EXPECT_LT((position - timed.at(timed.duration()).position).norm(), 1e-4);
  EXPECT_LT(velocity.norm(), 1e-2);
}

TEST(TimeOptimal, RefusesWhatItCannotTime) {
  const std::vector<Joints> points = {joints({0.0}), joints({1.0})};
  EXPECT_THROW(TimeOptimal(Path(points, 0.1), joints({0.0}), joints({1.0})), BadInput);
  EXPECT_THROW(TimeOptimal(Path(points, 0.1), joints({1.0}), joints({-1.0})), BadInput);
  EXPECT_THROW(TimeOptimal(Path(points, 0.1), joints({1.0, 1.0}), joints({1.0, 1.0})), BadInput);
  EXPECT_THROW(TimeOptimal(Path({joints({1.0})}, 0.1), joints({1.0}), joints({1.0})), BadInput);
  EXPECT_THROW((void)parameterize(points, joints({1.0}), joints({1.0}), 1.5, 1.0), BadInput);
  EXPECT_THROW((void)parameterize(points, joints({1.0}), joints({1.0}), 1.0, 0.0), BadInput);
}

TEST(Parameterize, HasAPointEachTenthOfASecondAndTheEnd) {
  const Trajectory trajectory = parameterize({joints({0.0}), joints({1.0})}, joints({1.0}), joints({2.0}), 0.5, 0.5);
  const double expected = closed_form(1.0, 0.5, 1.0);  // 2.5 s
  ASSERT_EQ(trajectory.points.size(), 1U + static_cast<std::size_t>(std::ceil(trajectory.duration() / 0.1)));
  EXPECT_NEAR(trajectory.duration(), expected, 1e-4);
  for (std::size_t i = 0; i + 1 < trajectory.points.size(); ++i) {
    EXPECT_NEAR(trajectory.points[i].time, 0.1 * static_cast<double>(i), 1e-12);
  }
  EXPECT_EQ(trajectory.points.front().position[0], 0.0);
  EXPECT_NEAR(trajectory.points.back().position[0], 1.0, 1e-9);
}

TEST(Parameterize, APlaceThatIsReachedAlreadyIsOnePoint) {
  const Trajectory trajectory = parameterize({joints({0.0}), joints({0.0005})}, joints({1.0}), joints({1.0}), 1.0, 1.0);
  ASSERT_EQ(trajectory.points.size(), 1U);
  EXPECT_EQ(trajectory.duration(), 0.0);
  EXPECT_EQ(trajectory.points.front().position[0], 0.0005);
}

TEST(Parameterize, TimesIncreaseAndTheLastPointStandsStill) {
  // 0.3 s plus or minus rounding: no further point after that of 0.3 s.
  for (const double more : {-1e-12, 0.0, 1e-12}) {
    const Trajectory trajectory = parameterize({joints({0.0}), joints({0.0225 + more})}, joints({1.0}), joints({1.0}), 1.0, 1.0);
    ASSERT_EQ(trajectory.points.size(), 4U);
    EXPECT_EQ(trajectory.points.back().velocity[0], 0.0);
    for (std::size_t i = 1; i < trajectory.points.size(); ++i) {
      EXPECT_GT(trajectory.points[i].time, trajectory.points[i - 1].time + 1e-6);
    }
  }
}

}  // namespace
}  // namespace perflab::manipulation::planning
