// Servos that make joints follow a commanded position.
//
// VelocityServo is gz_ros2_control's position interface (gz_system.cpp): the velocity is the error times 0.1 times the
// controller's rate. TorqueServo commands torques, proportional to the errors of position and velocity; it does not compensate
// gravity and Coriolis forces.
//
// Commands never exceed the limits, which are given per joint. Neither servo allocates.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

namespace perflab::manipulation {

class VelocityServo {
 public:
  static constexpr double kGain = 0.1;  // per cycle of the controller

  // `velocity_limits` in rad/s.
  VelocityServo(double controller_rate_hz, std::vector<double> velocity_limits, double gain = kGain)
      : gain_(gain * controller_rate_hz), limits_(std::move(velocity_limits)) {}

  void update(std::span<const double> command, std::span<const double> positions,
              std::span<double> velocities) const noexcept {
    for (std::size_t joint = 0; joint < limits_.size(); ++joint) {
      velocities[joint] = std::clamp(gain_ * (command[joint] - positions[joint]), -limits_[joint], limits_[joint]);
    }
  }

 private:
  double gain_;  // 1/s
  std::vector<double> limits_;
};

class TorqueServo {
 public:
  // N m per rad and per rad/s; `effort_limits` in N m.
  TorqueServo(std::vector<double> stiffness, std::vector<double> damping, std::vector<double> effort_limits)
      : stiffness_(std::move(stiffness)), damping_(std::move(damping)), limits_(std::move(effort_limits)) {}

  void update(std::span<const double> command, std::span<const double> command_velocities,
              std::span<const double> positions, std::span<const double> velocities,
              std::span<double> efforts) const noexcept {
    for (std::size_t joint = 0; joint < limits_.size(); ++joint) {
      efforts[joint] = std::clamp(stiffness_[joint] * (command[joint] - positions[joint]) +
                                      damping_[joint] * (command_velocities[joint] - velocities[joint]),
                                  -limits_[joint], limits_[joint]);
    }
  }

 private:
  std::vector<double> stiffness_, damping_, limits_;
};

}  // namespace perflab::manipulation
