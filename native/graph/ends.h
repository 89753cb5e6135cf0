// The ends of a graph that a process's own code drives, instead of a timer or reaction. LiveGraph creates and
// records them like all others; a program uses them through program/program.h.
//
// Structs are passed by address, in the layout of message::Type.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/time.h"
#include "message/format.h"
#include "runtime/action.h"

namespace perflab::graph {

// Data of a received message besides its struct; kUnknownTime if unknown.
struct Received {
  Nanoseconds due_ns = kUnknownTime;
  Nanoseconds published_ns = kUnknownTime;
  Nanoseconds arrived_ns = kUnknownTime;
  Nanoseconds callback_ns = kUnknownTime;
  std::string_view from;  // the node that published it
};
using OnMessage = std::function<void(const void* message, const Received& how)>;
using OnReply = std::function<void(const void* response, Nanoseconds requested_ns, Nanoseconds callback_ns)>;

// One thread at a time. A due time in the future is replaced by now. False if the message was not sent: the
// records count it, or the process has not started yet, or the measured part is over.
class PublisherEnd {
 public:
  // The publisher's own message, which keeps its contents between calls.
  [[nodiscard]] virtual void* message() noexcept = 0;
  virtual bool publish_due(Nanoseconds due_ns) noexcept = 0;
  virtual bool publish_copy(const void* message, Nanoseconds due_ns) noexcept = 0;
  // The number of matched subscriptions, including those outside of the graph.
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
  [[nodiscard]] virtual const message::Format& format() const noexcept = 0;

 protected:
  ~PublisherEnd() = default;
};

class SubscriptionEnd {
 public:
  // Call before the start. `on_message` is called for each message, also for unrecorded ones; it must not
  // throw.
  virtual void set_handler(OnMessage on_message) = 0;
  [[nodiscard]] virtual const message::Format& format() const noexcept = 0;

 protected:
  ~SubscriptionEnd() = default;
};

class ClientEnd {
 public:
  // Like PublisherEnd::publish_due(). `on_reply` is called once, with the reply; it must not throw. Throws
  // std::bad_alloc.
  virtual bool call(const void* request, Nanoseconds due_ns, OnReply on_reply) = 0;
  [[nodiscard]] virtual const message::Format& request_format() const noexcept = 0;
  [[nodiscard]] virtual const message::Format& response_format() const noexcept = 0;

 protected:
  ~ClientEnd() = default;
};

// A request that waits for its reply, from any thread. Destroying it unanswered counts as dropped.
class OpenRequest {
 public:
  virtual ~OpenRequest() = default;
  // Once only: false if it was answered already, or was not sent.
  virtual bool reply(const void* response) noexcept = 0;
};
using OnRequest = std::function<void(const void* request, std::shared_ptr<OpenRequest> open)>;

class ServerEnd {
 public:
  // Call before the start. `on_request` must not throw.
  virtual void set_handler(OnRequest on_request) = 0;
  [[nodiscard]] virtual const message::Format& request_format() const noexcept = 0;
  [[nodiscard]] virtual const message::Format& response_format() const noexcept = 0;

 protected:
  ~ServerEnd() = default;
};

// Handlers of a goal's events; each may be empty and must not throw.
struct GoalEvents {
  std::function<void(bool accepted, std::int64_t stamp_ns)> on_answer;
  std::function<void(const void* feedback)> on_feedback;
  std::function<void(runtime::GoalStatus, const void* result)> on_result;  // the last event, except for late
                                                                           // feedback
  std::function<void(runtime::CancelReturn)> on_cancel;                    // answer to cancel_goal()
};

class ActionClientEnd {
 public:
  // Like PublisherEnd::publish_due(). The result is requested once the goal is accepted. Throws
  // std::bad_alloc.
  virtual std::optional<runtime::GoalId> send_goal(const void* goal, Nanoseconds due_ns, GoalEvents events) = 0;
  virtual bool cancel_goal(const runtime::GoalId& id) = 0;
  [[nodiscard]] virtual const message::ActionTypes& types() const noexcept = 0;

 protected:
  ~ActionClientEnd() = default;
};

// Handlers of an action server; they must not throw. Goals without holders are cancelled.
struct GoalHandling {
  std::function<runtime::GoalResponse(const runtime::GoalId&, const void* goal)> on_goal;
  std::function<void(std::shared_ptr<runtime::ServerGoal>)> on_accepted;
  std::function<bool(runtime::ServerGoal&)> on_cancel;  // empty: every goal may be cancelled
};

class ActionServerEnd {
 public:
  // Call before the start.
  virtual void set_handling(GoalHandling handling) = 0;
  [[nodiscard]] virtual const message::ActionTypes& types() const noexcept = 0;

 protected:
  ~ActionServerEnd() = default;
};

}  // namespace perflab::graph
