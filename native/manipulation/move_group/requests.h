// Converts MoveIt's messages to planner requests, and requests for move_group (perflab's or MoveIt's) to
// messages.
#pragma once

#include <string>

#include "manipulation/planning/planner.h"
#include "manipulation/robot/robot.h"
#include "messages/moveit_msgs/action/move_group.h"
#include "messages/moveit_msgs/msg/constraints.h"
#include "messages/moveit_msgs/msg/motion_plan_request.h"
#include "messages/moveit_msgs/msg/robot_state.h"
#include "messages/trajectory_msgs/msg/joint_trajectory.h"

namespace perflab::manipulation {

// A request that cannot be accepted: MoveIt's label (planning/error_codes.h) and the reason.
struct RefusedRequest {
  std::string label;
  std::string message;
};

// The planner request for a message, with the arm at `current`. As in MoveIt: a scaling of 0 means 1, no
// attempts mean one, no allowed time means 1 s, a workspace of zeros means none. The caller sets `seed` and
// `begin_thread` of the result. Throws RefusedRequest.
[[nodiscard]] planning::Request request_of(const messages::moveit_msgs::msg::MotionPlanRequest& message,
                                           const Model& model, const Positions& current);

// A goal as constraints, which request_of() converts back to the same goal.
[[nodiscard]] messages::moveit_msgs::msg::Constraints message_of(const planning::Goal& goal, const Model& model);

// Common settings of a client's motions.
struct Asked {
  double velocity_scaling, acceleration_scaling;
  int attempts;
  std::string planner;
  double planning_time;
  double workspace;  // m in each direction from the base; 0: none
  int replan_attempts;
};

// A goal for /move_action, named `name`, from the current position.
[[nodiscard]] messages::moveit_msgs::action::MoveGroup::Goal message_of(const planning::Goal& goal, const std::string& name,
                                                                        const Asked& asked, const Model& model);

// For the arm's joints: positions, velocities and accelerations.
[[nodiscard]] messages::trajectory_msgs::msg::JointTrajectory message_of(const planning::Trajectory& trajectory,
                                                                         const Model& model);

// Arm and hand positions, as a joint state.
[[nodiscard]] messages::moveit_msgs::msg::RobotState message_of(const Positions& positions, double hand,
                                                                const Model& model);

}  // namespace perflab::manipulation
