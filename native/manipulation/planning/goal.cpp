#include "manipulation/planning/goal.h"

#include <algorithm>
#include <cmath>
#include <optional>

namespace perflab::manipulation::planning {
namespace {

constexpr double kNumbers = 1e-6;
// Solutions closer than this in each joint count as one.
constexpr double kSameGoal = 1e-3;

double between(double low, double high, SplitMix64& random) { return low + (high - low) * random.uniform(); }

Eigen::Vector3d in_sphere(double radius, SplitMix64& random) {
  for (;;) {
    const Eigen::Vector3d point(between(-1, 1, random), between(-1, 1, random), between(-1, 1, random));
    if (point.squaredNorm() <= 1.0) return radius * point;
  }
}

Pose sampled(const PoseGoal& goal, SplitMix64& random) {
  Eigen::Vector3d angles;
  for (int i = 0; i < 3; ++i) {
    const double most = std::min(goal.tolerance[i], M_PI);
    angles[i] = between(-most, most, random);
  }
  Eigen::Quaterniond turn = Eigen::Quaterniond::Identity();
  if (goal.angles == PoseGoal::Angles::kRotationVector) {
    if (angles.norm() > 0.0) turn = Eigen::AngleAxisd(angles.norm(), angles.normalized());
  } else {
    turn = Eigen::AngleAxisd(angles[0], Eigen::Vector3d::UnitX()) * Eigen::AngleAxisd(angles[1], Eigen::Vector3d::UnitY()) *
           Eigen::AngleAxisd(angles[2], Eigen::Vector3d::UnitZ());
  }
  Pose pose = Pose::Identity();
  pose.linear() = (goal.orientation.normalized() * turn).toRotationMatrix();
  pose.translation() = goal.position + in_sphere(goal.radius, random);
  return pose;
}

bool meets(const JointGoal& goal, State& state) {
  for (std::size_t i = 0; i < goal.positions.size(); ++i) {
    if (std::abs(state.positions()[i] - goal.positions[i]) > goal.tolerance + kNumbers) return false;
  }
  return true;
}

bool meets(const PoseGoal& goal, State& state) {
  const Pose pose = state.pose(goal.link);
  return (pose.translation() - goal.position).norm() <= goal.radius + 1e-5 &&
         (orientation_error(goal, pose).array() <= goal.tolerance.array() + 1e-4).all();
}

bool known(const std::vector<Positions>& all, const Positions& one) {
  return std::any_of(all.begin(), all.end(), [&](const Positions& other) {
    return std::equal(one.begin(), one.end(), other.begin(),
                      [](double a, double b) { return std::abs(a - b) < kSameGoal; });
  });
}

}  // namespace

Eigen::Vector3d orientation_error(const PoseGoal& goal, const Pose& pose) {
  const Eigen::Matrix3d turn = goal.orientation.normalized().toRotationMatrix().transpose() * pose.linear();
  if (goal.angles == PoseGoal::Angles::kRotationVector) {
    const Eigen::AngleAxisd angle(turn);
    return (angle.axis() * angle.angle()).cwiseAbs();
  }
  // Rotations about x, then y, then z of the rotated frame; at y = pi/2 x and z are about the same axis, and
  // everything is assigned to x.
  const double y = std::asin(std::clamp(turn(0, 2), -1.0, 1.0));
  if (std::abs(std::cos(y)) < 1e-9) return {std::abs(std::atan2(turn(1, 0), turn(1, 1))), std::abs(y), 0.0};
  return {std::abs(std::atan2(-turn(1, 2), turn(2, 2))), std::abs(y), std::abs(std::atan2(-turn(0, 1), turn(0, 0)))};
}

bool satisfies(const Goal& goal, State& state) {
  return std::visit([&](const auto& each) { return meets(each, state); }, goal);
}

namespace {

// A joint goal is its positions: MoveIt samples within the tolerance, which would add to the arm's position
// error.
GoalSamples place_of(const JointGoal& goal, State& state) {
  GoalSamples samples;
  samples.tries = 1;
  const Model& model = state.model();
  if (!within_limits(model, goal.positions, goal.tolerance)) return samples;
  Positions positions = goal.positions;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    positions[i] = std::clamp(positions[i], model.limits()[i].lower, model.limits()[i].upper);
  }
  samples.reached = 1;
  state.set(positions);
  if (!state.collides()) samples.valid.push_back(std::move(positions));
  return samples;
}

}  // namespace

GoalSamples sample_goals(const std::shared_ptr<const Model>& model, const Goal& goal, State& state,
                         const Positions& start, const GoalSearch& search, SplitMix64& random) {
  if (const auto* const joints = std::get_if<JointGoal>(&goal)) return place_of(*joints, state);
  const PoseGoal& pose = std::get<PoseGoal>(goal);
  const InverseKinematics ik(model, pose.link);
  GoalSamples samples;
  Positions seed = start;
  while (samples.valid.size() < search.most && samples.tries < search.tries) {
    if (samples.tries > 0 && search.stop && search.stop()) break;
    ++samples.tries;
    const std::optional<Positions> found = ik.solve(state, sampled(pose, random), seed);
    seed = random_positions(*model, random);
    if (!found || !within_limits(*model, *found)) continue;
    state.set(*found);
    if (!satisfies(goal, state)) continue;
    ++samples.reached;
    if (!state.collides() && !known(samples.valid, *found)) samples.valid.push_back(*found);
  }
  return samples;
}

}  // namespace perflab::manipulation::planning
