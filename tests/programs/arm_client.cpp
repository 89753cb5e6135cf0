// A program for tests: once it hears where the arm is, sends it along a trajectory by FollowJointTrajectory, sees that it
// comes to its end, that messages of time, frames and joints come meanwhile, and ends the trial.
//
// Options: to (joint positions), via (likewise; half-way in time, at rest), within, cancel_after (0s: never), path_tolerance
// (rad), grip (m: what the hand closes to at the end, by GripperCommand).
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "messages/control_msgs/action/follow_joint_trajectory.h"
#include "messages/control_msgs/action/gripper_command.h"
#include "messages/rosgraph_msgs/msg/clock.h"
#include "messages/sensor_msgs/msg/joint_state.h"
#include "messages/std_msgs/msg/string.h"
#include "messages/tf2_msgs/msg/tf_message.h"
#include "program/program.h"

namespace {

using namespace perflab;
using messages::control_msgs::action::FollowJointTrajectory;
using messages::control_msgs::action::GripperCommand;
using messages::rosgraph_msgs::msg::Clock;
using messages::sensor_msgs::msg::JointState;
using messages::std_msgs::msg::String;
using messages::tf2_msgs::msg::TFMessage;

constexpr const char* kNode = "/arm_client";
constexpr const char* kAction = "/panda_arm_controller/follow_joint_trajectory";
constexpr const char* kHandAction = "/panda_hand_controller/gripper_cmd";

class ArmClient final : public program::Application {
 public:
  explicit ArmClient(program::Context& context)
      : context_(context),
        to_(context.options().numbers("to", 7)),
        via_(context.options().numbers("via", 0, std::vector<double>{})),
        within_ns_(context.options().duration("within", 2 * kNanosecondsPerSecond)),
        cancel_after_ns_(context.options().duration("cancel_after", 0)),
        path_tolerance_(context.options().number("path_tolerance", 0.0)),
        arm_(context.action_client<FollowJointTrajectory>(kNode, kAction)) {
    if (context.options().has("grip")) {
      grip_ = context.options().number("grip");
      hand_ = context.action_client<GripperCommand>(kNode, kHandAction);
    }
    context.on_message<JointState>(kNode, "/joint_states", [this](const JointState& joints, const program::Received& how) {
      see(joints, how.callback_ns);
    });
    context.on_message<Clock>(kNode, "/clock", [this](const Clock& clock, const program::Received&) {
      const Nanoseconds now_ns = clock.clock.sec * kNanosecondsPerSecond + clock.clock.nanosec;
      if (now_ns <= clock_ns_) context_.fail("the clock went back");
      clock_ns_ = now_ns;
      ++clocks_;
    });
    context.on_message<TFMessage>(kNode, "/tf", [this](const TFMessage& frames, const program::Received&) {
      frames_ += static_cast<int>(frames.transforms.size());
    });
    context.on_message<String>(kNode, "/robot_description", [this](const String& urdf, const program::Received&) {
      if (urdf.data.view().find("panda_link8") == std::string_view::npos) context_.fail("this is no description of a Panda");
      described_ = true;
    });
  }

 private:
  void see(const JointState& joints, Nanoseconds at_ns) {
    last_.assign(joints.position.begin(), joints.position.begin() + 7);
    if (sent_ns_ == 0 && frames_ > 0 && clocks_ > 0) send(at_ns);
    if (cancel_after_ns_ > 0 && goal_ && at_ns > sent_ns_ + cancel_after_ns_) {
      arm_.cancel(*goal_);
      cancel_after_ns_ = 0;
    }
  }

  void send(Nanoseconds at_ns) {
    sent_ns_ = at_ns;
    FollowJointTrajectory::Goal goal;
    for (int joint = 1; joint <= 7; ++joint) goal.trajectory.joint_names.push_back("panda_joint" + std::to_string(joint));
    const auto add = [&goal](const std::vector<double>& positions, Nanoseconds at) {
      goal.trajectory.points.resize(goal.trajectory.points.size() + 1);
      auto& point = goal.trajectory.points.back();
      point.positions = positions;
      point.velocities.resize(7);
      point.accelerations.resize(7);
      point.time_from_start.sec = static_cast<std::int32_t>(at / kNanosecondsPerSecond);
      point.time_from_start.nanosec = static_cast<std::uint32_t>(at % kNanosecondsPerSecond);
    };
    if (!via_.empty()) add(via_, within_ns_ / 2);
    add(to_, within_ns_);
    if (path_tolerance_ > 0.0) {
      goal.path_tolerance.resize(1);
      goal.path_tolerance[0].name = "panda_joint1";
      goal.path_tolerance[0].position = path_tolerance_;
    }
    program::GoalHandlers<FollowJointTrajectory> handlers;
    handlers.on_response = [this](bool accepted, std::int64_t) {
      context_.figure("accepted", accepted ? 1.0 : 0.0);
      if (!accepted) context_.end();
    };
    handlers.on_feedback = [this](const FollowJointTrajectory::Feedback& feedback) {
      if (feedback.actual.positions.size() == 7) ++feedbacks_;
    };
    handlers.on_result = [this](program::GoalStatus status, const FollowJointTrajectory::Result& result) {
      double off = 0.0;
      for (std::size_t joint = 0; joint < 7; ++joint) off = std::max(off, std::abs(last_[joint] - to_[joint]));
      context_.figure("status", static_cast<double>(status));
      context_.figure("error_code", result.error_code);
      context_.figure("off", off);
      context_.figure("feedbacks", feedbacks_);
      context_.figure("clocks", clocks_);
      context_.figure("frames", frames_);
      context_.figure("described", described_ ? 1.0 : 0.0);
      ended_ns_ = context_.clock().now();
      context_.figure("took", static_cast<double>(ended_ns_ - sent_ns_) * 1e-9);
      if (hand_) {
        close();
      } else {
        context_.end();
      }
    };
    goal_ = arm_.send(goal, std::move(handlers));
    if (!goal_) context_.fail("the goal was not sent");
  }

  void close() {
    GripperCommand::Goal goal;
    goal.command.position = grip_;
    program::GoalHandlers<GripperCommand> handlers;
    handlers.on_response = [this](bool accepted, std::int64_t) {
      if (!accepted) context_.fail("the gripper refused its goal");
    };
    handlers.on_result = [this](program::GoalStatus status, const GripperCommand::Result& result) {
      context_.figure("grip_status", static_cast<double>(status));
      context_.figure("stalled", result.stalled ? 1.0 : 0.0);
      context_.figure("opening", result.position);
      context_.end();
    };
    if (!hand_->send(goal, std::move(handlers))) context_.fail("the gripper's goal was not sent");
  }

  program::Context& context_;
  const std::vector<double> to_, via_;
  const Nanoseconds within_ns_;
  Nanoseconds cancel_after_ns_;
  const double path_tolerance_;
  program::ActionClient<FollowJointTrajectory> arm_;
  std::optional<program::ActionClient<GripperCommand>> hand_;
  double grip_ = 0.0;
  std::optional<program::GoalId> goal_;
  std::vector<double> last_;
  Nanoseconds sent_ns_ = 0, ended_ns_ = 0, clock_ns_ = -1;
  int clocks_ = 0, frames_ = 0, feedbacks_ = 0;
  bool described_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return perflab::program::run("perflab-arm-client", argc, argv, [](perflab::program::Context& context) {
    return std::make_unique<ArmClient>(context);
  });
}
