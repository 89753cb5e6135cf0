// Actions of ROS 2: a client gives a goal, a server says at once whether it takes it, reports while it works, and tells the
// result when it is done, however much later. On the wire they are what rcl_action makes of them: the services send_goal,
// get_result and cancel_goal and the topics feedback and status below <action>/_action.
//
// The states of a goal and what leads from one to the next are rcl_action's:
//
//   ACCEPTED  -execute->  EXECUTING  -succeed->  SUCCEEDED
//   ACCEPTED, EXECUTING  -cancel->  CANCELING  -canceled->  CANCELED
//   EXECUTING, CANCELING  -succeed, abort->  SUCCEEDED, ABORTED
//
// Goals, results and feedback are structs of their types (message/action.h), given and taken by address; a runtime encodes
// them where they leave the process. What a handler is given is valid until it returns, but for a ServerGoal.
//
// Threads: handlers are called from the threads of their executor, and exclude each other as callbacks of one group do
// (concurrent_callbacks()). Everything of ActionClient and ServerGoal may be called from any thread, from handlers as well,
// and never waits for another handler. In virtual time there is no other thread: there, from any handler of the runtime.
//
// Example, a server that works in a thread of its own:
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

using GoalId = std::array<std::uint8_t, 16>;  // of unique_identifier_msgs/msg/UUID; all zero: none

// Numbers of action_msgs/msg/GoalStatus.
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

// Numbers of action_msgs/srv/CancelGoal.
enum class CancelReturn : std::int8_t { kNone = 0, kRejected = 1, kUnknownGoal = 2, kTerminated = 3 };

// Goal ids as ROS 2 makes them, 16 random bytes of a UUID of version 4; with a seed the same ones in every run. One thread
// at a time.
class GoalIds {
 public:
  explicit GoalIds(std::uint64_t seed) noexcept : random_(seed) {}
  // Differs from those of everybody else.
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

// What ROS 2 has where nothing is said (rcl_action, rmw/qos_profiles.h).
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

inline constexpr Nanoseconds kResultTimeout = 10'000'000'000;  // rcl_action's from Jazzy on; 15 minutes before

struct ActionSettings {
  int process = 0;  // as in EndpointSettings, likewise below
  std::size_t participant = 0;
  std::size_t group = 0;
  std::string action;  // ROS name, fully qualified: "/panda_arm_controller/follow_joint_trajectory"
  const message::ActionTypes* types = nullptr;  // outlive the runtime
  ActionQos qos{};
  Nanoseconds result_timeout_ns = kResultTimeout;  // of a server: how long a goal that has ended is known; < 0: for good
  int priority = 0;     // of all its callbacks, as TimerSettings::priority
};

// ---- client ----

struct GoalAnswer {
  GoalId id{};
  bool accepted = false;
  std::int64_t stamp_ns = 0;  // when it was accepted: ns of the server's wall clock; 0 where it does not say it, as rclcpp_action
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
  GoalStatus status = GoalStatus::kUnknown;  // the goal is not known, or how it ended
  const void* result = nullptr;              // a struct of ActionTypes::result; its defaults with kUnknown
  Nanoseconds arrived_ns = kUnknownTime;
};

// A goal as cancel answers and status messages name it.
struct GoalState {
  GoalId id{};
  std::int64_t stamp_ns = 0;  // when it was accepted
  GoalStatus status = GoalStatus::kUnknown;  // of a cancel answer kCanceling
};

struct CancelAnswer {
  GoalId asked{};  // CancelWhich::id of the request
  CancelReturn returned = CancelReturn::kNone;
  std::span<const GoalState> canceling{};  // those that the server agreed to cancel
  Nanoseconds arrived_ns = kUnknownTime;
};

class ActionClientHandler {
 public:
  virtual ~ActionClientHandler() = default;
  // Once for each goal that was sent and answered.
  virtual void on_goal_answer(const GoalAnswer& answer) noexcept = 0;
  // Of goals that this client sent, those that have ended long ago excepted. Of one goal in the order in which the server
  // published it; it may overtake the answer, and come after the result.
  virtual void on_feedback(const GoalFeedback& feedback) noexcept = 0;
  // Once for each request_result() that was answered, which is not before the goal has ended.
  virtual void on_result(const GoalResult& result) noexcept = 0;
  // Once for each cancel that was answered. `canceling` are not done yet: their result tells when they are.
  virtual void on_cancel_answer(const CancelAnswer& answer) noexcept = 0;
  // All goals that the server knows, of other clients as well, whenever one of them changes.
  virtual void on_status(std::span<const GoalState> goals) noexcept { static_cast<void>(goals); }
};

// Which goals shall be cancelled, as action_msgs/srv/CancelGoal says it: with neither all; with an id that goal; with a
// stamp those that were accepted no later; with both the ones and the other.
struct CancelWhich {
  GoalId id{};
  std::int64_t stamp_ns = 0;  // ns of the server's wall clock, as GoalState::stamp_ns
};

// Whether its calls say false: what was to be sent was not, and the reason has been reported.
class ActionClient {
 public:
  ActionClient() = default;
  ActionClient(const ActionClient&) = delete;
  ActionClient& operator=(const ActionClient&) = delete;
  virtual ~ActionClient() = default;
  // `goal` is a struct of ActionTypes::goal. With `ask_result`, the result is asked for once the goal is accepted, after
  // on_goal_answer(), as rclcpp_action does it.
  virtual bool send_goal(const GoalId& id, const void* goal, bool ask_result = true) noexcept = 0;
  // Asks for the result of a goal, anybody's; the server answers when it has ended, at once where it has or is unknown.
  virtual bool request_result(const GoalId& id) noexcept = 0;
  virtual bool cancel(const CancelWhich& which) noexcept = 0;
  bool cancel_goal(const GoalId& id) noexcept { return cancel({id, 0}); }
  bool cancel_all() noexcept { return cancel({}); }
  // Servers that have all of our ends. From one thread at a time.
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
};

// ---- server ----

enum class GoalResponse {
  kReject,
  kAcceptAndExecute,  // it is EXECUTING when on_accepted() is called
  kAcceptAndDefer     // it is ACCEPTED until somebody calls ServerGoal::execute()
};
enum class CancelResponse { kReject, kAccept };

struct GoalRequest {
  GoalId id{};
  const void* goal = nullptr;  // a struct of ActionTypes::goal
  Nanoseconds arrived_ns = kUnknownTime;
};

// An accepted goal, to be kept as long as somebody works on it. Where the last of those who keep it lets go of it before it
// has ended, it is CANCELED with the defaults of its result, as rclcpp_action does it, and the handler is told. From the
// runtime's stop() on nothing changes any more; it may be kept for longer than the runtime, but no call may be under way while
// that is destroyed.
//
// Calls that would lead to no state say false, and change nothing; so does one whose message was not sent, which has been
// reported, but then the goal has ended all the same.
class ServerGoal {
 public:
  ServerGoal() = default;
  ServerGoal(const ServerGoal&) = delete;
  ServerGoal& operator=(const ServerGoal&) = delete;
  virtual ~ServerGoal() = default;
  [[nodiscard]] virtual const GoalId& id() const noexcept = 0;
  [[nodiscard]] virtual const void* goal() const noexcept = 0;  // a copy of its own
  [[nodiscard]] virtual GoalStatus status() const noexcept = 0;
  [[nodiscard]] bool is_canceling() const noexcept { return status() == GoalStatus::kCanceling; }
  virtual bool execute() noexcept = 0;
  // While it has not ended. A struct of ActionTypes::feedback.
  virtual bool publish_feedback(const void* feedback) noexcept = 0;
  // They end it. A struct of ActionTypes::result.
  virtual bool succeed(const void* result) noexcept = 0;
  virtual bool abort(const void* result) noexcept = 0;
  virtual bool canceled(const void* result) noexcept = 0;
};

class ActionServerHandler {
 public:
  virtual ~ActionServerHandler() = default;
  // Not for an id that the server knows already, which is rejected.
  virtual GoalResponse on_goal(const GoalRequest& request) noexcept = 0;
  // After the client has been told that its goal is accepted.
  virtual void on_accepted(std::shared_ptr<ServerGoal> goal) noexcept = 0;
  // With kAccept it is CANCELING, and whoever works on it ends it. It may have ended meanwhile; then nothing comes of it.
  virtual CancelResponse on_cancel(ServerGoal& goal) noexcept = 0;
  // Nobody keeps a goal that has not ended: it is CANCELED now. From the thread that let go of it.
  virtual void on_forgotten(const GoalId& id) noexcept = 0;
};

class ActionServer {
 public:
  ActionServer() = default;
  ActionServer(const ActionServer&) = delete;
  ActionServer& operator=(const ActionServer&) = delete;
  virtual ~ActionServer() = default;
  // Clients that have all of our ends. From one thread at a time.
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
};

}  // namespace perflab::runtime
