// Conversion of MoveIt's messages to requests, and of goals to messages.
#include "manipulation/move_group/requests.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>

#include "manipulation/move_group/planning_scene.h"
#include "manipulation/planning/error_codes.h"
#include "message/codec.h"
#include "message/definitions.h"
#include "message/library.h"
#include "message/object.h"
#include "message/type.h"
#include "messages/moveit_msgs/srv/apply_planning_scene.h"
#include "support.h"

namespace perflab::manipulation {
namespace {

using messages::moveit_msgs::msg::MotionPlanRequest;

MotionPlanRequest message_for(const Model& model, const planning::Goal& goal) {
  MotionPlanRequest message;
  message.group_name = model.group();
  message.goal_constraints.push_back(message_of(goal, model));
  return message;
}

std::string label_of(const MotionPlanRequest& message, const Model& model) {
  try {
    (void)request_of(message, model, model.named_state("ready"));
    return "taken";
  } catch (const RefusedRequest& refused) {
    EXPECT_FALSE(refused.message.empty());
    return refused.label;
  }
}

planning::PoseGoal pose(const Model& model) {
  planning::PoseGoal goal;
  goal.link = model.flange();
  goal.position = {0.4, 0.2, 0.5};
  goal.radius = 0.02;
  goal.orientation = Eigen::Quaterniond(0.5, 0.5, -0.5, 0.5);
  goal.tolerance = {0.1, 0.2, 0.3};
  goal.angles = planning::PoseGoal::Angles::kRotationVector;
  return goal;
}

TEST(Requests, GoalsAreTheSameOnceTheyWereMessages) {
  const auto model = panda();
  const auto joints = request_of(message_for(*model, planning::JointGoal{model->named_state("ready"), 0.02}), *model,
                                 model->named_state("ready"));
  ASSERT_EQ(joints.goals.size(), 1U);
  EXPECT_EQ(std::get<planning::JointGoal>(joints.goals[0]).positions, model->named_state("ready"));
  EXPECT_EQ(std::get<planning::JointGoal>(joints.goals[0]).tolerance, 0.02);

  const planning::PoseGoal asked = pose(*model);
  const auto request = request_of(message_for(*model, asked), *model, model->named_state("ready"));
  const auto& goal = std::get<planning::PoseGoal>(request.goals.at(0));
  EXPECT_EQ(goal.link.id, asked.link.id);
  EXPECT_EQ(goal.position, asked.position);
  EXPECT_EQ(goal.radius, asked.radius);
  EXPECT_TRUE(goal.orientation.isApprox(asked.orientation));
  EXPECT_EQ(goal.tolerance, asked.tolerance);
  EXPECT_EQ(goal.angles, asked.angles);
}

TEST(Requests, WhatIsNotSaidIsAsMoveItHasIt) {
  const auto model = panda();
  const auto request = request_of(message_for(*model, pose(*model)), *model, model->named_state("ready"));
  EXPECT_EQ(request.start, model->named_state("ready"));
  EXPECT_EQ(request.attempts, 1U);
  EXPECT_EQ(request.allowed_time, 1.0);
  EXPECT_EQ(request.velocity_scaling, 1.0);
  EXPECT_EQ(request.acceleration_scaling, 1.0);
  EXPECT_FALSE(request.workspace);
}

TEST(Requests, AStartIsSaidByTheNamesOfJoints) {
  const auto model = panda();
  MotionPlanRequest message = message_for(*model, pose(*model));
  message.start_state.joint_state.name = {model->joints()[2], "some_other_joint"};
  message.start_state.joint_state.position = {0.25, 9.0};
  Positions expected = model->named_state("ready");
  expected[2] = 0.25;
  EXPECT_EQ(request_of(message, *model, model->named_state("ready")).start, expected);
}

TEST(Requests, WhatCannotBeTakenHasMoveItsLabel) {
  const auto model = panda();
  const MotionPlanRequest right = message_for(*model, pose(*model));
  EXPECT_EQ(label_of(right, *model), "taken");
  MotionPlanRequest message = right;
  message.group_name = "panda_leg";
  EXPECT_EQ(label_of(message, *model), "INVALID_GROUP_NAME");
  message = right;
  message.goal_constraints[0].position_constraints[0].link_name = "panda_link99";
  EXPECT_EQ(label_of(message, *model), "INVALID_LINK_NAME");
  message = right;
  message.goal_constraints[0].position_constraints[0].header.frame_id = "kitchen";
  EXPECT_EQ(label_of(message, *model), "FRAME_TRANSFORM_FAILURE");
  message = right;
  message.goal_constraints[0].position_constraints.clear();
  EXPECT_EQ(label_of(message, *model), "INVALID_GOAL_CONSTRAINTS");
  message = message_for(*model, planning::JointGoal{model->named_state("ready")});
  message.goal_constraints[0].joint_constraints[1].joint_name = model->joints()[0];
  EXPECT_EQ(label_of(message, *model), "INVALID_GOAL_CONSTRAINTS");
  message = right;
  message.path_constraints = message_of(planning::Goal(pose(*model)), *model);
  EXPECT_EQ(label_of(message, *model), "INVALID_MOTION_PLAN");
  message = right;
  message.start_state.joint_state.name = {"panda_joint1"};
  EXPECT_EQ(label_of(message, *model), "INVALID_ROBOT_STATE");
}

// Messages encoded by the Python library rosbags from moveit_msgs' own definitions (branch ros2): what a
// MoveIt client sends, and MoveIt's answers.
struct Recorded {
  message::Library library{message::brought()};
  message::Types types{library};

  [[nodiscard]] message::Object read(const std::string& type, const std::string& name) {
    std::ifstream file(std::string(PERFLAB_RECORDED) + "/" + name, std::ios::binary);
    const std::vector<char> text{std::istreambuf_iterator<char>(file), {}};
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    message::Object object(types.find(type));
    EXPECT_FALSE(bytes.empty()) << name;
    EXPECT_TRUE(message::Codec(object.type()).decode(bytes, object.data())) << name;
    return object;
  }
};

TEST(Requests, AGoalIsWhatAClientOfMoveItSends) {
  const auto model = panda();
  planning::PoseGoal reach;
  reach.link = model->flange();
  reach.position = {0.4, 0.2, 0.5};
  reach.orientation = Eigen::Quaterniond(0.0, std::sqrt(0.5), std::sqrt(0.5), 0.0);
  reach.radius = 0.01;
  reach.tolerance = Eigen::Vector3d::Constant(0.1);
  const Asked asked{0.5, 0.5, 3, "RRTConnectkConfigDefault", 5.0, 1.0, 5};
  const auto ours = message_of(planning::Goal(reach), "goal", asked, *model);
  Recorded recorded;
  const message::Object theirs = recorded.read("moveit_msgs/action/MoveGroup_Goal", "reach.goal.cdr");
  EXPECT_TRUE(message::Object(theirs.type(), &ours) == theirs);
}

TEST(Requests, TheObjectsOfASceneAreWhatAClientOfMoveItSends) {
  Scene scene = Scene::load("table");
  scene.objects.resize(1);
  messages::moveit_msgs::srv::ApplyPlanningScene::Request ours;
  ours.scene = PlanningScene::adding(scene, "panda_link0");
  Recorded recorded;
  const message::Object theirs = recorded.read("moveit_msgs/srv/ApplyPlanningScene_Request", "table.scene.cdr");
  EXPECT_TRUE(message::Object(theirs.type(), &ours) == theirs);
}

TEST(Requests, AResultOfMoveItIsReadWithItsCodeAndTrajectory) {
  using messages::moveit_msgs::action::MoveGroup;
  Recorded recorded;
  const message::Object object = recorded.read("moveit_msgs/action/MoveGroup_Result", "control_failed.result.cdr");
  const auto& result = *static_cast<const MoveGroup::Result*>(object.data());
  EXPECT_EQ(planning::label_of(result.error_code.val), "CONTROL_FAILED");
  const auto& points = result.planned_trajectory.joint_trajectory.points;
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[1].positions[0], 0.5);
  EXPECT_EQ(points[1].time_from_start.nanosec, 250'000'000U);
}

TEST(Requests, ACodeAloneNamesAnOutcome) {
  const auto outcome = [](const char* label, bool executing) { return planning::outcome_of(planning::code_of(label), executing); };
  EXPECT_EQ(outcome("CONTROL_FAILED", true), "goal_aborted");
  EXPECT_EQ(outcome("TIMED_OUT", true), "execution_timeout");
  EXPECT_EQ(outcome("TIMED_OUT", false), "planning_timeout");
  EXPECT_EQ(outcome("START_STATE_INVALID", false), "planning_failed");
  EXPECT_EQ(outcome("GOAL_IN_COLLISION", false), "would_collide");
  EXPECT_EQ(outcome("MOTION_PLAN_INVALIDATED_BY_ENVIRONMENT_CHANGE", true), "would_collide");
  EXPECT_EQ(outcome("PREEMPTED", true), "preempted");
}

TEST(Requests, ATrajectoryIsOneOfTheArmsJoints) {
  const auto model = panda();
  planning::Trajectory trajectory;
  const planning::Joints zero = planning::Joints::Zero(7);
  trajectory.points = {{0.0, zero, zero, zero}, {1.25, planning::Joints::Constant(7, 0.5), zero, zero}};
  const auto message = message_of(trajectory, *model);
  ASSERT_EQ(message.joint_names.size(), 7U);
  EXPECT_EQ(message.joint_names[3], "panda_joint4");
  ASSERT_EQ(message.points.size(), 2U);
  EXPECT_EQ(message.points[1].time_from_start.sec, 1);
  EXPECT_EQ(message.points[1].time_from_start.nanosec, 250'000'000U);
  EXPECT_EQ(message.points[1].positions[6], 0.5);
}

}  // namespace
}  // namespace perflab::manipulation
