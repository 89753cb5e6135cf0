// What tests of actions share: goals that can be recognised, and handlers that record.
#pragma once

#include <map>

#include "lab.h"
#include "message/action.h"

namespace perflab::runtime::conformance {

inline const message::ActionTypes& stamped_action() { return *formats().find_action("stamped"); }

// A goal, feedback or result of that action with a number, and content that follows from it.
inline message::Object numbered(const message::Type& type, std::uint64_t number) {
  message::Object object(type);
  message::fill(object, number % 50, number + 1);
  message::Header header;
  header.sequence = number;
  formats().format_of_part(type).stamp_object(header, object.data());
  return object;
}
// The number of such a message, every byte of which is looked at.
inline std::uint64_t number_in(const message::Type& type, const void* object) {
  const std::uint64_t number = formats().format_of_part(type).stamp_in(object).sequence;
  EXPECT_EQ(message::Object(type, object), numbered(type, number)) << "message " << number << " of " << type.name;
  return number;
}
inline message::Object goal_of(std::uint64_t number) { return numbered(*stamped_action().goal, number); }
inline message::Object feedback_of(std::uint64_t number) { return numbered(*stamped_action().feedback, number); }
inline message::Object result_of(std::uint64_t number) { return numbered(*stamped_action().result, number); }

// Ids that name a number, so that a test can tell goals apart.
inline GoalId goal_id(std::uint64_t number, std::uint8_t client = 1) {
  GoalId id{};
  std::memcpy(id.data(), &number, sizeof number);
  id[15] = client;
  return id;
}
inline std::uint64_t number_of(const GoalId& id) {
  std::uint64_t number = 0;
  std::memcpy(&number, id.data(), sizeof number);
  return number;
}

// What a client hears, in its order.
class Heard final : public ActionClientHandler {
 public:
  struct Result {
    std::uint64_t goal;
    GoalStatus status;
    std::uint64_t number;  // of its content; 0 with kUnknown
    bool operator==(const Result&) const = default;
  };
  struct Cancelled {
    CancelReturn returned;
    std::vector<std::uint64_t> goals;
    bool operator==(const Cancelled&) const = default;
  };

  void on_goal_answer(const GoalAnswer& answer) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      EXPECT_TRUE(answers_.emplace(number_of(answer.id), answer.accepted).second) << "answered twice";
    }
    ++answered_;
    if (on_answer) on_answer(answer);
  }
  void on_feedback(const GoalFeedback& feedback) noexcept override {
    const std::uint64_t number = number_in(*stamped_action().feedback, feedback.feedback);
    {
      const std::lock_guard lock(mutex_);
      feedback_[number_of(feedback.id)].push_back(number);
    }
    ++fed_back_;
  }
  void on_result(const GoalResult& result) noexcept override {
    const bool known = result.status != GoalStatus::kUnknown;
    const std::uint64_t number = known ? formats().format_of_part(*stamped_action().result).stamp_in(result.result).sequence : 0;
    {
      const std::lock_guard lock(mutex_);
      results_.push_back({number_of(result.id), result.status, number});
    }
    ++ended_;
    if (on_end) on_end(result);
  }
  void on_cancel_answer(const CancelAnswer& answer) noexcept override {
    Cancelled made{answer.returned, {}};
    for (const GoalState& state : answer.canceling) made.goals.push_back(number_of(state.id));
    {
      const std::lock_guard lock(mutex_);
      cancelled_.push_back(std::move(made));
    }
    ++cancels_;
  }
  void on_status(std::span<const GoalState> goals) noexcept override {
    const std::lock_guard lock(mutex_);
    for (const GoalState& state : goals) {
      stamps_[number_of(state.id)] = state.stamp_ns;
      std::vector<GoalStatus>& seen = states_[number_of(state.id)];
      if (seen.empty() || seen.back() != state.status) seen.push_back(state.status);
    }
  }

  std::size_t answered() const { return answered_; }
  std::size_t fed_back() const { return fed_back_; }
  std::size_t ended() const { return ended_; }
  std::size_t cancels() const { return cancels_; }
  std::map<std::uint64_t, bool> answers() const { return copy(answers_); }
  // When it was accepted, as status messages told it; 0: none has yet.
  std::int64_t stamp(std::uint64_t goal) const { return copy(stamps_)[goal]; }
  std::vector<std::uint64_t> feedback(std::uint64_t goal) const { return copy(feedback_)[goal]; }
  std::vector<Result> results() const { return copy(results_); }
  std::vector<Cancelled> cancelled() const { return copy(cancelled_); }
  // States of a goal as status messages told them; some may be missing, for only the latest is kept.
  std::vector<GoalStatus> states(std::uint64_t goal) const { return copy(states_)[goal]; }

  std::function<void(const GoalAnswer&)> on_answer;
  std::function<void(const GoalResult&)> on_end;

 private:
  template <typename Value>
  Value copy(const Value& of) const {
    const std::lock_guard lock(mutex_);
    return of;
  }

  mutable std::mutex mutex_;
  std::map<std::uint64_t, bool> answers_;
  std::map<std::uint64_t, std::int64_t> stamps_;
  std::map<std::uint64_t, std::vector<std::uint64_t>> feedback_;
  std::vector<Result> results_;
  std::vector<Cancelled> cancelled_;
  std::map<std::uint64_t, std::vector<GoalStatus>> states_;
  std::atomic<std::size_t> answered_{0}, fed_back_{0}, ended_{0}, cancels_{0};
};

// A server's handler: says yes unless told otherwise, and keeps what it accepted.
class Works final : public ActionServerHandler {
 public:
  GoalResponse on_goal(const GoalRequest& request) noexcept override {
    EXPECT_EQ(number_in(*stamped_action().goal, request.goal), number_of(request.id));
    ++asked_;
    return decide ? decide(number_of(request.id)) : GoalResponse::kAcceptAndExecute;
  }
  void on_accepted(std::shared_ptr<ServerGoal> goal) noexcept override {
    EXPECT_EQ(number_in(*stamped_action().goal, goal->goal()), number_of(goal->id()));
    {
      const std::lock_guard lock(mutex_);
      goals_[goal->id()] = goal;
    }
    ++accepted_;
    if (on_each) on_each(goal);
  }
  CancelResponse on_cancel(ServerGoal& goal) noexcept override {
    return decide_cancel ? decide_cancel(goal) : CancelResponse::kAccept;
  }
  void on_forgotten(const GoalId& id) noexcept override {
    const std::lock_guard lock(mutex_);
    forgotten_.push_back(number_of(id));
  }

  std::size_t asked() const { return asked_; }
  std::size_t accepted() const { return accepted_; }
  std::shared_ptr<ServerGoal> goal(const GoalId& id) const {
    const std::lock_guard lock(mutex_);
    const auto found = goals_.find(id);
    return found == goals_.end() ? nullptr : found->second;
  }
  std::vector<std::shared_ptr<ServerGoal>> all() const {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<ServerGoal>> all;
    for (const auto& [id, goal] : goals_) all.push_back(goal);
    return all;
  }
  void drop(const GoalId& id) {
    std::shared_ptr<ServerGoal> last;
    const std::lock_guard lock(mutex_);
    if (const auto found = goals_.find(id); found != goals_.end()) {
      last = std::move(found->second);
      goals_.erase(found);
    }
  }
  std::vector<std::uint64_t> forgotten() const {
    const std::lock_guard lock(mutex_);
    return forgotten_;
  }

  std::function<GoalResponse(std::uint64_t goal)> decide;
  std::function<void(const std::shared_ptr<ServerGoal>&)> on_each;
  std::function<CancelResponse(ServerGoal&)> decide_cancel;

 private:
  mutable std::mutex mutex_;
  std::map<GoalId, std::shared_ptr<ServerGoal>> goals_;
  std::vector<std::uint64_t> forgotten_;
  std::atomic<std::size_t> asked_{0}, accepted_{0};
};

}  // namespace perflab::runtime::conformance
