// Actions of a program: converts messages for its handlers, and names the handler that throws.
#include "program/host.h"

namespace perflab::program {
namespace {

constexpr GoalStatus status_of(runtime::GoalStatus status) noexcept {
  return is_terminal(status) ? static_cast<GoalStatus>(status) : GoalStatus::kUnknown;
}

constexpr runtime::GoalResponse response_of(GoalResponse response) noexcept {
  switch (response) {
    case GoalResponse::kAcceptAndExecute:
      return runtime::GoalResponse::kAcceptAndExecute;
    case GoalResponse::kAcceptAndDefer:
      return runtime::GoalResponse::kAcceptAndDefer;
    default:
      return runtime::GoalResponse::kReject;
  }
}

}  // namespace

namespace detail {

// The state behind program::Goal.
class ActionServerGoal {
 public:
  explicit ActionServerGoal(std::shared_ptr<runtime::ServerGoal> of) noexcept : goal(std::move(of)) {}
  const std::shared_ptr<runtime::ServerGoal> goal;
};

const GoalId& id_of(const ActionServerGoal& goal) noexcept { return goal.goal->id(); }
const void* goal_of(const ActionServerGoal& goal) noexcept { return goal.goal->goal(); }
bool canceling(const ActionServerGoal& goal) noexcept { return goal.goal->is_canceling(); }
bool execute(ActionServerGoal& goal) noexcept { return goal.goal->execute(); }
bool feedback(ActionServerGoal& goal, const void* feedback) noexcept { return goal.goal->publish_feedback(feedback); }
bool finish(ActionServerGoal& goal, GoalStatus status, const void* result) noexcept {
  switch (status) {
    case GoalStatus::kSucceeded:
      return goal.goal->succeed(result);
    case GoalStatus::kCanceled:
      return goal.goal->canceled(result);
    case GoalStatus::kAborted:
      return goal.goal->abort(result);
    case GoalStatus::kUnknown:
      break;
  }
  return false;
}

std::optional<GoalId> send_goal(ActionClientEnd& end, const void* goal, Nanoseconds due_ns, GoalCallbacks callbacks) {
  return end.send_goal(goal, due_ns, std::move(callbacks));
}
bool cancel_goal(ActionClientEnd& end, const GoalId& goal) { return end.cancel_goal(goal); }

std::optional<GoalId> ActionClientEnd::send_goal(const void* goal, Nanoseconds due_ns, GoalCallbacks callbacks) {
  graph::GoalEvents events;
  if (callbacks.on_response)
    events.on_answer = [this, then = std::move(callbacks.on_response)](bool accepted, std::int64_t stamp_ns) {
      host_.guarded(who_, then, accepted, stamp_ns);
    };
  if (callbacks.on_feedback)
    events.on_feedback = [this, then = std::move(callbacks.on_feedback)](const void* feedback) {
      host_.guarded(who_, then, feedback);
    };
  if (callbacks.on_result)
    events.on_result = [this, then = std::move(callbacks.on_result)](runtime::GoalStatus status, const void* result) {
      host_.guarded(who_, then, status_of(status), result);
    };
  if (callbacks.on_cancel)
    events.on_cancel = [this, then = std::move(callbacks.on_cancel)](runtime::CancelReturn returned) {
      host_.guarded(who_, then, static_cast<std::int8_t>(returned));
    };
  return end_.send_goal(goal, due_ns, std::move(events));
}

}  // namespace detail

void Host::require(const std::string& what, const message::ActionTypes& graphs, const detail::ActionInfo& type) {
  if (graphs.name != type.name)
    throw BadInput("process " + process_.name + ", " + what + ": the program has type " + type.name + ", and the graph " +
                   graphs.name + "; right would be one type");
  require(what, *graphs.goal, type.goal);
  require(what, *graphs.result, type.result);
  require(what, *graphs.feedback, type.feedback);
}

detail::ActionClientEnd& Host::action_client_end(const std::string& node, const std::string& action,
                                                 const detail::ActionInfo& type) {
  require_making("an action client");
  graph::ActionClientEnd& end = live_.action_client_end(node, action);
  const std::string who = "action client " + action + " of " + node;
  require(who, end.types(), type);
  return action_clients_.emplace_back(*this, end, who);
}

void Host::set_action_handlers(const std::string& node, const std::string& action, const detail::ActionInfo& type,
                               detail::ServerCallbacks handlers) {
  require_making("a handler of goals");
  graph::ActionServerEnd& end = live_.action_server_end(node, action);
  const std::string who = "action server " + action + " of " + node;
  require(who, end.types(), type);
  graph::GoalHandling handling;
  handling.on_goal = [this, who, then = std::move(handlers.on_goal)](const GoalId& id, const void* goal) {
    GoalResponse response = GoalResponse::kReject;
    guarded(who, [&] { response = then(id, goal); });
    return response_of(response);
  };
  handling.on_accepted = [this, who, then = std::move(handlers.on_accepted)](std::shared_ptr<runtime::ServerGoal> goal) {
    guarded(who, [&] { then(std::make_shared<detail::ActionServerGoal>(std::move(goal))); });
  };
  handling.on_cancel = [this, who, then = std::move(handlers.on_cancel)](runtime::ServerGoal& goal) {
    bool may = false;
    if (then) guarded(who, [&] { may = then(goal.id()); });
    return may;
  };
  end.set_handling(std::move(handling));
}

}  // namespace perflab::program
