#include "runtime/action_client.h"

#include <algorithm>
#include <new>
#include <utility>

namespace perflab::runtime {

bool ServiceActionClient::Part::ask(const Asked& what, std::vector<std::uint8_t> bytes) noexcept {
  return turns_.take([&] { return ask_now(what, bytes); }, [&] { return Kept{what, std::move(bytes)}; },
                     [&](const Kept& kept) { static_cast<void>(ask_now(kept.what, kept.bytes)); });
}

// The request's number is known before sending, unless an earlier request was refused half-way.
bool ServiceActionClient::Part::ask_now(const Asked& what, std::span<const std::uint8_t> bytes) noexcept {
  const std::int64_t expected = client_->next_number();
  try {
    const std::lock_guard lock(mutex_);
    asked_.insert_or_assign(expected, what);
  } catch (const std::bad_alloc&) {
    return false;
  }
  const bool sent = client_->request({{}, bytes, {}});
  const std::int64_t number = client_->next_number() - 1;
  if (sent && number == expected) return true;
  const std::lock_guard lock(mutex_);
  auto entry = asked_.extract(expected);
  if (!sent || entry.empty()) return sent;
  entry.key() = number;
  asked_.insert(std::move(entry));
  return true;
}

void ServiceActionClient::Part::on_message(const Delivery& delivery) noexcept {
  Asked asked;
  {
    const std::lock_guard lock(mutex_);
    const auto found = asked_.find(delivery.related.sequence);
    if (found == asked_.end()) return;  // already answered, by a second server
    asked = found->second;
    asked_.erase(found);
  }
  (owner_.*answer_)(asked, delivery);
}

ServiceActionClient::ServiceActionClient(Runtime& runtime, std::size_t executor, const ActionSettings& settings,
                                         ActionClientHandler& handler)
    : handler_(handler),
      types_(*settings.types),
      goal_request_(*types_.send_goal.request),
      result_request_(*types_.get_result.request),
      cancel_request_(*types_.cancel.request),
      goal_answer_(*types_.send_goal.response),
      result_answer_(*types_.get_result.response),
      cancel_answer_(*types_.cancel.response),
      feedback_(*types_.feedback_message),
      status_(*types_.status),
      at_(types_) {
  // In the order in which rcl_action creates them.
  goals_part_.create(runtime, executor, action_service(settings, "send_goal", types_.send_goal));
  cancels_part_.create(runtime, executor, action_service(settings, "cancel_goal", types_.cancel));
  results_part_.create(runtime, executor, action_service(settings, "get_result", types_.get_result));
  feedback_subscription_ = &runtime.create_subscription(
      executor, action_topic(settings, "feedback", feedback_.type(), types_.feedback_hash, settings.qos.feedback),
      feedback_topic_);
  status_subscription_ = &runtime.create_subscription(
      executor, action_topic(settings, "status", status_.type(), types_.status_hash, settings.qos.status), status_topic_);
}

std::size_t ServiceActionClient::matched() noexcept {
  return std::min({goals_part_.matched(), cancels_part_.matched(), results_part_.matched(), feedback_subscription_->matched(),
                   status_subscription_->matched()});
}

bool ServiceActionClient::send_goal(const GoalId& id, const void* goal, bool ask_result) noexcept {
  try {
    message::Object request(goal_request_.type());
    write_at(request.data(), at_.goal_id, id);
    if (!message::assign(*types_.goal, goal, within(request.data(), at_.goal))) return false;
    const std::vector<std::uint8_t> bytes = goal_request_.encode(request.data());
    if (!goals_.sent(id)) return false;
    if (goals_part_.ask({id, ask_result}, bytes)) return true;
    goals_.not_sent(id);
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool ServiceActionClient::request_result(const GoalId& id) noexcept {
  try {
    message::Object request(result_request_.type());
    write_at(request.data(), at_.result_goal_id, id);
    return results_part_.ask({id}, result_request_.encode(request.data()));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool ServiceActionClient::cancel(const CancelWhich& which) noexcept {
  try {
    message::Object request(cancel_request_.type());
    at_.cancel_which.write(request.data(), {which.id, which.stamp_ns});
    return cancels_part_.ask({which.id}, cancel_request_.encode(request.data()));
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void ServiceActionClient::on_goal_answer(const Asked& asked, const Delivery& delivery) noexcept {
  const void* const answer = goal_answer_.read(delivery);
  if (answer == nullptr) return;
  const bool accepted = read_at<bool>(answer, at_.accepted);
  if (!accepted) goals_.ended(asked.id);
  handler_.on_goal_answer({asked.id, accepted, at_.stamp.read(answer), delivery.arrived_ns});
  if (accepted && asked.ask_result) static_cast<void>(request_result(asked.id));
}

void ServiceActionClient::on_result(const Asked& asked, const Delivery& delivery) noexcept {
  const void* const answer = result_answer_.read(delivery);
  if (answer == nullptr) return;
  goals_.ended(asked.id);
  handler_.on_result({asked.id, static_cast<GoalStatus>(read_at<std::int8_t>(answer, at_.result_status)),
                      within(answer, at_.result), delivery.arrived_ns});
}

void ServiceActionClient::on_cancel_answer(const Asked& asked, const Delivery& delivery) noexcept {
  const void* const answer = cancel_answer_.read(delivery);
  if (answer == nullptr) return;
  try {
    at_.canceling.read(answer, canceling_now_);
  } catch (const std::bad_alloc&) {
    return;
  }
  handler_.on_cancel_answer(
      {asked.id, static_cast<CancelReturn>(read_at<std::int8_t>(answer, at_.cancel_returned)), canceling_now_, delivery.arrived_ns});
}

void ServiceActionClient::on_feedback(const Delivery& delivery) noexcept {
  const void* const message = feedback_.read(delivery);
  if (message == nullptr) return;
  const auto id = read_at<GoalId>(message, at_.feedback_goal_id);
  if (!goals_.contains(id)) return;  // of another client
  handler_.on_feedback({id, within(message, at_.feedback_value), delivery.arrived_ns, delivery.source_timestamp_ns});
}

void ServiceActionClient::on_status(const Delivery& delivery) noexcept {
  const void* const message = status_.read(delivery);
  if (message == nullptr) return;
  try {
    at_.states.read(message, states_now_);
  } catch (const std::bad_alloc&) {
    return;
  }
  handler_.on_status(states_now_);
}

}  // namespace perflab::runtime
