// MoveIt's messages as requests to the planner, and trajectories as its messages.
#pragma once

#include <string>

#include "manipulation/planning/planner.h"
#include "manipulation/robot/robot.h"
#include "messages/moveit_msgs/msg/constraints.h"
#include "messages/moveit_msgs/msg/motion_plan_request.h"
#include "messages/moveit_msgs/msg/robot_state.h"
#include "messages/trajectory_msgs/msg/joint_trajectory.h"

namespace perflab::manipulation {

// A request that cannot be taken: MoveIt's label (planning/error_codes.h) and what is wrong.
struct RefusedRequest {
  std::string label;
  std::string message;
};

// What the message asks for, of an arm that is at `current`. As MoveIt reads it: a scaling of 0 is 1, no attempts are one, no
// allowed time is 1 s, a workspace of zeros is none. `seed` and `begin_thread` of the result are the caller's. Throws
// RefusedRequest.
[[nodiscard]] planning::Request request_of(const messages::moveit_msgs::msg::MotionPlanRequest& message,
                                           const Model& model, const Positions& current);

// A goal as constraints, which request_of() reads as the same goal.
[[nodiscard]] messages::moveit_msgs::msg::Constraints message_of(const planning::Goal& goal, const Model& model);

// Of the arm's joints, its positions, velocities and accelerations.
[[nodiscard]] messages::trajectory_msgs::msg::JointTrajectory message_of(const planning::Trajectory& trajectory,
                                                                         const Model& model);

// Position and hand, as a joint state.
[[nodiscard]] messages::moveit_msgs::msg::RobotState message_of(const Positions& positions, double hand,
                                                                const Model& model);

}  // namespace perflab::manipulation
