// Runs a trial of the arm: waits until the stack is ready, moves home, checks that the arm is there and
// stands still, has a goal planned and executed, and checks where the tip ended; once or several times. After
// a failed motion it makes the next one, as long as the arm comes home.
//
// Node /benchmark_runner:
//   action client  /move_action                        moveit_msgs/action/MoveGroup
//   subscription   /joint_states                       sensor_msgs/msg/JointState
//   action client  /panda_hand_controller/gripper_cmd  control_msgs/action/GripperCommand, if steps use it
//   client         /apply_planning_scene               moveit_msgs/srv/ApplyPlanningScene, if steps or `scene`
//                                                      use it
//   client         /get_planning_scene                 moveit_msgs/srv/GetPlanningScene, if steps allow or forbid touching
// Thread: `runner`.
//
// Options, besides `robot`:
//   goal, orientation, radius, orientation_tolerance, link, or joints, or state   the goal; likewise in a step
//   steps         instead of one goal: a list, each with a goal as above, or attach: OBJECT, detach: OBJECT,
//                 allow or forbid: [NAME, NAME] (to touch), grip: OPENING, wait: TIME
//   home, home_state, motions, warm_ups   `home: false` with two warm-ups is the procedure of the original
//                 benchmark
//   warm_plans    how often the first plan, which is not executed, is repeated
//   velocity_scaling, acceleration_scaling, attempts, planner, planning_time, workspace, replan
//   scene         objects that move_group does not know yet: they are added to its scene first
//   statistics    reads the control loop's figures of a stack that is not perflab's (control_statistics.h)
//   cancel_after  cancels the motion this long after its execution began; a motion that ends cancelled is then
//                 a success
//   timeout, ready_limit
//
// Figures of each motion, except motions home and the warm-up:
//   planning_seen, execution_seen, execution_overhead_seen   T1, T2, and T2 minus the trajectory's duration as a client
//                 sees them, by the arrival of feedback and result; perflab's move_group reports its own
//   total         T4, from sending the goal to its result
//   tip_error     distance from the end of the plan
//   success
//   stop_seen, stopping_distance_seen   of a cancelled motion, from sending the cancel until /joint_states shows a
//                 standstill
//   bring_up      once: from the start of this process to the first goal that move_group works on
// Times: total_times.
//
// An object is attached only if the hand stalled on something while closing; otherwise the outcome is
// grasp_failed.
#pragma once

#include <memory>

#include "program/program.h"

namespace perflab::manipulation {

[[nodiscard]] std::unique_ptr<program::Application> make_move_runner(program::Context& context);

}  // namespace perflab::manipulation
