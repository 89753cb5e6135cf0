// An action client on top of the services and topics of any runtime.
//
// An answer is assigned to its goal by the request's sequence number, which the middleware may assign only
// while sending. So requests of one service are sent one at a time (turns.h), and an answer that comes
// meanwhile finds its number.
#pragma once

#include <map>
#include <mutex>
#include <vector>

#include "runtime/action_messages.h"
#include "runtime/known_goals.h"
#include "runtime/turns.h"

namespace perflab::runtime {

class ServiceActionClient final : public ActionClient {
 public:
  // Creates all endpoints. Throws Error.
  ServiceActionClient(Runtime& runtime, std::size_t executor, const ActionSettings& settings, ActionClientHandler& handler);

  bool send_goal(const GoalId& id, const void* goal, bool ask_result) noexcept override;
  bool request_result(const GoalId& id) noexcept override;
  bool cancel(const CancelWhich& which) noexcept override;
  [[nodiscard]] std::size_t matched() noexcept override;

 private:
  struct Asked {
    GoalId id{};
    bool ask_result = false;
  };
  // One service of the action.
  class Part final : public MessageHandler {
   public:
    using Answer = void (ServiceActionClient::*)(const Asked&, const Delivery&) noexcept;
    Part(ServiceActionClient& owner, Answer answer) : owner_(owner), answer_(answer) {}

    void create(Runtime& runtime, std::size_t executor, const ServiceSettings& settings) {
      client_ = &runtime.create_client(executor, settings, *this);
    }
    bool ask(const Asked& what, std::vector<std::uint8_t> bytes) noexcept;
    [[nodiscard]] std::size_t matched() noexcept { return client_->matched(); }

   private:
    struct Kept {
      Asked what;
      std::vector<std::uint8_t> bytes;
    };
    bool ask_now(const Asked& what, std::span<const std::uint8_t> bytes) noexcept;
    void on_message(const Delivery& delivery) noexcept override;

    ServiceActionClient& owner_;
    const Answer answer_;
    Client* client_ = nullptr;
    Turns<Kept> turns_;
    std::mutex mutex_;
    std::map<std::int64_t, Asked> asked_;  // by request number
  };
  // One topic of the action.
  class Topic final : public MessageHandler {
   public:
    using Take = void (ServiceActionClient::*)(const Delivery&) noexcept;
    Topic(ServiceActionClient& owner, Take take) : owner_(owner), take_(take) {}
    void on_message(const Delivery& delivery) noexcept override { (owner_.*take_)(delivery); }

   private:
    ServiceActionClient& owner_;
    const Take take_;
  };

  void on_goal_answer(const Asked& asked, const Delivery& delivery) noexcept;
  void on_result(const Asked& asked, const Delivery& delivery) noexcept;
  void on_cancel_answer(const Asked& asked, const Delivery& delivery) noexcept;
  void on_feedback(const Delivery& delivery) noexcept;
  void on_status(const Delivery& delivery) noexcept;

  ActionClientHandler& handler_;
  const message::ActionTypes& types_;
  const ActionMessage goal_request_, result_request_, cancel_request_;
  ActionMessage goal_answer_, result_answer_, cancel_answer_, feedback_, status_;
  const ActionPlaces at_;
  KnownGoals goals_;
  std::vector<GoalState> canceling_now_, states_now_;  // buffers passed to the handlers
  Part goals_part_{*this, &ServiceActionClient::on_goal_answer};
  Part results_part_{*this, &ServiceActionClient::on_result};
  Part cancels_part_{*this, &ServiceActionClient::on_cancel_answer};
  Topic feedback_topic_{*this, &ServiceActionClient::on_feedback};
  Topic status_topic_{*this, &ServiceActionClient::on_status};
  Subscription* feedback_subscription_ = nullptr;
  Subscription* status_subscription_ = nullptr;
};

}  // namespace perflab::runtime
