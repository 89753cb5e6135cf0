// The simulated arm: it holds, falls, follows a trajectory within its limits, touches things, and is
// deterministic. Also the loop that paces it, on a test clock.
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "manipulation/control/controller.h"
#include "manipulation/control/servo.h"
#include "manipulation/physics/paced_loop.h"
#include "manipulation/physics/world.h"

namespace perflab::manipulation {
namespace {

constexpr Nanoseconds kMs = 1'000'000;

const Model& panda() {
  static const std::shared_ptr<const Model> model = Model::load("panda", "empty");
  return *model;
}

TrajectoryController::Settings settings_of(const Model& model) {
  TrajectoryController::Settings settings;
  settings.joints = model.joints();
  for (const JointLimits& each : model.limits()) {
    settings.limits.push_back({each.lower, each.upper, each.velocity, each.acceleration});
  }
  return settings;
}

std::vector<double> velocity_limits() {
  std::vector<double> limits;
  for (const JointLimits& each : panda().limits()) limits.push_back(each.velocity);
  return limits;
}

// The simulator without real time: 1 kHz of physics, the controller in every second step.
struct Simulation {
  explicit Simulation(const std::string& scene = "empty")
      : world("panda", Scene::load(scene), {}),
        controller(settings_of(panda())),
        servo(500.0, velocity_limits()),
        drive(7) {
    reset(panda().named_state("ready"));
  }
  void reset(const Positions& positions) {
    world.reset(positions);
    controller.reset(positions);
  }
  void step() {
    if (world.now_ns() % (2 * kMs) == 0) {
      controller.update(world.now_ns(), world.positions(), world.velocities());
      servo.update(controller.state().output, world.positions(), drive);
      world.command(drive);
    }
    world.step();
  }
  void run_for(Nanoseconds duration) {
    for (Nanoseconds passed = 0; passed < duration; passed += kMs) step();
  }

  World world;
  TrajectoryController controller;
  VelocityServo servo;
  std::vector<double> drive;
};

// From rest to rest by a quintic, slow enough that no joint exceeds `share` of its limits.
Trajectory quintic(const Positions& from, const Positions& to, double share) {
  double seconds = 0.01;
  const std::span<const JointLimits> limits = panda().limits();
  for (std::size_t joint = 0; joint < limits.size(); ++joint) {
    const double way = std::abs(to[joint] - from[joint]);
    seconds = std::max({seconds, 1.875 * way / (share * limits[joint].velocity),
                        std::sqrt(5.7735027 * way / (share * limits[joint].acceleration))});
  }
  const std::vector<double> none(7, 0.0);
  return {panda().joints(), {{0, from, none, none}, {static_cast<Nanoseconds>(seconds * 1e9), to, none, none}}};
}

TEST(World, HoldsItsPoseWithGravityCompensatedByTheDrives) {
  Simulation simulation;
  simulation.run_for(1000 * kMs);
  const Positions& ready = panda().named_state("ready");
  for (std::size_t joint = 0; joint < ready.size(); ++joint) {
    EXPECT_NEAR(simulation.world.positions()[joint], ready[joint], 1e-4) << joint;
    EXPECT_NEAR(simulation.world.velocities()[joint], 0.0, 1e-4) << joint;
  }
  // The drives produce exactly the derivative of the potential energy.
  const std::vector<double> efforts(simulation.world.efforts().begin(), simulation.world.efforts().end());
  for (std::size_t joint = 0; joint < ready.size(); ++joint) {
    constexpr double kStep = 1e-5;
    Positions below = ready, above = ready;
    below[joint] -= kStep;
    above[joint] += kStep;
    simulation.world.reset(below);
    const double least = simulation.world.energy().potential;
    simulation.world.reset(above);
    EXPECT_NEAR(efforts[joint], (simulation.world.energy().potential - least) / (2.0 * kStep), 1e-2) << joint;
  }
  EXPECT_FALSE(simulation.world.touch().has_value());
  EXPECT_FALSE(simulation.world.diverged());
}

TEST(World, FallsWithoutAnyTorqueAndKeepsItsEnergy) {
  World world("panda", Scene::load("empty"), {.drive = World::Drive::kTorque, .timestep_ns = 1 * kMs / 10,
                                              .gravity_compensation = false});
  world.reset(Positions{0.0, -0.3, 0.0, -1.5, 0.0, 1.5, 0.0});
  const World::Energy before = world.energy();
  for (int step = 0; step < 2000; ++step) world.step();
  const World::Energy after = world.energy();
  const double gained = after.kinetic - before.kinetic, lost = before.potential - after.potential;
  EXPECT_GT(gained, 1.0);
  EXPECT_NEAR(gained / lost, 1.0, 0.02);  // joints have some friction
}

TEST(World, DoesTheSameEachTime) {
  const auto run = [] {
    Simulation simulation("pick_and_place");
    const Positions goal = {0.4, -0.5, 0.2, -2.0, 0.1, 1.8, 0.6};
    const auto accepted = simulation.controller.accept(quintic(panda().named_state("ready"), goal, 0.5),
                                                       simulation.controller.tolerances());
    simulation.run_for(1500 * kMs);
    return simulation.world.snapshot();
  };
  EXPECT_EQ(run(), run());
}

TEST(World, FollowsATrajectoryWithinTheLimitsAndSettlesSoon) {
  Simulation simulation;
  SplitMix64 random(23);
  const Model& model = panda();
  for (int round = 0; round < 6; ++round) {
    Positions from = random_positions(model, random), to = random_positions(model, random);
    for (std::size_t joint = 0; joint < from.size(); ++joint) {  // not at the ends, so that errors stay inside
      const JointLimits& limits = model.limits()[joint];
      const double middle = (limits.lower + limits.upper) / 2.0;
      from[joint] = middle + 0.9 * (from[joint] - middle);
      to[joint] = middle + 0.9 * (to[joint] - middle);
    }
    simulation.world.reset(from);
    if (simulation.world.touch()) continue;
    simulation.reset(from);
    const auto goal =
        simulation.controller.accept(quintic(from, to, 0.5), simulation.controller.tolerances());
    std::vector<double> before = from, velocity(7, 0.0);
    bool touched = false;
    while (!goal->ended()) {
      simulation.step();
      touched = touched || simulation.world.touch().has_value();
      for (std::size_t joint = 0; joint < 7; ++joint) {
        const JointLimits& limits = model.limits()[joint];
        ASSERT_LE(std::abs(simulation.controller.state().desired.velocities[joint]), limits.velocity);
        ASSERT_LE(std::abs(simulation.controller.state().desired.accelerations[joint]), limits.acceleration);
        ASSERT_LE(std::abs(simulation.world.velocities()[joint]), limits.velocity);
        ASSERT_LE(std::abs(simulation.world.efforts()[joint]), limits.effort + 1e-9);
        ASSERT_GE(simulation.world.positions()[joint], limits.lower - 1e-3);
        ASSERT_LE(simulation.world.positions()[joint], limits.upper + 1e-3);
      }
    }
    if (touched) continue;  // self-collision: such goals would not be planned
    EXPECT_EQ(goal->status(), TrajectoryGoal::Status::kSucceeded);
    EXPECT_LE(goal->settling_ns(), 100 * kMs);
    EXPECT_LT(goal->tracking().most, 0.06);
    simulation.run_for(200 * kMs);
    for (std::size_t joint = 0; joint < 7; ++joint) {
      EXPECT_NEAR(simulation.world.positions()[joint], to[joint], 1e-3) << joint;
    }
  }
  EXPECT_FALSE(simulation.world.diverged());
}

TEST(World, DrivesThatAreGivenTorquesFollowLessExactly) {
  World world("panda", Scene::load("empty"), {.drive = World::Drive::kTorque});
  TrajectoryController controller(settings_of(panda()));
  std::vector<double> efforts;
  for (const JointLimits& each : panda().limits()) efforts.push_back(each.effort);
  const TorqueServo servo(world.stiffness(), world.damping(), efforts);
  const Positions from = panda().named_state("ready"), to = {0.4, -0.5, 0.2, -2.0, 0.1, 1.8, 0.6};
  world.reset(from);
  controller.reset(from);
  const auto goal = controller.accept(quintic(from, to, 0.5), controller.tolerances());
  std::vector<double> drive(7);
  for (int step = 0; step < 4000; ++step) {
    if (step % 2 == 0) {
      controller.update(world.now_ns(), world.positions(), world.velocities());
      servo.update(controller.state().output, controller.state().desired.velocities, world.positions(),
                   world.velocities(), drive);
      world.command(drive);
    }
    world.step();
  }
  EXPECT_EQ(goal->status(), TrajectoryGoal::Status::kSucceeded);
  EXPECT_GT(goal->tracking().most, 1e-4);
  EXPECT_LT(goal->tracking().most, 0.1);
  for (std::size_t joint = 0; joint < 7; ++joint) EXPECT_NEAR(world.positions()[joint], to[joint], 5e-3) << joint;
}

TEST(World, AnObstacleInTheWayIsTouched) {
  Simulation simulation("table");
  const auto model = Model::load("panda", "table");
  State state(model);
  const InverseKinematics ik(model, model->tip());
  const Positions from = model->named_state("ready");
  const auto below = ik.solve(state, pose_of({0.45, 0.0, 0.12}, 1.0, 0.0, 0.0, 0.0), from);
  ASSERT_TRUE(below.has_value());
  const auto goal = simulation.controller.accept(quintic(from, *below, 0.3), simulation.controller.tolerances());
  std::optional<World::Touch> touch;
  for (int step = 0; step < 4000 && !touch; ++step) {
    simulation.step();
    touch = simulation.world.touch();
  }
  ASSERT_TRUE(touch.has_value());
  EXPECT_EQ(std::string(touch->other), "table");
  EXPECT_EQ(std::string(touch->link).find("finger") != std::string::npos, true) << touch->link;
}

TEST(World, AGraspedBoxGoesAlong) {
  Simulation simulation("pick_and_place");
  const auto model = Model::load("panda", "pick_and_place");
  State state(model);
  const InverseKinematics ik(model, model->tip());
  const auto at = ik.solve(state, pose_of({0.5, 0.2, 0.26}, 1.0, 0.0, 0.0, 0.0), model->named_state("ready"));
  ASSERT_TRUE(at.has_value());
  simulation.reset(*at);
  const auto first = simulation.world.touch();
  EXPECT_FALSE(first.has_value()) << first->link << " " << first->other;
  EXPECT_FALSE(simulation.world.holds("workpiece"));
  simulation.world.command_hand(0.02);
  simulation.world.allow("workpiece", "panda_leftfinger");
  simulation.world.allow("panda_rightfinger", "workpiece");
  simulation.run_for(300 * kMs);
  EXPECT_LT(simulation.world.hand(), 0.03);
  EXPECT_TRUE(simulation.world.holds("workpiece"));
  EXPECT_THROW(simulation.world.grasp("table"), BadInput);
  simulation.world.grasp("workpiece");
  Positions up = *at;
  up[1] -= 0.3;
  const auto goal = simulation.controller.accept(quintic(*at, up, 0.5), simulation.controller.tolerances());
  simulation.run_for(2000 * kMs);
  EXPECT_EQ(goal->status(), TrajectoryGoal::Status::kSucceeded);
  const Pose held = simulation.world.object("workpiece");
  EXPECT_GT(held.translation().z(), 0.3);
  EXPECT_LT((held.translation() - simulation.world.pose(model->tip()).translation()).norm(), 0.05);
  EXPECT_FALSE(simulation.world.touch().has_value());
  simulation.world.release("workpiece");
  simulation.world.command_hand(0.04);
  simulation.run_for(1000 * kMs);
  EXPECT_NEAR(simulation.world.object("workpiece").translation().z(), 0.24, 0.02);
}

TEST(World, AGraspedBoxMayTouchWhatItStoodOnUntilItIsLiftedAndNothingElse) {
  Simulation simulation("pick_and_place");
  const auto model = Model::load("panda", "pick_and_place");
  State state(model);
  const InverseKinematics ik(model, model->tip());
  const auto at = [&](double x, double y, double z, const Positions& from) {
    const auto found = ik.solve(state, pose_of({x, y, z}, 1.0, 0.0, 0.0, 0.0), from);
    EXPECT_TRUE(found.has_value());
    return found.value_or(from);
  };
  const Positions around = at(0.5, 0.2, 0.26, model->named_state("ready"));
  simulation.reset(around);
  for (const std::string& finger : model->touch_links()) simulation.world.allow(finger, "workpiece");
  simulation.world.command_hand(0.02);
  simulation.run_for(300 * kMs);
  ASSERT_TRUE(simulation.world.holds("workpiece"));
  simulation.world.grasp("workpiece");

  // Runs the motion until an unexpected contact.
  const auto moved = [&](const Positions& from, const Positions& to) {
    const auto goal = simulation.controller.accept(quintic(from, to, 0.3), simulation.controller.tolerances());
    std::optional<World::Touch> touch;
    for (int step = 0; step < 6000 && !goal->ended() && !touch; ++step) {
      simulation.step();
      touch = simulation.world.touch();
    }
    return touch;
  };
  const Positions above = at(0.5, 0.2, 0.40, around);
  const auto lifting = moved(around, above);
  EXPECT_FALSE(lifting.has_value()) << lifting->link << " " << lifting->other;
  // Down below the table top, which the box reaches first.
  const auto lowered = moved(above, at(0.5, 0.05, 0.23, above));
  ASSERT_TRUE(lowered.has_value());
  EXPECT_EQ(std::string(lowered->link), "workpiece");
  EXPECT_EQ(std::string(lowered->other), "table");
  simulation.world.release("workpiece");
  simulation.world.command_hand(0.04);
  simulation.reset(around);  // the box is where it was at first, on the table
  simulation.run_for(300 * kMs);
  EXPECT_FALSE(simulation.world.touch().has_value());
}

// ---- pace ------------------------------------------------------------------------------------------------------------

struct TestTime {
  [[nodiscard]] Nanoseconds now() const noexcept { return *at; }
  void sleep_until(Nanoseconds instant) const noexcept { *at = std::max(*at, instant) + 10; }
  Nanoseconds* at;
};

TEST(PacedLoop, KeepsItsDeadlinesAndMakesUpForWhatItMissed) {
  Nanoseconds at = 500;
  PacedLoop loop({.period_ns = 1000, .most_behind_ns = 100'000}, 3000);
  std::vector<Nanoseconds> due, woken;
  loop.run(1000, TestTime{&at}, [&] { return due.size() == 10; },
           [&](Nanoseconds due_ns, Nanoseconds woken_ns) {
             due.push_back(due_ns);
             woken.push_back(woken_ns);
             at += due.size() == 5 ? 2500 : 100;
           });
  EXPECT_EQ(due, (std::vector<Nanoseconds>{1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10000}));
  EXPECT_EQ(woken[4], 5010);
  EXPECT_EQ(woken[5], 7520);
  EXPECT_EQ(woken[8], 9010);
  EXPECT_EQ(loop.counts().cycles, 8U);
  EXPECT_EQ(loop.counts().late, 1U);      // 6000
  EXPECT_EQ(loop.counts().overruns, 2U);  // 5000, 6000
  EXPECT_EQ(loop.counts().skipped, 0U);
  EXPECT_EQ(loop.counts().first_due_ns, 3000);
  EXPECT_EQ(loop.counts().last_due_ns, 10000);
}

TEST(PacedLoop, LeavesOutWholePeriodsWhereItIsTooFarBehind) {
  Nanoseconds at = 500;
  PacedLoop loop({.period_ns = 1000, .most_behind_ns = 3000}, 0);
  std::vector<Nanoseconds> due;
  loop.run(1000, TestTime{&at}, [&] { return due.size() == 4; },
           [&](Nanoseconds due_ns, Nanoseconds) {
             due.push_back(due_ns);
             if (due.size() == 2) at += 7400;
           });
  EXPECT_EQ(due, (std::vector<Nanoseconds>{1000, 2000, 9000, 10000}));
  EXPECT_EQ(loop.counts().skipped, 6U);
}

}  // namespace
}  // namespace perflab::manipulation
