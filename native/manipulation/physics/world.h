// The simulated arm and its surroundings: rigid-body dynamics and contacts by MuJoCo, drives with the torque limits of the real
// joints, gravity compensated as by the robot's own controller. Deterministic: the same commands from the same start give the
// same states, bit by bit.
//
// Units and frames as in robot.h. One thread at a time. After construction only snapshot() and allow() allocate.
// Errors: BadInput at construction and for names; diverged() reports a simulation that has diverged.
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

  // Puts the arm at these positions and the objects where the scene has them, at rest, with the hand open, at time 0.
  void reset(std::span<const double> positions);

  // The command of each joint from now on, within the limits of its torque.
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
  // The torques of the drives in the last step, including gravity compensation, N m.
  [[nodiscard]] std::span<const double> efforts() const noexcept { return efforts_; }
  [[nodiscard]] double hand() const noexcept;
  [[nodiscard]] double hand_velocity() const noexcept;
  [[nodiscard]] Pose pose(Link link) const;      // after the last step
  [[nodiscard]] Pose object(const std::string& name) const;
  // Positions of all joints, including fingers and movable objects, in the order of Stage::columns.
  [[nodiscard]] std::span<const double> everything() const noexcept;

  // Gains of a torque drive by joint: N m/rad and N m s/rad.
  [[nodiscard]] const std::vector<double>& stiffness() const noexcept;
  [[nodiscard]] const std::vector<double>& damping() const noexcept;

  // A contact of the robot with itself or an object, or of a held object with another one, in the last step.
  // Two names, first that of the link or held object. Fingers touch what they hold; a held object may touch
  // what it stood on when grasped until it is 1 cm away. Does not allocate: the names point into the model.
  struct Touch {
    const char* link = "";
    const char* other = "";
    double depth = 0.0;  // m
  };
  [[nodiscard]] std::optional<Touch> touch() const noexcept;
  // From now on a contact of these two does not count as a collision, e.g. of the fingers and the box that
  // they grasp.
  void allow(const std::string& first, const std::string& second);

  // True if two links that may touch held objects (fingers) touch the object.
  [[nodiscard]] bool holds(const std::string& object) const noexcept;
  // Fixes an object to the hand at its current pose, like a firm grasp. Throws BadInput for an object that
  // cannot move.
  void grasp(const std::string& object);
  void release(const std::string& object);

  struct Energy {
    double potential, kinetic;  // J
  };
  [[nodiscard]] Energy energy();
  // The complete state that determines the next step.
  [[nodiscard]] std::vector<double> snapshot() const;
  // True if MuJoCo has found a state that is not finite or far too large.
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
