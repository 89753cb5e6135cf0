#include "runtime/action_server.h"

#include <algorithm>
#include <new>
#include <utility>

namespace perflab::runtime {
namespace {

bool may_end(GoalStatus from, GoalStatus to) noexcept {
  if (from == GoalStatus::kCanceling) return true;
  return from == GoalStatus::kExecuting && to != GoalStatus::kCanceled;
}

bool may_be_canceled(GoalStatus status) noexcept {
  return status == GoalStatus::kAccepted || status == GoalStatus::kExecuting;
}

}  // namespace

class ServiceActionServer::Handle final : public ServerGoal {
 public:
  // Throws std::bad_alloc.
  Handle(ServiceActionServer& server, const GoalId& id, const void* goal)
      : closed_(server.closed_), server_(server), id_(id), goal_(*server.types_.goal, goal) {}
  ~Handle() override {
    if (open() && !is_terminal(status())) server_.forget(id_);
  }

  [[nodiscard]] const GoalId& id() const noexcept override { return id_; }
  [[nodiscard]] const void* goal() const noexcept override { return goal_.data(); }
  [[nodiscard]] GoalStatus status() const noexcept override { return status_.load(std::memory_order_acquire); }
  bool execute() noexcept override { return open() && server_.execute(id_); }
  bool publish_feedback(const void* feedback) noexcept override {
    return open() && !is_terminal(status()) && server_.publish_feedback(id_, feedback);
  }
  bool succeed(const void* result) noexcept override { return end(GoalStatus::kSucceeded, result); }
  bool abort(const void* result) noexcept override { return end(GoalStatus::kAborted, result); }
  bool canceled(const void* result) noexcept override { return end(GoalStatus::kCanceled, result); }

  // Requires the server's mutex.
  void set(GoalStatus status) noexcept { status_.store(status, std::memory_order_release); }

 private:
  // The server exists and may be used.
  [[nodiscard]] bool open() const noexcept { return !closed_->load(std::memory_order_acquire); }
  bool end(GoalStatus status, const void* result) noexcept { return open() && server_.end(id_, status, result); }

  const std::shared_ptr<std::atomic<bool>> closed_;
  ServiceActionServer& server_;
  const GoalId id_;
  const message::Object goal_;
  std::atomic<GoalStatus> status_{GoalStatus::kUnknown};
};

ServiceActionServer::ServiceActionServer(Runtime& runtime, std::size_t executor, const ActionSettings& settings, Time time,
                                         ActionServerHandler& handler)
    : clock_(runtime.clock()),
      time_(time),
      result_timeout_ns_(settings.result_timeout_ns),
      handler_(handler),
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
  // In the order of rcl_action, except that the publishers exist before a goal can come.
  feedback_publisher_ = &runtime.create_publisher(
      action_topic(settings, "feedback", feedback_.type(), types_.feedback_hash, settings.qos.feedback));
  status_publisher_ =
      &runtime.create_publisher(action_topic(settings, "status", status_.type(), types_.status_hash, settings.qos.status));
  goals_server_ = &runtime.create_server(executor, action_service(settings, "send_goal", types_.send_goal), goals_part_);
  cancels_server_ = &runtime.create_server(executor, action_service(settings, "cancel_goal", types_.cancel), cancels_part_);
  results_server_ = &runtime.create_server(executor, action_service(settings, "get_result", types_.get_result), results_part_);
}

ServiceActionServer::~ServiceActionServer() { close(); }

std::size_t ServiceActionServer::matched() noexcept {
  return std::min({goals_server_->matched(), cancels_server_->matched(), results_server_->matched(),
                   feedback_publisher_->matched(), status_publisher_->matched()});
}

std::int64_t ServiceActionServer::stamp() const noexcept {
  return time_ == Time::kWall ? read_clock(CLOCK_REALTIME) : clock_.now();
}

void ServiceActionServer::expire() noexcept {
  if (result_timeout_ns_ < 0) return;
  const Nanoseconds before = clock_.now() - result_timeout_ns_;
  std::erase_if(goals_, [before](const auto& entry) {
    const Goal& goal = entry.second;
    return is_terminal(goal.state.status) && goal.ended_ns <= before;
  });
}

// ---- goals ----

void ServiceActionServer::on_goal(const Delivery& delivery, Reply& reply) noexcept {
  const void* const request = goal_request_.read(delivery);
  if (request == nullptr || closed()) return;
  const auto id = read_at<GoalId>(request, at_.goal_id);
  try {
    bool known = false;
    {
      const std::lock_guard lock(mutex_);
      expire();
      known = goals_.contains(id);
    }
    const GoalResponse response =
        known ? GoalResponse::kReject : handler_.on_goal({id, within(request, at_.goal), delivery.arrived_ns});
    message::Object answer(goal_answer_.type());
    if (response == GoalResponse::kReject) {
      static_cast<void>(reply.send({{}, goal_answer_.encode(answer.data()), {}}));
      return;
    }
    const auto handle = std::make_shared<Handle>(*this, id, within(request, at_.goal));
    const bool executes = response == GoalResponse::kAcceptAndExecute;
    const GoalState state{id, stamp(), executes ? GoalStatus::kExecuting : GoalStatus::kAccepted};
    write_at(answer.data(), at_.accepted, true);
    at_.stamp.write(answer.data(), state.stamp_ns);
    const std::vector<std::uint8_t> bytes = goal_answer_.encode(answer.data());
    {
      const std::lock_guard lock(mutex_);
      Goal& goal = goals_[id];
      goal.state = state;
      goal.order = accepted_count_++;
      goal.handle = handle.get();
      goal.kept = handle;
      handle->set(state.status);
    }
    static_cast<void>(reply.send({{}, bytes, {}}));
    publish_status();
    handler_.on_accepted(handle);
  } catch (const std::bad_alloc&) {  // the client waits in vain, as if its request had been lost
  }
}

void ServiceActionServer::set(Goal& goal, GoalStatus status) noexcept {
  goal.state.status = status;
  if (goal.handle != nullptr) goal.handle->set(status);
}

bool ServiceActionServer::execute(const GoalId& id) noexcept {
  {
    const std::lock_guard lock(mutex_);
    const auto goal = goals_.find(id);
    if (goal == goals_.end() || goal->second.state.status != GoalStatus::kAccepted) return false;
    set(goal->second, GoalStatus::kExecuting);
  }
  publish_status();
  return true;
}

bool ServiceActionServer::begin_cancel(const GoalId& id) noexcept {
  const std::lock_guard lock(mutex_);
  const auto goal = goals_.find(id);
  if (goal == goals_.end() || !may_be_canceled(goal->second.state.status)) return false;
  set(goal->second, GoalStatus::kCanceling);
  return true;
}

bool ServiceActionServer::end(const GoalId& id, GoalStatus status, const void* result, bool forgotten) noexcept {
  std::vector<std::unique_ptr<LateReply>> asked_for;
  std::vector<std::uint8_t> bytes;
  try {
    message::Object answer(result_answer_.type());
    write_at(answer.data(), at_.result_status, static_cast<std::int8_t>(status));
    if (!forgotten && !message::assign(*types_.result, result, within(answer.data(), at_.result))) return false;
    bytes = result_answer_.encode(answer.data());
    const std::lock_guard lock(mutex_);
    const auto found = goals_.find(id);
    if (found == goals_.end()) return false;
    Goal& goal = found->second;
    if (forgotten ? is_terminal(goal.state.status) : !may_end(goal.state.status, status)) return false;
    goal.result = bytes;
    set(goal, status);
    goal.ended_ns = clock_.now();
    goal.handle = nullptr;
    asked_for.swap(goal.asked_for);
  } catch (const std::bad_alloc&) {
    return false;
  }
  bool sent = !closed();
  for (const auto& reply : asked_for) sent = reply->send({{}, bytes, {}}) && sent;
  publish_status();
  return sent;
}

void ServiceActionServer::forget(const GoalId& id) noexcept {
  static_cast<void>(end(id, GoalStatus::kCanceled, nullptr, true));
  handler_.on_forgotten(id);
}

bool ServiceActionServer::publish_feedback(const GoalId& id, const void* feedback) noexcept {
  try {
    message::Object message(feedback_.type());
    write_at(message.data(), at_.feedback_goal_id, id);
    if (!message::assign(*types_.feedback, feedback, within(message.data(), at_.feedback_value))) return false;
    std::vector<std::uint8_t> bytes = feedback_.encode(message.data());
    const auto publish = [this](const std::vector<std::uint8_t>& of) {
      return feedback_publisher_->publish({{}, of, {}});
    };
    return feedback_turns_.take([&] { return publish(bytes); }, [&] { return std::move(bytes); },
                                [&](const auto& kept) { static_cast<void>(publish(kept)); });
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// ---- results ----

void ServiceActionServer::on_result(const Delivery& delivery, Reply& reply) noexcept {
  const void* const request = result_request_.read(delivery);
  if (request == nullptr || closed()) return;
  const auto id = read_at<GoalId>(request, at_.result_goal_id);
  try {
    std::vector<std::uint8_t> bytes;
    {
      const std::lock_guard lock(mutex_);
      expire();
      const auto found = goals_.find(id);
      if (found == goals_.end()) {
        bytes = result_answer_.encode(message::Object(result_answer_.type()).data());  // STATUS_UNKNOWN
      } else if (is_terminal(found->second.state.status)) {
        bytes = found->second.result;
      } else {
        if (auto later = reply.later(nobody_)) found->second.asked_for.push_back(std::move(later));
        return;
      }
    }
    static_cast<void>(reply.send({{}, bytes, {}}));
  } catch (const std::bad_alloc&) {
  }
}

// ---- cancelling ----

std::vector<std::shared_ptr<ServiceActionServer::Handle>> ServiceActionServer::to_cancel(const GoalState& which,
                                                                                         CancelReturn& returned) {
  const bool has_id = which.id != GoalId{};
  const bool has_stamp = which.stamp_ns != 0;
  // Released without the mutex: one of these references may be the last.
  std::vector<std::pair<std::uint64_t, std::shared_ptr<Handle>>> found;
  const std::lock_guard lock(mutex_);
  expire();
  if (has_id && !has_stamp && !goals_.contains(which.id)) returned = CancelReturn::kUnknownGoal;
  for (const auto& [id, goal] : goals_) {
    const bool meant = (has_id && id == which.id) || (has_stamp && goal.state.stamp_ns <= which.stamp_ns) ||
                       (!has_id && !has_stamp);
    if (!meant) continue;
    if (!may_be_canceled(goal.state.status)) {
      if (has_id && !has_stamp) returned = CancelReturn::kTerminated;
    } else if (auto handle = goal.kept.lock()) {  // otherwise it is about to be forgotten
      found.emplace_back(goal.order, std::move(handle));
    }
  }
  std::ranges::sort(found, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::shared_ptr<Handle>> handles;
  for (auto& entry : found) handles.push_back(std::move(entry.second));
  return handles;
}

void ServiceActionServer::on_cancel(const Delivery& delivery, Reply& reply) noexcept {
  const void* const request = cancel_request_.read(delivery);
  if (request == nullptr || closed()) return;
  try {
    CancelReturn returned = CancelReturn::kNone;
    const auto handles = to_cancel(at_.cancel_which.read(request), returned);
    std::vector<GoalState> canceling;
    for (const auto& handle : handles) {
      if (handler_.on_cancel(*handle) != CancelResponse::kAccept || !begin_cancel(handle->id())) continue;
      const std::lock_guard lock(mutex_);
      const auto goal = goals_.find(handle->id());
      if (goal != goals_.end()) canceling.push_back(goal->second.state);
    }
    if (!handles.empty() && canceling.empty()) returned = CancelReturn::kRejected;
    if (!canceling.empty()) publish_status();
    message::Object answer(cancel_answer_.type());
    write_at(answer.data(), at_.cancel_returned, static_cast<std::int8_t>(returned));
    at_.canceling.write(answer.data(), canceling);
    static_cast<void>(reply.send({{}, cancel_answer_.encode(answer.data()), {}}));
  } catch (const std::bad_alloc&) {
  }
}

// ---- status ----

void ServiceActionServer::publish_status() noexcept {
  status_gate_.pass(1, [this](Gate::Marks) { publish_status_now(); });
}

void ServiceActionServer::publish_status_now() noexcept {
  if (closed()) return;
  try {
    std::vector<std::pair<std::uint64_t, GoalState>> known;
    {
      const std::lock_guard lock(mutex_);
      expire();
      for (const auto& [id, goal] : goals_) known.emplace_back(goal.order, goal.state);
    }
    std::ranges::sort(known, {}, [](const auto& entry) { return entry.first; });
    std::vector<GoalState> states;
    for (const auto& entry : known) states.push_back(entry.second);
    message::Object message(status_.type());
    at_.states.write(message.data(), states);
    const std::vector<std::uint8_t> bytes = status_.encode(message.data());
    static_cast<void>(status_publisher_->publish({{}, bytes, {}}));
  } catch (const std::bad_alloc&) {  // the next status includes this change
  }
}

}  // namespace perflab::runtime
