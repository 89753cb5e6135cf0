// Random motions for the planning tests, and checks of plans.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <utility>

#include "manipulation/planning/error_codes.h"
#include "manipulation/planning/planner.h"
#include "support.h"

namespace perflab::manipulation::planning {

inline Request from_ready(const Model& model, Goal goal) {
  Request request;
  request.start = model.named_state("ready");
  request.goals = {std::move(goal)};
  request.velocity_scaling = 0.5;
  request.acceleration_scaling = 0.5;
  return request;
}

// A state that does not collide.
inline Positions random_goal(const Model& model, State& state, SplitMix64& random) {
  for (;;) {
    Positions positions = random_positions(model, random);
    state.set(positions);
    if (!state.collides()) return positions;
  }
}

// Checks a trajectory independently, as it is driven: every millisecond, and in between wherever a joint
// moves by more than `step`. The deepest contact, m; 0 if there is none.
inline double deepest(const Trajectory& trajectory, State& state, double step) {
  const Spline spline(commanded(trajectory, state.model().joints()));
  const manipulation::JointState start(state.model().joints().size());
  manipulation::JointState desired(state.model().joints().size());
  double depth = 0.0;
  Joints last = trajectory.points.front().position;
  for (Nanoseconds time = 0; time <= spline.duration(); time += 1'000'000) {
    spline.sample(time, start, desired);
    const Joints now = joints_of(desired.positions);
    const double parts = std::max(1.0, std::ceil((now - last).cwiseAbs().maxCoeff() / step));
    for (double part = 1.0; part <= parts; part += 1.0) {
      state.set(positions_of(last + (now - last) * (part / parts)));
      if (const auto contact = state.contact()) depth = std::max(depth, -contact->distance);
    }
    last = now;
  }
  return depth;
}

// As driven, not only at its points: every millisecond.
inline void expect_within_limits(const Model& model, const Request& request, const Trajectory& trajectory) {
  const Spline spline(commanded(trajectory, model.joints()));
  const manipulation::JointState start(model.joints().size());
  manipulation::JointState desired(model.joints().size());
  for (Nanoseconds time = 0; time <= spline.duration(); time += 1'000'000) {
    spline.sample(time, start, desired);
    for (std::size_t j = 0; j < model.joints().size(); ++j) {
      const JointLimits& limit = model.limits()[j];
      ASSERT_GE(desired.positions[j], limit.lower - 1e-9);
      ASSERT_LE(desired.positions[j], limit.upper + 1e-9);
      ASSERT_LE(std::abs(desired.velocities[j]), limit.velocity * request.velocity_scaling * (1.0 + 1e-3));
      ASSERT_LE(std::abs(desired.accelerations[j]), limit.acceleration * request.acceleration_scaling * (1.0 + 5e-3));
    }
  }
}

// Over random goals: limits, and the deepest contact found by a finer check.
inline void plan_random_goals(const std::string& scene_name, int count, std::uint64_t seed) {
  const auto model = panda(scene_name);
  State scene(model);
  SplitMix64 random(seed);
  int succeeded = 0;
  for (int i = 0; i < count; ++i) {
    Request request = from_ready(*model, JointGoal{random_goal(*model, scene, random)});
    request.start = random_goal(*model, scene, random);
    request.seed = static_cast<std::uint32_t>(i) + 1;
    if (i % 2 == 1) request.velocity_scaling = request.acceleration_scaling = 1.0;
    const Result result = plan(model, request, scene);
    if (!result.succeeded()) {
      EXPECT_EQ(label_of(result.code), "INVALID_MOTION_PLAN") << result.message;
      continue;
    }
    ++succeeded;
    expect_within_limits(*model, request, result.trajectory);
    EXPECT_EQ(deepest(result.trajectory, scene, 1e-3), 0.0) << scene_name << ' ' << i;
  }
  ::testing::Test::RecordProperty("succeeded", succeeded);
  EXPECT_GT(succeeded, count / 2);
}

}  // namespace perflab::manipulation::planning
