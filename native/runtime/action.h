// ROS 2 actions: a client sends a goal; a server accepts or rejects it at once, sends feedback while it
// works, and sends the result when it is done, however long that takes. On the wire an action consists of
// what rcl_action makes of it: the services send_goal, get_result and cancel_goal and the topics feedback and
// status below <action>/_action.
//
// Goal states and transitions are those of rcl_action:
//
//   ACCEPTED  -execute->  EXECUTING  -succeed->  SUCCEEDED
//   ACCEPTED, EXECUTING  -cancel->  CANCELING  -canceled->  CANCELED
//   EXECUTING, CANCELING  -succeed, abort->  SUCCEEDED, ABORTED
//
// Goals, results and feedback are structs of their types (message/action.h), passed by address; a runtime
// encodes them when they leave the process. Arguments of handlers are valid until the handler returns, except
// a ServerGoal.
//
// Threads: handlers are called by the threads of their executor and exclude each other like callbacks of one
// group (concurrent_callbacks()). All functions of ActionClient and ServerGoal may be called from any thread,
// also from handlers, and never wait for another handler. Virtual time has no other threads: there they may
// be called from any handler of the runtime.
//
// Example, a server that works in its own thread:
//   GoalResponse on_goal(const GoalRequest&) noexcept override { return GoalResponse::kAcceptAndExecute; }
//   void on_accepted(std::shared_ptr<ServerGoal> goal) noexcept override { queue.push(std::move(goal)); }
//   ...
//   message::Object feedback(*types.feedback), result(*types.result);   // in that thread
//   while (working) goal->publish_feedback(feedback.data());
//   if (goal->is_canceling()) goal->canceled(result.data()); else goal->succeed(result.data());
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>

#include "base/random.h"
#include "base/time.h"
#include "message/action.h"
#include "middleware/middleware.h"
#include "middleware/types.h"

namespace perflab::runtime {

using GoalId = std::array<std::uint8_t, 16>;  // a unique_identifier_msgs/msg/UUID; all zero: none

// Values of action_msgs/msg/GoalStatus.
enum class GoalStatus : std::int8_t {
  kUnknown = 0,
  kAccepted = 1,
  kExecuting = 2,
  kCanceling = 3,
  kSucceeded = 4,
  kCanceled = 5,
  kAborted = 6
};
[[nodiscard]] constexpr bool is_terminal(GoalStatus status) noexcept { return status >= GoalStatus::kSucceeded; }

// Values of action_msgs/srv/CancelGoal.
enum class CancelReturn : std::int8_t { kNone = 0, kRejected = 1, kUnknownGoal = 2, kTerminated = 3 };

// Generates goal ids as ROS 2 does, 16 random bytes of a version 4 UUID; with a seed they are the same in
// every run. One thread at a time.
class GoalIds {
 public:
  explicit GoalIds(std::uint64_t seed) noexcept : random_(seed) {}
  // Ids that differ from those of all other generators.
  GoalIds() : random_(unlike_others()) {}

  GoalId next() noexcept {
    GoalId id;
    for (std::size_t i = 0; i < id.size(); i += 8) {
      const std::uint64_t bits = random_.next();
      for (std::size_t j = 0; j < 8; ++j) id[i + j] = static_cast<std::uint8_t>(bits >> (8 * j));
    }
    id[6] = static_cast<std::uint8_t>((id[6] & 0x0f) | 0x40);
    id[8] = static_cast<std::uint8_t>((id[8] & 0x3f) | 0x80);
    return id;
  }

 private:
  static std::uint64_t unlike_others() {
    std::random_device random;
    return (std::uint64_t{random()} << 32) | random();
  }

  SplitMix64 random_;
};

// ROS 2's default QoS for actions (rcl_action, rmw/qos_profiles.h).
struct ActionQos {
  perflab_qos services = middleware::default_qos();
  perflab_qos feedback = middleware::default_qos();
  perflab_qos status = default_status();

  static constexpr perflab_qos default_status() noexcept {
    perflab_qos qos = middleware::default_qos();
    qos.depth = 1;
    qos.durability = PERFLAB_TRANSIENT_LOCAL;
    return qos;
  }
};

inline constexpr Nanoseconds kResultTimeout = 10'000'000'000;  // rcl_action's default since Jazzy; 15 minutes
                                                               // before

struct ActionSettings {
  int process = 0;  // as in EndpointSettings, likewise below
  std::size_t participant = 0;
  std::size_t group = 0;
  std::string action;  // ROS name, fully qualified: "/panda_arm_controller/follow_joint_trajectory"
  const message::ActionTypes* types = nullptr;  // outlive the runtime
  ActionQos qos{};
  Nanoseconds result_timeout_ns = kResultTimeout;  // servers: how long an ended goal stays known; < 0:
                                                   // forever
  int priority = 0;     // priority of all its callbacks, like TimerSettings::priority
};

// ---- client ----

struct GoalAnswer {
  GoalId id{};
  bool accepted = false;
  std::int64_t stamp_ns = 0;  // acceptance time, ns of the server's wall clock; 0 if not reported, as by
                              // rclcpp_action
  Nanoseconds arrived_ns = kUnknownTime;  // as in Delivery, likewise below
};

struct GoalFeedback {
  GoalId id{};
  const void* feedback = nullptr;  // a struct of ActionTypes::feedback
  Nanoseconds arrived_ns = kUnknownTime;
  std::int64_t source_timestamp_ns = kUnknownTime;
};

struct GoalResult {
  GoalId id{};
  GoalStatus status = GoalStatus::kUnknown;  // the final status, or kUnknown if the server does not know the
                                             // goal
  const void* result = nullptr;              // a struct of ActionTypes::result; default values with kUnknown
  Nanoseconds arrived_ns = kUnknownTime;
};

// A goal in cancel answers and status messages.
struct GoalState {
  GoalId id{};
  std::int64_t stamp_ns = 0;  // acceptance time
  GoalStatus status = GoalStatus::kUnknown;  // in cancel answers kCanceling
};

struct CancelAnswer {
  GoalId asked{};  // CancelWhich::id of the request
  CancelReturn returned = CancelReturn::kNone;
  std::span<const GoalState> canceling{};  // goals that the server agreed to cancel
  Nanoseconds arrived_ns = kUnknownTime;
};

class ActionClientHandler {
 public:
  virtual ~ActionClientHandler() = default;
  // Called once for each goal that was sent and answered.
  virtual void on_goal_answer(const GoalAnswer& answer) noexcept = 0;
  // Called for goals sent by this client, except those that ended long ago. Feedback of one goal comes in the
  // order in which the server published it; it may overtake the goal's answer, and come after the result.
  virtual void on_feedback(const GoalFeedback& feedback) noexcept = 0;
  // Called once for each answered request_result(), never before the goal has ended.
  virtual void on_result(const GoalResult& result) noexcept = 0;
  // Called once for each answered cancel request. The goals in `canceling` have not ended yet: their results
  // report the end.
  virtual void on_cancel_answer(const CancelAnswer& answer) noexcept = 0;
  // All goals that the server knows, including those of other clients, whenever one of them changes.
  virtual void on_status(std::span<const GoalState> goals) noexcept { static_cast<void>(goals); }
};

// Selects goals to cancel, as in action_msgs/srv/CancelGoal: neither id nor stamp: all goals; id: that goal;
// stamp: goals accepted no later; both: the union.
struct CancelWhich {
  GoalId id{};
  std::int64_t stamp_ns = 0;  // ns of the server's wall clock, like GoalState::stamp_ns
};

// Functions return false if the message was not sent; the reason has been reported.
class ActionClient {
 public:
  ActionClient() = default;
  ActionClient(const ActionClient&) = delete;
  ActionClient& operator=(const ActionClient&) = delete;
  virtual ~ActionClient() = default;
  // `goal` is a struct of ActionTypes::goal. With `ask_result` the result is requested once the goal is
  // accepted, after on_goal_answer(), as in rclcpp_action.
  virtual bool send_goal(const GoalId& id, const void* goal, bool ask_result = true) noexcept = 0;
  // Requests the result of any client's goal; the server answers when the goal has ended, or at once if it
  // has already ended or is unknown.
  virtual bool request_result(const GoalId& id) noexcept = 0;
  virtual bool cancel(const CancelWhich& which) noexcept = 0;
  bool cancel_goal(const GoalId& id) noexcept { return cancel({id, 0}); }
  bool cancel_all() noexcept { return cancel({}); }
  // Number of servers that match all endpoints of this client. One thread at a time.
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
};

// ---- server ----

enum class GoalResponse {
  kReject,
  kAcceptAndExecute,  // it is EXECUTING when on_accepted() is called
  kAcceptAndDefer     // it is ACCEPTED until ServerGoal::execute()
};
enum class CancelResponse { kReject, kAccept };

struct GoalRequest {
  GoalId id{};
  const void* goal = nullptr;  // a struct of ActionTypes::goal
  Nanoseconds arrived_ns = kUnknownTime;
};

// An accepted goal, kept as long as it is being worked on. If the last reference is dropped before the goal
// has ended, it becomes CANCELED with a default result, as in rclcpp_action, and the handler is notified.
// After the runtime's stop() the goal no longer changes; the object may outlive the runtime, but no call may
// be in progress while the runtime is destroyed.
//
// Calls that are not valid transitions return false and change nothing. A call whose message could not be
// sent (which has been reported) also returns false, but the goal has ended nevertheless.
class ServerGoal {
 public:
  ServerGoal() = default;
  ServerGoal(const ServerGoal&) = delete;
  ServerGoal& operator=(const ServerGoal&) = delete;
  virtual ~ServerGoal() = default;
  [[nodiscard]] virtual const GoalId& id() const noexcept = 0;
  [[nodiscard]] virtual const void* goal() const noexcept = 0;  // its own copy
  [[nodiscard]] virtual GoalStatus status() const noexcept = 0;
  [[nodiscard]] bool is_canceling() const noexcept { return status() == GoalStatus::kCanceling; }
  virtual bool execute() noexcept = 0;
  // Only while the goal has not ended. Takes a struct of ActionTypes::feedback.
  virtual bool publish_feedback(const void* feedback) noexcept = 0;
  // These end the goal. Each takes a struct of ActionTypes::result.
  virtual bool succeed(const void* result) noexcept = 0;
  virtual bool abort(const void* result) noexcept = 0;
  virtual bool canceled(const void* result) noexcept = 0;
};

class ActionServerHandler {
 public:
  virtual ~ActionServerHandler() = default;
  // Not called for an id that the server already knows; such goals are rejected.
  virtual GoalResponse on_goal(const GoalRequest& request) noexcept = 0;
  // Called after the client has been told that its goal is accepted.
  virtual void on_accepted(std::shared_ptr<ServerGoal> goal) noexcept = 0;
  // kAccept makes the goal CANCELING; the code that works on it then ends it. If the goal has ended
  // meanwhile, the answer has no effect.
  virtual CancelResponse on_cancel(ServerGoal& goal) noexcept = 0;
  // A goal that had not ended was dropped by all its holders and is now CANCELED. Called by the thread that
  // dropped it.
  virtual void on_forgotten(const GoalId& id) noexcept = 0;
};

class ActionServer {
 public:
  ActionServer() = default;
  ActionServer(const ActionServer&) = delete;
  ActionServer& operator=(const ActionServer&) = delete;
  virtual ~ActionServer() = default;
  // Number of clients that match all endpoints of this server. One thread at a time.
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
};

}  // namespace perflab::runtime
