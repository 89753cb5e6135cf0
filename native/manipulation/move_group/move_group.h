// move_group: plans motions on request and has the arm's controller execute them, as MoveIt's process of that name does.
//
// Node /move_group (a multi-threaded executor in MoveIt):
//   action server  /move_action                                     moveit_msgs/action/MoveGroup
//   action client  /panda_arm_controller/follow_joint_trajectory    control_msgs/action/FollowJointTrajectory (option `controller`)
//   publisher      /display_planned_path                            moveit_msgs/msg/DisplayTrajectory
//   server         /apply_planning_scene                            moveit_msgs/srv/ApplyPlanningScene
// Node /move_group_private (one thread: the planning scene monitor):
//   subscription   /joint_states                                    sensor_msgs/msg/JointState
//   publisher      /monitored_planning_scene                        moveit_msgs/msg/PlanningScene
// Node /move_group_clock (one thread): subscription /clock          rosgraph_msgs/msg/Clock; with `sim_time`
//
// Threads by name: `move_action` (one for each goal), `planner` (one for each of several attempts), `execution` (one for each
// motion), `scene_publisher`.
//
// Figures, of each goal but those whose constraints are called as `unmeasured` says: planning (T1, from PLANNING to MONITOR)
// and its parts (of all plans of the goal together), replans (plans after the first), execution (T2, from MONITOR until the
// result is sent) and its parts, execution_nominal (the trajectory's duration), execution_overhead (T2 without it),
// joint_state_age and clock_age when the goal came. Of the first plan that this process makes planning_cold, of later ones of a
// goal that is called kFirstPlan planning_warm: from the scene to a trajectory, without the wait for a state; all goals of that
// name have the same seed. Times: planning_times, execution_times.
//
// A goal that comes while another one is worked on is rejected; MoveIt would work on both, and confuse them.
#pragma once

#include <memory>

#include "program/program.h"

namespace perflab::manipulation {

inline constexpr const char* kFirstPlan = "first_plan";

[[nodiscard]] std::unique_ptr<program::Application> make_move_group(program::Context& context);

}  // namespace perflab::manipulation
