#include "message/action.h"

namespace perflab::message {
namespace {

ServiceTypes service_types(Library& library, Types& types, const std::string& name) {
  const std::string request = name + "_Request";
  const std::string response = name + "_Response";
  return {name, &types.find(request), &types.find(response), library.hash(request), library.hash(response)};
}

}  // namespace

ActionTypes action_types(Library& library, Types& types, const std::string& name) {
  const std::string feedback = name + "_FeedbackMessage";
  const std::string status = "action_msgs/msg/GoalStatusArray";
  return {.name = name,
          .goal = &types.find(name + "_Goal"),
          .result = &types.find(name + "_Result"),
          .feedback = &types.find(name + "_Feedback"),
          .send_goal = service_types(library, types, name + "_SendGoal"),
          .get_result = service_types(library, types, name + "_GetResult"),
          .cancel = service_types(library, types, "action_msgs/srv/CancelGoal"),
          .feedback_message = &types.find(feedback),
          .feedback_hash = library.hash(feedback),
          .status = &types.find(status),
          .status_hash = library.hash(status)};
}

}  // namespace perflab::message
