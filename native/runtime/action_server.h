// An action server on top of the services and topics of any runtime, with the behaviour of rcl_action and
// rclcpp_action.
//
// Threads: one mutex guards the state of all goals; it is not held while a message is sent or a handler is
// called. Messages of several threads are sent one at a time, in the order of the calls (turns.h). Only the
// latest status is published, which may combine several changes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "base/gate.h"
#include "runtime/action_messages.h"
#include "runtime/turns.h"

namespace perflab::runtime {

class ServiceActionServer final : public ActionServer {
 public:
  // The clock that stamps goals.
  enum class Time { kWall, kOfRuntime };

  // Creates all endpoints. Throws Error.
  ServiceActionServer(Runtime& runtime, std::size_t executor, const ActionSettings& settings, Time time,
                      ActionServerHandler& handler);
  ~ServiceActionServer() override;

  [[nodiscard]] std::size_t matched() noexcept override;
  // Called when the runtime stops: from here on nothing is sent, and dropped goals are not reported.
  void close() noexcept { closed_->store(true, std::memory_order_release); }

 private:
  class Handle;
  // A goal known to the server.
  struct Goal {
    GoalState state{};
    Nanoseconds ended_ns = 0;
    std::uint64_t order = 0;  // order of acceptance
    Handle* handle = nullptr;  // until the goal has ended or all its holders dropped it
    std::weak_ptr<Handle> kept{};
    std::vector<std::unique_ptr<LateReply>> asked_for{};  // unanswered requests for its result
    std::vector<std::uint8_t> result{};  // as sent, once the goal has ended
  };
  // One service of the action.
  class Part final : public RequestHandler {
   public:
    using Take = void (ServiceActionServer::*)(const Delivery&, Reply&) noexcept;
    Part(ServiceActionServer& owner, Take take) : owner_(owner), take_(take) {}
    void on_request(const Delivery& request, Reply& reply) noexcept override { (owner_.*take_)(request, reply); }

   private:
    ServiceActionServer& owner_;
    const Take take_;
  };
  // Requests for a result are always answered, because every goal ends.
  struct Nobody final : Forgotten {
    void on_forgotten(Nanoseconds) noexcept override {}
  };

  void on_goal(const Delivery& delivery, Reply& reply) noexcept;
  void on_result(const Delivery& delivery, Reply& reply) noexcept;
  void on_cancel(const Delivery& delivery, Reply& reply) noexcept;
  // The goals that a cancel request selects; `returned` is the return code to send unless a handler objects.
  std::vector<std::shared_ptr<Handle>> to_cancel(const GoalState& which, CancelReturn& returned);

  [[nodiscard]] bool closed() const noexcept { return closed_->load(std::memory_order_acquire); }
  [[nodiscard]] std::int64_t stamp() const noexcept;
  // Forgets goals that ended long ago. Requires the mutex.
  void expire() noexcept;
  // Each changes the state and performs what follows; does nothing if the transition is invalid.
  bool execute(const GoalId& id) noexcept;
  bool begin_cancel(const GoalId& id) noexcept;
  // With `forgotten` from any state, with a default result.
  bool end(const GoalId& id, GoalStatus status, const void* result, bool forgotten = false) noexcept;
  bool publish_feedback(const GoalId& id, const void* feedback) noexcept;
  static void set(Goal& goal, GoalStatus status) noexcept;
  void forget(const GoalId& id) noexcept;
  void publish_status() noexcept;
  void publish_status_now() noexcept;

  const measure::Clock& clock_;
  const Time time_;
  const Nanoseconds result_timeout_ns_;
  ActionServerHandler& handler_;
  const message::ActionTypes& types_;
  ActionMessage goal_request_, result_request_, cancel_request_;
  const ActionMessage goal_answer_, result_answer_, cancel_answer_, feedback_, status_;
  const ActionPlaces at_;
  const std::shared_ptr<std::atomic<bool>> closed_ = std::make_shared<std::atomic<bool>>(false);  // handles
                                                                                                  // may
                                                                                                  // outlive
                                                                                                  // the
                                                                                                  // server
  std::mutex mutex_;
  std::map<GoalId, Goal> goals_;
  std::uint64_t accepted_count_ = 0;
  Nobody nobody_;
  Part goals_part_{*this, &ServiceActionServer::on_goal};
  Part results_part_{*this, &ServiceActionServer::on_result};
  Part cancels_part_{*this, &ServiceActionServer::on_cancel};
  Server* goals_server_ = nullptr;
  Server* results_server_ = nullptr;
  Server* cancels_server_ = nullptr;
  Publisher* feedback_publisher_ = nullptr;
  Publisher* status_publisher_ = nullptr;
  Turns<std::vector<std::uint8_t>> feedback_turns_;
  Gate status_gate_;
};

}  // namespace perflab::runtime
