// The protocol of a trial of the arm: wait until the stack is ready, go home, see that the arm is there and stands still, have
// a goal planned and executed, look where the tip ended; once or several times. After a motion that failed the others are made
// all the same, as long as the arm comes home.
//
// Node /benchmark_runner:
//   action client  /move_action        moveit_msgs/action/MoveGroup
//   subscription   /joint_states       sensor_msgs/msg/JointState
//   where steps say so: action client /panda_hand_controller/gripper_cmd (control_msgs/action/GripperCommand), client
//   /apply_planning_scene (moveit_msgs/srv/ApplyPlanningScene)
// Thread: `runner`.
//
// Options, beside `robot`:
//   goal, orientation, radius, orientation_tolerance, link, or joints, or state   where to; of one step, likewise
//   steps    instead of one goal: a list, each with a goal as above, or attach: OBJECT, detach: OBJECT, allow or forbid:
//            [NAME, NAME] (to touch), grip: OPENING, wait: TIME
//   home, home_state, motions, warm_ups     `home: false` with two warm-ups is the procedure of the original benchmark
//   velocity_scaling, acceleration_scaling, attempts, planner, planning_time, workspace, replan
//   cancel_after     the motion is cancelled so long after its execution began; that it then ends so is success
//   timeout, ready_limit
//
// Figures, of each motion but those home and for warming up: planning_seen and execution_seen (T1 and T2 as a client sees
// them, by when feedback and result came; those of move_group are its own), total (T4, from sending the goal to its result),
// tip_error (from where the plan ends), success; of one that was cancelled stop_seen and stopping_distance_seen (from sending
// the cancel until /joint_states shows a standstill); once bring_up (from the start of this process to the first goal). Times:
// total_times.
//
// An object is attached only where the hand, once told to close, stalled on something: else the outcome is grasp_failed.
#pragma once

#include <memory>

#include "program/program.h"

namespace perflab::manipulation {

[[nodiscard]] std::unique_ptr<program::Application> make_move_runner(program::Context& context);

}  // namespace perflab::manipulation
