// The arm of the move_group tests, and its state messages.
#pragma once

#include <memory>
#include <string>

#include "manipulation/robot/robot.h"
#include "messages/sensor_msgs/msg/joint_state.h"

namespace perflab::manipulation {

inline std::shared_ptr<const Model> panda(const std::string& scene = "empty") { return Model::load("panda", scene); }

inline messages::sensor_msgs::msg::JointState joint_state(const Model& model, const Positions& positions, int seconds) {
  messages::sensor_msgs::msg::JointState message;
  message.header.stamp.sec = seconds;
  message.name = model.joints();
  message.position = positions;
  message.velocity = Positions(positions.size(), 0.0);
  return message;
}

}  // namespace perflab::manipulation
