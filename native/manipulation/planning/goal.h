// Goals of motions as constraints: joint positions, or position and orientation of a link, each with
// tolerances; and sampling of joint positions that satisfy them.
//
// Semantics from MoveIt's kinematic_constraints (JointConstraint, PositionConstraint, OrientationConstraint)
// and constraint_samplers (IKConstraintSampler).
//
// Example:
//   PoseGoal goal;
//   goal.link = model->flange();
//   goal.position = {0.4, 0.2, 0.5};
//   SplitMix64 random(1);
//   for (const Positions& positions : sample_goals(model, goal, state, start, {}, random).valid) { ... }
#pragma once

#include <Eigen/Geometry>
#include <cstddef>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "base/random.h"
#include "manipulation/robot/robot.h"

namespace perflab::manipulation::planning {

struct JointGoal {
  Positions positions;
  double tolerance = 0.001;  // rad, in each direction; MoveIt's default goal joint tolerance is 1e-4
};

// Lengths in m, in the frame of the robot's base.
struct PoseGoal {
  // How an orientation error is expressed in three angles: MoveIt's OrientationConstraint::parameterization.
  enum class Angles { kXyzEuler, kRotationVector };

  Link link{};
  Eigen::Vector3d position = Eigen::Vector3d::Zero();
  double radius = 0.01;  // of the sphere that must contain the link's origin
  Eigen::Quaterniond orientation = Eigen::Quaterniond::Identity();
  Eigen::Vector3d tolerance = Eigen::Vector3d::Constant(0.1);  // rad, about x, y and z of the link; pi: any
  Angles angles = Angles::kXyzEuler;
};

using Goal = std::variant<JointGoal, PoseGoal>;

// True if the state's positions satisfy the goal, within 1e-6 rad or m, the accuracy of IK.
[[nodiscard]] bool satisfies(const Goal& goal, State& state);

// Absolute angles between an orientation and the desired one, about the link's axes.
[[nodiscard]] Eigen::Vector3d orientation_error(const PoseGoal& goal, const Pose& pose);

struct GoalSearch {
  std::size_t most = 10;    // MoveIt's max_goal_samples
  std::size_t tries = 100;  // samples that IK or the limits refuse, or that collide, count as well
  // Called before each try except the first; true ends the search.
  std::function<bool()> stop;
};

struct GoalSamples {
  std::vector<Positions> valid;  // satisfy the goal, are within the limits and do not collide
  std::size_t tries = 0;
  std::size_t reached = 0;  // number of tries with a solution, colliding or not
};

// Joint positions that satisfy the goal. For a pose: samples of its region, each with IK from `start` the
// first time, then from random positions. For joints: the goal itself, moved to the limits if that is within
// its tolerance. Modifies the state. The same random numbers give the same samples.
[[nodiscard]] GoalSamples sample_goals(const std::shared_ptr<const Model>& model, const Goal& goal, State& state,
                                       const Positions& start, const GoalSearch& search, SplitMix64& random);

}  // namespace perflab::manipulation::planning
