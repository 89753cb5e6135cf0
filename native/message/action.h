// The wire messages of an action, as ROS 2 derives them from an .action file and takes them from action_msgs.
//
// Example:
//   const ActionTypes types = action_types(library, structs, "control_msgs/action/FollowJointTrajectory");
//   Object goal(*types.goal);
//   types.send_goal.request->name;   // "control_msgs/action/FollowJointTrajectory_SendGoal_Request"
#pragma once

#include <string>

#include "message/library.h"
#include "message/type.h"

namespace perflab::message {

// Both messages of a service. Hashes are those of message/hash.h.
struct ServiceTypes {
  std::string name;  // "action_msgs/srv/CancelGoal"
  const Type* request = nullptr;
  const Type* response = nullptr;
  std::string request_hash;
  std::string response_hash;
};

struct ActionTypes {
  std::string name;  // "control_msgs/action/FollowJointTrajectory"
  // The parts defined by the file, which users fill and read.
  const Type* goal = nullptr;
  const Type* result = nullptr;
  const Type* feedback = nullptr;
  // The messages on the wire.
  ServiceTypes send_goal;   // {goal_id, goal} and {accepted, stamp}
  ServiceTypes get_result;  // {goal_id} and {status, result}
  ServiceTypes cancel;      // action_msgs/srv/CancelGoal
  const Type* feedback_message = nullptr;  // {goal_id, feedback}
  std::string feedback_hash;
  const Type* status = nullptr;  // action_msgs/msg/GoalStatusArray
  std::string status_hash;
};

// The types of an action by its full name, "package/action/Name". They live as long as `types`. Throws
// BadInput if one of them is unknown or unusable.
[[nodiscard]] ActionTypes action_types(Library& library, Types& types, const std::string& name);

}  // namespace perflab::message
