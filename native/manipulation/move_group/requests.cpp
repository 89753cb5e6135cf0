#include "manipulation/move_group/requests.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/error.h"
#include "base/text.h"
#include "messages/moveit_msgs/msg/orientation_constraint.h"
#include "messages/shape_msgs/msg/solid_primitive.h"

namespace perflab::manipulation {
namespace {

namespace msg = messages::moveit_msgs::msg;
using messages::shape_msgs::msg::SolidPrimitive;

// Poses must be in the base frame, the only fixed frame of a scene.
void check_frame(std::string_view frame, const Model& model) {
  if (frame.empty() || frame == "world" || frame == model.name_of(model.base())) return;
  throw RefusedRequest{"FRAME_TRANSFORM_FAILURE",
                "the frame " + quote(frame) + " is unknown; right would be " + model.name_of(model.base())};
}

Link link_of(std::string_view name, const Model& model) {
  try {
    return model.link(name);
  } catch (const BadInput& error) {
    throw RefusedRequest{"INVALID_LINK_NAME", error.what()};
  }
}

planning::Goal joints_of(const msg::Constraints& constraints, const Model& model) {
  planning::JointGoal goal;
  goal.positions.assign(model.joints().size(), 0.0);
  goal.tolerance = std::numeric_limits<double>::infinity();
  std::vector<bool> said(model.joints().size(), false);
  for (const msg::JointConstraint& constraint : constraints.joint_constraints) {
    const auto joint = std::find(model.joints().begin(), model.joints().end(), constraint.joint_name.view());
    if (joint == model.joints().end()) {
      throw RefusedRequest{"INVALID_GOAL_CONSTRAINTS", "the arm has no joint " + quote(constraint.joint_name.view())};
    }
    const auto at = static_cast<std::size_t>(joint - model.joints().begin());
    goal.positions[at] = constraint.position;
    goal.tolerance = std::min({goal.tolerance, constraint.tolerance_above, constraint.tolerance_below});
    said[at] = true;
  }
  if (std::find(said.begin(), said.end(), false) != said.end()) {
    throw RefusedRequest{"INVALID_GOAL_CONSTRAINTS", "a joint goal does not have a position for each joint"};
  }
  return goal;
}

planning::Goal pose_of(const msg::Constraints& constraints, const Model& model) {
  if (constraints.position_constraints.size() != 1 || constraints.orientation_constraints.size() > 1) {
    throw RefusedRequest{"INVALID_GOAL_CONSTRAINTS", "a pose goal has one position and at most one orientation"};
  }
  planning::PoseGoal goal;
  const msg::PositionConstraint& position = constraints.position_constraints.front();
  check_frame(position.header.frame_id, model);
  goal.link = link_of(position.link_name, model);
  const auto& offset = position.target_point_offset;
  if (offset.x != 0.0 || offset.y != 0.0 || offset.z != 0.0) {
    throw RefusedRequest{"INVALID_GOAL_CONSTRAINTS",
                         "the position is for a point other than the link's origin"};
  }
  const auto& region = position.constraint_region;
  if (region.primitives.size() != 1 || region.primitive_poses.size() != 1 || !region.meshes.empty() ||
      region.primitives.front().type != SolidPrimitive::SPHERE || region.primitives.front().dimensions.empty()) {
    throw RefusedRequest{"INVALID_GOAL_CONSTRAINTS", "the region of the position is not a single sphere"};
  }
  goal.radius = region.primitives.front().dimensions.front();
  const auto& centre = region.primitive_poses.front().position;
  goal.position = {centre.x, centre.y, centre.z};
  if (constraints.orientation_constraints.empty()) {
    goal.tolerance = Eigen::Vector3d::Constant(std::numbers::pi);
    return goal;
  }
  const msg::OrientationConstraint& orientation = constraints.orientation_constraints.front();
  check_frame(orientation.header.frame_id, model);
  if (orientation.link_name.view() != position.link_name.view()) {
    throw RefusedRequest{"INVALID_GOAL_CONSTRAINTS", "position and orientation are for different links"};
  }
  goal.orientation = {orientation.orientation.w, orientation.orientation.x, orientation.orientation.y,
                      orientation.orientation.z};
  goal.tolerance = {orientation.absolute_x_axis_tolerance, orientation.absolute_y_axis_tolerance,
                    orientation.absolute_z_axis_tolerance};
  goal.angles = orientation.parameterization == msg::OrientationConstraint::ROTATION_VECTOR
                    ? planning::PoseGoal::Angles::kRotationVector
                    : planning::PoseGoal::Angles::kXyzEuler;
  return goal;
}

planning::Goal goal_of(const msg::Constraints& constraints, const Model& model) {
  if (!constraints.visibility_constraints.empty()) {
    throw RefusedRequest{"INVALID_GOAL_CONSTRAINTS", "visibility goals are not supported"};
  }
  const bool joints = !constraints.joint_constraints.empty();
  const bool pose = !constraints.position_constraints.empty() || !constraints.orientation_constraints.empty();
  if (joints == pose)
    throw RefusedRequest{"INVALID_GOAL_CONSTRAINTS", "a goal must be either for joints or for a link's pose"};
  return joints ? joints_of(constraints, model) : pose_of(constraints, model);
}

bool empty(const msg::Constraints& constraints) {
  return constraints.joint_constraints.empty() && constraints.position_constraints.empty() &&
         constraints.orientation_constraints.empty() && constraints.visibility_constraints.empty();
}

Positions start_of(const msg::RobotState& message, const Model& model, const Positions& current) {
  Positions start = current;
  const auto& state = message.joint_state;
  if (state.name.size() != state.position.size()) {
    throw RefusedRequest{"INVALID_ROBOT_STATE", "the start has different numbers of names and positions"};
  }
  for (std::size_t i = 0; i < state.name.size(); ++i) {
    const auto joint = std::find(model.joints().begin(), model.joints().end(), state.name[i].view());
    if (joint != model.joints().end()) start[static_cast<std::size_t>(joint - model.joints().begin())] = state.position[i];
  }
  return start;
}

std::optional<planning::Workspace> workspace_of(const msg::WorkspaceParameters& parameters, const Model& model) {
  const auto& low = parameters.min_corner;
  const auto& high = parameters.max_corner;
  const planning::Workspace workspace{{low.x, low.y, low.z}, {high.x, high.y, high.z}};
  if (workspace.lowest.isZero(0.0) && workspace.highest.isZero(0.0)) return std::nullopt;
  check_frame(parameters.header.frame_id, model);
  return workspace;
}

}  // namespace

planning::Request request_of(const msg::MotionPlanRequest& message, const Model& model, const Positions& current) {
  if (message.group_name.view() != model.group()) {
    throw RefusedRequest{"INVALID_GROUP_NAME",
                  "there is no group " + quote(message.group_name.view()) + "; right would be " + model.group()};
  }
  if (!empty(message.path_constraints) || !message.trajectory_constraints.constraints.empty()) {
    throw RefusedRequest{"INVALID_MOTION_PLAN", "path constraints are not supported by this planner"};
  }
  planning::Request request;
  request.start = start_of(message.start_state, model, current);
  for (const msg::Constraints& constraints : message.goal_constraints) request.goals.push_back(goal_of(constraints, model));
  request.planner = message.planner_id.string();
  request.attempts = static_cast<std::size_t>(std::max(1, message.num_planning_attempts));
  request.allowed_time = message.allowed_planning_time > 0.0 ? message.allowed_planning_time : 1.0;
  const auto scaling = [](double factor) { return factor == 0.0 ? 1.0 : factor; };
  request.velocity_scaling = scaling(message.max_velocity_scaling_factor);
  request.acceleration_scaling = scaling(message.max_acceleration_scaling_factor);
  request.workspace = workspace_of(message.workspace_parameters, model);
  return request;
}

namespace {

void write(const planning::JointGoal& goal, const Model& model, msg::Constraints& to) {
  for (std::size_t i = 0; i < goal.positions.size(); ++i) {
    msg::JointConstraint& joint = to.joint_constraints.emplace_back();
    joint.joint_name = model.joints()[i];
    joint.position = goal.positions[i];
    joint.tolerance_above = goal.tolerance;
    joint.tolerance_below = goal.tolerance;
    joint.weight = 1.0;
  }
}

void write(const planning::PoseGoal& goal, const Model& model, msg::Constraints& to) {
  msg::PositionConstraint& position = to.position_constraints.emplace_back();
  position.header.frame_id = model.name_of(model.base());
  position.link_name = model.name_of(goal.link);
  position.weight = 1.0;
  SolidPrimitive& sphere = position.constraint_region.primitives.emplace_back();
  sphere.type = SolidPrimitive::SPHERE;
  sphere.dimensions = {goal.radius};
  auto& centre = position.constraint_region.primitive_poses.emplace_back();
  centre.position.x = goal.position.x();
  centre.position.y = goal.position.y();
  centre.position.z = goal.position.z();
  centre.orientation.w = 1.0;
  msg::OrientationConstraint& orientation = to.orientation_constraints.emplace_back();
  orientation.header.frame_id = model.name_of(model.base());
  orientation.link_name = model.name_of(goal.link);
  orientation.orientation.x = goal.orientation.x();
  orientation.orientation.y = goal.orientation.y();
  orientation.orientation.z = goal.orientation.z();
  orientation.orientation.w = goal.orientation.w();
  orientation.absolute_x_axis_tolerance = goal.tolerance.x();
  orientation.absolute_y_axis_tolerance = goal.tolerance.y();
  orientation.absolute_z_axis_tolerance = goal.tolerance.z();
  orientation.parameterization = goal.angles == planning::PoseGoal::Angles::kRotationVector
                                     ? msg::OrientationConstraint::ROTATION_VECTOR
                                     : msg::OrientationConstraint::XYZ_EULER_ANGLES;
  orientation.weight = 1.0;
}

}  // namespace

msg::Constraints message_of(const planning::Goal& goal, const Model& model) {
  msg::Constraints message;
  std::visit([&](const auto& each) { write(each, model, message); }, goal);
  return message;
}

messages::moveit_msgs::action::MoveGroup::Goal message_of(const planning::Goal& goal, const std::string& name,
                                                          const Asked& asked, const Model& model) {
  messages::moveit_msgs::action::MoveGroup::Goal message;
  msg::MotionPlanRequest& request = message.request;
  request.group_name = model.group();
  request.pipeline_id = "ompl";
  request.planner_id = asked.planner;
  request.num_planning_attempts = asked.attempts;
  request.allowed_planning_time = asked.planning_time;
  request.max_velocity_scaling_factor = asked.velocity_scaling;
  request.max_acceleration_scaling_factor = asked.acceleration_scaling;
  request.start_state.is_diff = true;
  request.workspace_parameters.header.frame_id = model.name_of(model.base());
  auto& low = request.workspace_parameters.min_corner;
  auto& high = request.workspace_parameters.max_corner;
  low.x = low.y = low.z = -asked.workspace;
  high.x = high.y = high.z = asked.workspace;
  request.goal_constraints.push_back(message_of(goal, model));
  request.goal_constraints.back().name = name;
  message.planning_options.replan = asked.replan_attempts > 0;
  message.planning_options.replan_attempts = asked.replan_attempts;
  // Not a diff, hence not "empty": an arm that is already at the goal plans and moves nevertheless, as with
  // rclpy's default.
  message.planning_options.planning_scene_diff.is_diff = true;
  return message;
}

messages::trajectory_msgs::msg::JointTrajectory message_of(const planning::Trajectory& trajectory, const Model& model) {
  messages::trajectory_msgs::msg::JointTrajectory message;
  message.header.frame_id = model.name_of(model.base());
  message.joint_names = model.joints();
  message.points.reserve(trajectory.points.size());
  for (const planning::TrajectoryPoint& point : trajectory.points) {
    auto& to = message.points.emplace_back();
    to.positions = planning::positions_of(point.position);
    to.velocities = planning::positions_of(point.velocity);
    to.accelerations = planning::positions_of(point.acceleration);
    const auto time = static_cast<Nanoseconds>(std::llround(point.time * static_cast<double>(kNanosecondsPerSecond)));
    to.time_from_start.sec = static_cast<std::int32_t>(time / kNanosecondsPerSecond);
    to.time_from_start.nanosec = static_cast<std::uint32_t>(time % kNanosecondsPerSecond);
  }
  return message;
}

msg::RobotState message_of(const Positions& positions, double hand, const Model& model) {
  msg::RobotState message;
  message.joint_state.header.frame_id = model.name_of(model.base());
  message.joint_state.name = model.joints();
  message.joint_state.position = positions;
  if (!model.hand_joint().empty()) {
    message.joint_state.name.push_back(model.hand_joint());
    message.joint_state.position.push_back(hand);
  }
  return message;
}

}  // namespace perflab::manipulation
