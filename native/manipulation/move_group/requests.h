// MoveIt's messages as requests to the planner, and what is asked of a move_group, perflab's or MoveIt's, as its messages.
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

// What a client asks of each motion.
struct Asked {
  double velocity_scaling, acceleration_scaling;
  int attempts;
  std::string planner;
  double planning_time;
  double workspace;  // m each way from the base; 0: none
  int replan_attempts;
};

// A goal of /move_action, named `name`, from where the arm is.
[[nodiscard]] messages::moveit_msgs::action::MoveGroup::Goal message_of(const planning::Goal& goal, const std::string& name,
                                                                        const Asked& asked, const Model& model);

// Of the arm's joints, its positions, velocities and accelerations.
[[nodiscard]] messages::trajectory_msgs::msg::JointTrajectory message_of(const planning::Trajectory& trajectory,
                                                                         const Model& model);

// Position and hand, as a joint state.
[[nodiscard]] messages::moveit_msgs::msg::RobotState message_of(const Positions& positions, double hand,
                                                                const Model& model);

}  // namespace perflab::manipulation
