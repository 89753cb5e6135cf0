// The arm's controllers as in ros2_control: a trajectory controller with its action server, a joint state
// broadcaster, and a gripper. The owner of the control loop calls cycle(); other threads publish the
// messages.
//
// Names, types and rates are those of ros2_control (Jazzy):
//   /joint_states, /dynamic_joint_states           each cycle, by node /joint_state_broadcaster
//   /panda_arm_controller/controller_state         each cycle, by node /panda_arm_controller
//   /panda_arm_controller/follow_joint_trajectory  results and feedback by a timer of 20 Hz
//                                                  (action_monitor_rate)
//   /panda_hand_controller/gripper_cmd             likewise, if the graph has the node /panda_hand_controller
//   /controller_manager                            services and statistics of the loop (manager_node.h)
// The robot's group determines the name of the arm's controller. A deactivated controller publishes nothing and
// rejects goals; the arm then holds its position.
//
// Film of the trial: the series desired (desired positions) and lateness (ns: the latest cycle since the
// previous row), 50 times a second.
//
// Figures for each executed goal: execution_controller (from start to end in the robot's time), tracking_rms,
// tracking_max, settling, path_length, path_ratio; for a goal that was cancelled or aborted in motion
// stop_latency and stopping_distance (in the robot's time, from the cycle in which it began to stop).
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "manipulation/control/controller.h"
#include "manipulation/control/controller_set.h"
#include "manipulation/control/loop_statistics.h"
#include "manipulation/controllers/manager_node.h"
#include "manipulation/controllers/realtime_publisher.h"
#include "manipulation/robot/robot.h"
#include "messages/control_msgs/action/follow_joint_trajectory.h"
#include "messages/control_msgs/action/gripper_command.h"
#include "messages/control_msgs/msg/dynamic_joint_state.h"
#include "messages/control_msgs/msg/joint_trajectory_controller_state.h"
#include "messages/sensor_msgs/msg/joint_state.h"
#include "program/program.h"
#include "program/rosout.h"

namespace perflab::manipulation {

// Measurement of the hardware.
struct Measured {
  Nanoseconds time_ns = 0;  // in the robot's time
  std::span<const double> positions, velocities, efforts;
  double hand = 0.0, hand_velocity = 0.0;
};

// The name by which the two sides of HardwareLink find each other: one pair per domain of a trial.
[[nodiscard]] std::string link_name(const program::Context& context);

class Controllers {
 public:
  static constexpr Nanoseconds kPeriod = 2'000'000;  // update_rate 500
  static constexpr Nanoseconds kFilmPeriod = 20'000'000;

  // Reads options: path_tolerance and goal_tolerance (rad, 0: none), goal_time, on_cancel (hold or decelerate),
  // unmeasured (named states: motions that end there are left out of all figures).
  Controllers(program::Context& context, std::shared_ptr<const Model> model);

  // Sets the arm's position before the first cycle.
  void reset(std::span<const double> positions);

  // For the control loop: the cycle was due at `due_ns` and began at `woken_ns`. Neither waits nor allocates.
  void cycle(const Measured& measured, Nanoseconds due_ns, Nanoseconds woken_ns) noexcept;
  // Call once the hardware has the command: the cycle is over.
  void written() noexcept;
  // The commanded positions and the corresponding velocities.
  [[nodiscard]] std::span<const double> command() const noexcept { return controller_.state().output; }
  [[nodiscard]] std::span<const double> command_velocities() const noexcept { return controller_.state().desired.velocities; }
  // The last commanded opening of a finger.
  [[nodiscard]] double hand_command() const noexcept { return hand_command_.load(std::memory_order_relaxed); }

  // Called by the application's functions of the same names.
  void start(const program::Start& start);
  void end(Nanoseconds at_ns) noexcept;
  void stop();

 private:
  using FollowJointTrajectory = messages::control_msgs::action::FollowJointTrajectory;
  using GripperCommand = messages::control_msgs::action::GripperCommand;

  // The values of one cycle.
  struct Snapshot {
    explicit Snapshot(std::size_t joints);
    Nanoseconds due_ns = 0;
    TrajectoryController::State state;
    std::vector<double> efforts;
    double hand = 0.0, hand_velocity = 0.0;
  };

  void advertise(program::Context& context);
  void offer_interfaces() noexcept;
  void deactivated(std::size_t controller);
  void publish_joint_states(const Snapshot& at);
  void publish_dynamic_joint_states(const Snapshot& at);
  void publish_controller_state(const Snapshot& at);
  [[nodiscard]] Snapshot snapshot_of_now() const;
  [[nodiscard]] std::optional<Refusal> plan(const FollowJointTrajectory::Goal& goal, Trajectory& trajectory,
                                            Tolerances& tolerances, std::optional<Nanoseconds>& start_ns) const;
  void accept(program::Goal<FollowJointTrajectory> goal);
  void monitor();
  void finish(const TrajectoryGoal& goal, const program::Goal<FollowJointTrajectory>& open);
  void report(const TrajectoryGoal& goal);
  [[nodiscard]] bool is_measured(const TrajectoryGoal& goal) const;
  void report_stops();
  void tell_unended(const TrajectoryGoal& goal);
  void monitor_hand();

  program::Context& context_;
  const std::shared_ptr<const Model> model_;
  TrajectoryController controller_;
  std::string arm_node_;

  // In the order of set_; the hand is the third, if there is one.
  enum Place : std::size_t { kStates, kArm, kHand };
  ControllerSet set_;

  // Used by the control loop alone.
  Snapshot snapshot_;
  LoopStatistics statistics_;
  std::vector<double> states_, commands_;  // of the hardware's interfaces
  ControllerSet::Running running_ = 0;
  Nanoseconds due_ns_ = 0, woken_ns_ = 0, updated_ns_ = 0;  // of this cycle
  program::Span update_;  // the cycle, in traces
  program::Times& control_period_;
  program::Times& control_lateness_;
  program::Times& control_execution_;
  program::Series& desired_;
  program::Series& lateness_;
  std::uint64_t cycles_ = 0;
  double latest_ns_ = 0.0;
  Nanoseconds last_woken_ns_ = kUnknownTime;
  Nanoseconds measured_from_ns_ = 0;
  std::atomic<Nanoseconds> measured_until_ns_;
  std::atomic<std::uint64_t> overruns_{0};

  program::Rosout log_;  // of the arm's controller
  ManagerNode manager_;
  Latest<Snapshot> latest_;
  program::Publisher<messages::sensor_msgs::msg::JointState> joint_states_;
  program::Publisher<messages::control_msgs::msg::DynamicJointState> dynamic_joint_states_;
  program::Publisher<messages::control_msgs::msg::JointTrajectoryControllerState> controller_state_;
  struct StatePublisher {
    std::size_t controller;  // its controller
    std::unique_ptr<RealtimePublisher<Snapshot>> publisher;
  };
  std::vector<StatePublisher> publishers_;

  // For the action servers; the timer and the handlers of a node may run at the same time.
  struct Open {
    std::shared_ptr<TrajectoryGoal> goal;
    program::Goal<FollowJointTrajectory> answer;
  };
  std::mutex goals_mutex_;
  std::vector<Open> open_;  // in order of acceptance
  std::vector<std::shared_ptr<TrajectoryGoal>> stopping_;
  std::vector<Positions> unmeasured_;
  Snapshot seen_;
  FollowJointTrajectory::Feedback feedback_;

  struct OpenGrip {
    program::Goal<GripperCommand> answer;
    double position;
    int quiet = 0;  // consecutive checks at which the fingers stood still
  };
  std::mutex hand_mutex_;
  std::optional<OpenGrip> grip_;
  Snapshot hand_seen_;
  std::atomic<double> hand_command_;
};

}  // namespace perflab::manipulation
