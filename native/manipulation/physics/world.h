// The simulated arm and what is around it: dynamics of rigid bodies by MuJoCo, drives with the torques that the real joints
// have, gravity compensated as the robot's own controller does, contacts. Deterministic: the same commands from the same
// start give the same states, bit by bit.
//
// Units and frames as in robot.h. One thread at a time. Nothing but snapshot() and allow() allocates after construction.
// Errors: BadInput at construction and for names; a simulation that diverges says so in diverged().
//
// Example:
//   World world("panda", Scene::load("table"), {});
//   world.reset(ready);
//   servo.update(command, world.positions(), drive);
//   world.command(drive);
//   world.step();   // 1 ms
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/time.h"
#include "manipulation/robot/robot.h"

namespace perflab::manipulation {

class World {
 public:
  enum class Drive {
    kVelocity,  // commands are velocities; the drive's full torque at an error of 0.1 rad/s
    kTorque     // commands are torques
  };
  struct Options {
    Drive drive = Drive::kVelocity;
    Nanoseconds timestep_ns = 1'000'000;
    bool gravity_compensation = true;
  };

  World(const std::string& robot, const Scene& scene, const Options& options);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The arm at these positions, objects where the scene has them, all at rest, hand open, time 0.
  void reset(std::span<const double> positions);

  // What each joint shall do from now on; limited by the torque of the joint.
  void command(std::span<const double> drive) noexcept;
  // The opening of one finger, m.
  void command_hand(double opening) noexcept;
  // One time step.
  void step() noexcept;

  [[nodiscard]] Nanoseconds now_ns() const noexcept { return now_ns_; }
  [[nodiscard]] Nanoseconds timestep_ns() const noexcept { return timestep_ns_; }
  [[nodiscard]] const std::vector<std::string>& joints() const noexcept;
  [[nodiscard]] std::span<const double> positions() const noexcept { return positions_; }
  [[nodiscard]] std::span<const double> velocities() const noexcept { return velocities_; }
  // What the drives gave in the last step, that for gravity included, N m.
  [[nodiscard]] std::span<const double> efforts() const noexcept { return efforts_; }
  [[nodiscard]] double hand() const noexcept;
  [[nodiscard]] double hand_velocity() const noexcept;
  [[nodiscard]] Pose pose(Link link) const;      // as of the last step
  [[nodiscard]] Pose object(const std::string& name) const;

  // Of a drive that is given torques, by joint: N m/rad and N m s/rad.
  [[nodiscard]] const std::vector<double>& stiffness() const noexcept;
  [[nodiscard]] const std::vector<double>& damping() const noexcept;

  // Of the robot with an object that is not grasped, or with itself, in the last step; two names, that of a link first. No
  // allocation: names point into the model.
  struct Touch {
    const char* link = "";
    const char* other = "";
    double depth = 0.0;  // m
  };
  [[nodiscard]] std::optional<Touch> touch() const noexcept;
  // From now on the two may touch without that being a collision, e.g. fingers and the box that they take.
  void allow(const std::string& first, const std::string& second);

  // Whether two links that may touch what the hand holds (fingers) touch the object.
  [[nodiscard]] bool holds(const std::string& object) const noexcept;
  // Fixes an object to the link as they are now, as a firm grasp does. Throws BadInput for what cannot move.
  void grasp(const std::string& object);
  void release(const std::string& object);

  struct Energy {
    double potential, kinetic;  // J
  };
  [[nodiscard]] Energy energy();
  // All that the next step depends on.
  [[nodiscard]] std::vector<double> snapshot() const;
  // Whether MuJoCo gave up on a state that is no number or far too large.
  [[nodiscard]] bool diverged() const noexcept;

 private:
  struct Parts;
  void read() noexcept;

  std::unique_ptr<Parts> parts_;
  Nanoseconds timestep_ns_;
  Nanoseconds now_ns_ = 0;
  std::vector<double> positions_, velocities_, efforts_;
};

}  // namespace perflab::manipulation
