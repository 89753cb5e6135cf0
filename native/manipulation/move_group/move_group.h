// move_group: plans motions on request and has the arm's controller execute them, like MoveIt's process of
// that name.
//
// Node /move_group (a multi-threaded executor in MoveIt):
//   action server  /move_action               moveit_msgs/action/MoveGroup
//   action client  the option `controller`, by default /panda_arm_controller/follow_joint_trajectory
//                                             control_msgs/action/FollowJointTrajectory
//   publisher      /display_planned_path      moveit_msgs/msg/DisplayTrajectory
//   server         /apply_planning_scene      moveit_msgs/srv/ApplyPlanningScene
// Node /move_group_private (one thread: the planning scene monitor):
//   subscription   /joint_states              sensor_msgs/msg/JointState
//   publisher      /monitored_planning_scene  moveit_msgs/msg/PlanningScene
// Node /move_group_clock (one thread), with `sim_time`:
//   subscription   /clock                     rosgraph_msgs/msg/Clock
//
// Threads by name: `move_action` (one per goal), `planner` (one per attempt, if there are several),
// `execution` (one per motion), `scene_publisher`.
//
// Figures, for each goal except those whose constraints are named in `unmeasured`:
//   planning            T1, from PLANNING to MONITOR, and its parts (sums over all plans of the goal)
//   replans             plans after the first
//   execution           T2, from MONITOR until the result is sent, and its parts
//   execution_nominal   the trajectory's duration
//   execution_overhead  T2 minus execution_nominal
//   joint_state_age, clock_age   on arrival of the goal
//   planning_cold       the first plan of this process, from the scene to a trajectory, without the wait for a state
//   planning_warm       the same for later plans of a goal named kFirstPlan; all goals of that name have the same seed
// Times: planning_times, execution_times.
//
// A goal that arrives while another one is active is rejected; MoveIt would process both and confuse them.
#pragma once

#include <memory>

#include "program/program.h"

namespace perflab::manipulation {

inline constexpr const char* kFirstPlan = "first_plan";

[[nodiscard]] std::unique_ptr<program::Application> make_move_group(program::Context& context);

}  // namespace perflab::manipulation
