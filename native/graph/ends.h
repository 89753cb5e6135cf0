// The ends of a graph as code of a process's own drives them, where no timer and no reaction does. LiveGraph creates and
// records them as all others; program/program.h is how a program sees them.
//
// Structs are given and taken by address, as message::Type lays them out.
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

// Of a message that has come, beside its struct; kUnknownTime where it is not known.
struct Received {
  Nanoseconds due_ns = kUnknownTime;
  Nanoseconds published_ns = kUnknownTime;
  Nanoseconds arrived_ns = kUnknownTime;
  Nanoseconds callback_ns = kUnknownTime;
  std::string_view from;  // the node that published it
};
using OnMessage = std::function<void(const void* message, const Received& how)>;
using OnReply = std::function<void(const void* response, Nanoseconds requested_ns, Nanoseconds callback_ns)>;

// One thread at a time. A due time that has not come yet stands for now. False where it was not sent: the records count it, or
// the process has not begun, or the measured part is over.
class PublisherEnd {
 public:
  // Its own message, which stays as it is from one time to the next.
  [[nodiscard]] virtual void* message() noexcept = 0;
  virtual bool publish_due(Nanoseconds due_ns) noexcept = 0;
  virtual bool publish_copy(const void* message, Nanoseconds due_ns) noexcept = 0;
  // With how many subscriptions it is matched, those beyond the graph too.
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
  [[nodiscard]] virtual const message::Format& format() const noexcept = 0;

 protected:
  ~PublisherEnd() = default;
};

class SubscriptionEnd {
 public:
  // Before the start. Called for each message, those that are not recorded too; `on_message` throws nothing.
  virtual void set_handler(OnMessage on_message) = 0;
  [[nodiscard]] virtual const message::Format& format() const noexcept = 0;

 protected:
  ~SubscriptionEnd() = default;
};

class ClientEnd {
 public:
  // As PublisherEnd::publish_due(). `on_reply` is called once, with the reply, and throws nothing. Throws std::bad_alloc.
  virtual bool call(const void* request, Nanoseconds due_ns, OnReply on_reply) = 0;
  [[nodiscard]] virtual const message::Format& request_format() const noexcept = 0;
  [[nodiscard]] virtual const message::Format& response_format() const noexcept = 0;

 protected:
  ~ClientEnd() = default;
};

// A request that waits for its reply, from any thread. Destroying it unanswered counts as forgotten.
class OpenRequest {
 public:
  virtual ~OpenRequest() = default;
  // Once: false where it was answered already, or was not sent.
  virtual bool reply(const void* response) noexcept = 0;
};
using OnRequest = std::function<void(const void* request, std::shared_ptr<OpenRequest> open)>;

class ServerEnd {
 public:
  // Before the start. `on_request` throws nothing.
  virtual void set_handler(OnRequest on_request) = 0;
  [[nodiscard]] virtual const message::Format& request_format() const noexcept = 0;
  [[nodiscard]] virtual const message::Format& response_format() const noexcept = 0;

 protected:
  ~ServerEnd() = default;
};

// What becomes of a goal; each may be empty, and throws nothing.
struct GoalEvents {
  std::function<void(bool accepted, std::int64_t stamp_ns)> on_answer;
  std::function<void(const void* feedback)> on_feedback;
  std::function<void(runtime::GoalStatus, const void* result)> on_result;  // the last one, but for feedback that comes late
  std::function<void(runtime::CancelReturn)> on_cancel;                    // of cancel_goal()
};

class ActionClientEnd {
 public:
  // As PublisherEnd::publish_due(). The result is asked for once the goal is accepted. Throws std::bad_alloc.
  virtual std::optional<runtime::GoalId> send_goal(const void* goal, Nanoseconds due_ns, GoalEvents events) = 0;
  virtual bool cancel_goal(const runtime::GoalId& id) = 0;
  [[nodiscard]] virtual const message::ActionTypes& types() const noexcept = 0;

 protected:
  ~ActionClientEnd() = default;
};

// What a server does; throws nothing. Goals that nobody keeps are cancelled.
struct GoalHandling {
  std::function<runtime::GoalResponse(const runtime::GoalId&, const void* goal)> on_goal;
  std::function<void(std::shared_ptr<runtime::ServerGoal>)> on_accepted;
  std::function<bool(runtime::ServerGoal&)> on_cancel;  // empty: every goal may be cancelled
};

class ActionServerEnd {
 public:
  // Before the start.
  virtual void set_handling(GoalHandling handling) = 0;
  [[nodiscard]] virtual const message::ActionTypes& types() const noexcept = 0;

 protected:
  ~ActionServerEnd() = default;
};

}  // namespace perflab::graph
