// Action clients and servers: rclcpp_action's own, over rcl_action.
//
// rclcpp_action::Client and Server are templates that read members of C++ messages; ClientBase and ServerBase
// do the actual work and take any message by address. So the derived classes here do what these templates do,
// with perflab's structs, which rcl fills (any_message.h).
//
// ServerBase builds cancel answers and status messages itself, in C++; it gets the C++ type supports of these
// two.
#include <action_msgs/msg/goal_status_array.hpp>
#include <action_msgs/srv/cancel_goal.hpp>
#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <rclcpp_action/client.hpp>
#include <rclcpp_action/server.hpp>
#include <vector>

#include "runtime/action_messages.h"
#include "runtime/known_goals.h"
#include "runtime/rclcpp/any_message.h"
#include "runtime/rclcpp/distribution.h"
#include "runtime/rclcpp/entities.h"
#include "runtime/rclcpp/type_support.h"

namespace perflab::runtime::ros {
namespace {

// A waitable with several entities, each of which reports when it is ready.
class Ends {
 public:
  explicit Ends(std::size_t count) : ready_(count) {}

  void add(std::size_t end, std::size_t count) noexcept {
    if (end < ready_.size()) ready_[end].fetch_add(count, std::memory_order_release);
  }
  // An entity that is ready.
  std::optional<std::size_t> next() noexcept {
    for (std::size_t end = 0; end < ready_.size(); ++end) {
      if (ready_[end].load(std::memory_order_acquire) == 0) continue;
      ready_[end].fetch_sub(1, std::memory_order_acq_rel);
      return end;
    }
    return std::nullopt;
  }

 private:
  std::vector<std::atomic<std::size_t>> ready_;
};

constexpr std::size_t kMostEnds = 5;  // for a client: three services and two topics

// What clients and servers have in common as waitables.
template <typename Receiver, typename Waitable>
class ActionEnd : public Receiver {
 public:
  explicit ActionEnd(Shared& shared, const NodeHandle& node) : Receiver(shared), node_(node.waitables()) {}
  ~ActionEnd() override {
    if (made_) node_->remove_waitable(made_, nullptr);
  }
  [[nodiscard]] std::vector<const void*> executables() const override {
    return {static_cast<const rclcpp::Waitable*>(made_.get())};
  }

 protected:
  void keep(std::shared_ptr<Waitable> made) {
    made_ = std::move(made);
    node_->add_waitable(made_, nullptr);
  }
  void listen() override {
    made_->set_on_ready_callback([this](std::size_t count, int end) {
      ends_.add(static_cast<std::size_t>(end), count);
      this->inline_.on_ready(count);
    });
  }
  void ignore() override { made_->clear_on_ready_callback(); }
  bool take() override {
    const auto end = ends_.next();
    if (!end) return false;
    execute(*made_, made_->take_data_by_entity_id(*end));
    return true;
  }
  bool failed(const std::exception& error) noexcept {
    this->shared_.sink.on_write_failed(this->shared_.clock.now(), error.what());
    return false;
  }

  const rclcpp::node_interfaces::NodeWaitablesInterface::SharedPtr node_;
  std::shared_ptr<Waitable> made_;
  Ends ends_{kMostEnds};
};

void* struct_of(const std::shared_ptr<void>& lent_to_rcl) noexcept { return lent_to_rcl.get(); }

// ---- client ----

class ClientOfAction final : public rclcpp_action::ClientBase {
 public:
  ClientOfAction(const NodeHandle& node, const ActionSettings& settings, const std::string& rmw, ActionClientHandler& handler)
      : ClientBase(node.base(), node.graph(), node.logging(), settings.action, &action_support(*settings.types, rmw),
                   options(settings)),
        handler_(handler),
        types_(*settings.types),
        at_(types_) {}

  void send_goal(const GoalId& id, const void* goal, bool ask_result) {
    const std::shared_ptr<void> request = lend(*types_.send_goal.request);
    write_at(struct_of(request), at_.goal_id, id);
    if (!message::assign(*types_.goal, goal, within(struct_of(request), at_.goal)) || !goals_.sent(id)) throw std::bad_alloc();
    send_goal_request(request, [this, id, ask_result](const std::shared_ptr<void>&) { asked_ = {id, ask_result}; });
  }
  void request_result(const GoalId& id) {
    const std::shared_ptr<void> request = lend(*types_.get_result.request);
    write_at(struct_of(request), at_.result_goal_id, id);
    send_result_request(request, [this, id](const std::shared_ptr<void>&) { asked_ = {id, false}; });
  }
  void cancel(const CancelWhich& which) {
    const std::shared_ptr<void> request = lend(*types_.cancel.request);
    at_.cancel_which.write(struct_of(request), {which.id, which.stamp_ns, GoalStatus::kUnknown});
    send_cancel_request(request, [this, id = which.id](const std::shared_ptr<void>&) { asked_ = {id, false}; });
  }
  // Sends a request in its turn; called by the owner, which knows how.
  std::function<void(const GoalId&)> ask_result_of;

 private:
  struct Asked {
    GoalId id{};
    bool ask_result = false;
  };

  static rcl_action_client_options_t options(const ActionSettings& settings) {
    rcl_action_client_options_t options = rcl_action_client_get_default_options();
    const rmw_qos_profile_t services = to_ros(settings.qos.services).get_rmw_qos_profile();
    options.goal_service_qos = options.result_service_qos = options.cancel_service_qos = services;
    options.feedback_topic_qos = to_ros(settings.qos.feedback).get_rmw_qos_profile();
    options.status_topic_qos = to_ros(settings.qos.status).get_rmw_qos_profile();
    return options;
  }

  std::shared_ptr<void> create_goal_response() const override { return lend(*types_.send_goal.response); }
  std::shared_ptr<void> create_result_response() const override { return lend(*types_.get_result.response); }
  std::shared_ptr<void> create_cancel_response() const override { return lend(*types_.cancel.response); }
  std::shared_ptr<void> create_feedback_message() const override { return lend(*types_.feedback_message); }
  std::shared_ptr<void> create_status_message() const override { return lend(*types_.status); }

  // rclcpp_action calls back while it holds the lock of its list of requests. A handler may send a request,
  // so it is called after the lock is released. Callbacks of a node run one at a time.
  template <typename Base>
  std::optional<Asked> asked_by(const Base& base) {
    asked_.reset();
    base();
    return std::exchange(asked_, std::nullopt);
  }
  void handle_goal_response(const rmw_request_id_t& header, std::shared_ptr<void> response) override {
    const auto asked = asked_by([&] { ClientBase::handle_goal_response(header, response); });
    if (!asked) return;
    const bool accepted = read_at<bool>(struct_of(response), at_.accepted);
    if (!accepted) goals_.ended(asked->id);
    handler_.on_goal_answer({asked->id, accepted, at_.stamp.read(struct_of(response)), kUnknownTime});
    if (accepted && asked->ask_result) ask_result_of(asked->id);
  }
  void handle_result_response(const rmw_request_id_t& header, std::shared_ptr<void> response) override {
    const auto asked = asked_by([&] { ClientBase::handle_result_response(header, response); });
    if (!asked) return;
    goals_.ended(asked->id);
    const void* const answer = struct_of(response);
    handler_.on_result({asked->id, static_cast<GoalStatus>(read_at<std::int8_t>(answer, at_.result_status)),
                        within(answer, at_.result), kUnknownTime});
  }
  void handle_cancel_response(const rmw_request_id_t& header, std::shared_ptr<void> response) override {
    const auto asked = asked_by([&] { ClientBase::handle_cancel_response(header, response); });
    if (!asked) return;
    const void* const answer = struct_of(response);
    at_.canceling.read(answer, canceling_now_);
    handler_.on_cancel_answer(
        {asked->id, static_cast<CancelReturn>(read_at<std::int8_t>(answer, at_.cancel_returned)), canceling_now_, kUnknownTime});
  }
  void handle_feedback_message(std::shared_ptr<void> message) override {
    const void* const feedback = struct_of(message);
    const auto id = read_at<GoalId>(feedback, at_.feedback_goal_id);
    if (!goals_.contains(id)) return;  // of another client
    handler_.on_feedback({id, within(feedback, at_.feedback_value), kUnknownTime, kUnknownTime});
  }
  void handle_status_message(std::shared_ptr<void> message) override {
    at_.states.read(struct_of(message), states_now_);
    handler_.on_status(states_now_);
  }

  ActionClientHandler& handler_;
  const message::ActionTypes& types_;
  const ActionPlaces at_;
  KnownGoals goals_;
  std::optional<Asked> asked_;  // the request of the answer being handled
  std::vector<GoalState> canceling_now_, states_now_;
};

class AnyActionClient final : public ActionEnd<RosActionClient, ClientOfAction> {
 public:
  AnyActionClient(Shared& shared, const NodeHandle& node, const ActionSettings& settings, ActionClientHandler& handler)
      : ActionEnd(shared, node), graph_(node.graph()), service_(action_part(settings, "send_goal")) {
    auto made = std::make_shared<ClientOfAction>(node, settings, shared.rmw, handler);
    made->ask_result_of = [this](const GoalId& id) { static_cast<void>(request_result(id)); };
    keep(std::move(made));
  }

  bool send_goal(const GoalId& id, const void* goal, bool ask_result) noexcept override {
    return send([&] { made_->send_goal(id, goal, ask_result); });
  }
  bool request_result(const GoalId& id) noexcept override {
    return send([&] { made_->request_result(id); });
  }
  bool cancel(const CancelWhich& which) noexcept override {
    return send([&] { made_->cancel(which); });
  }
  [[nodiscard]] std::size_t matched() noexcept override {
    return counted([this] { return made_->action_server_is_ready() ? count_services(*graph_, service_) : 0; });
  }

 private:
  // As for a client of a service (endpoints.cpp): a reply in this thread has to wait.
  template <typename Send>
  bool send(const Send& how) noexcept {
    const Inline::Later later(inline_);
    try {
      how();
      return true;
    } catch (const std::exception& error) {
      return failed(error);
    }
  }

  const rclcpp::node_interfaces::NodeGraphInterface::SharedPtr graph_;
  const std::string service_;
};

// ---- server ----

class ServerOfAction;

// rclcpp_action's handle of a goal: its state is that of rcl_action.
class GoalOfAction final : public ServerGoal, public rclcpp_action::ServerGoalHandleBase {
 public:
  GoalOfAction(const std::shared_ptr<ServerOfAction>& server, std::shared_ptr<rcl_action_goal_handle_t> handle,
               const GoalId& id, const message::Type& type, const void* goal)
      : ServerGoalHandleBase(std::move(handle)), server_(server), id_(id), goal_(type, goal) {}
  ~GoalOfAction() override;

  [[nodiscard]] const GoalId& id() const noexcept override { return id_; }
  [[nodiscard]] const void* goal() const noexcept override { return goal_.data(); }
  [[nodiscard]] GoalStatus status() const noexcept override;
  bool execute() noexcept override;
  bool publish_feedback(const void* feedback) noexcept override;
  bool succeed(const void* result) noexcept override {
    return end(GoalStatus::kSucceeded, &GoalOfAction::_succeed, result);
  }
  bool abort(const void* result) noexcept override { return end(GoalStatus::kAborted, &GoalOfAction::_abort, result); }
  bool canceled(const void* result) noexcept override {
    return end(GoalStatus::kCanceled, &GoalOfAction::_canceled, result);
  }
  // Throws an rclcpp_action exception if the goal has ended.
  void begin_cancel() { _cancel_goal(); }

 private:
  bool end(GoalStatus status, void (GoalOfAction::*step)(), const void* result) noexcept;

  const std::weak_ptr<ServerOfAction> server_;
  const GoalId id_;
  const message::Object goal_;
  mutable std::mutex mutex_;  // guards ending the goal
  std::atomic<GoalStatus> ended_{GoalStatus::kUnknown};
};

// Declared before ServerBase, which reads them.
struct ServerTypes {
  ServerTypes(const message::ActionTypes& types, const std::string& rmw) : support(action_support(types, rmw)) {
    support.cancel_service_type_support =
        rosidl_typesupport_cpp::get_service_type_support_handle<action_msgs::srv::CancelGoal>();
    support.status_message_type_support =
        rosidl_typesupport_cpp::get_message_type_support_handle<action_msgs::msg::GoalStatusArray>();
  }
  rosidl_action_type_support_t support;
};

class ServerOfAction final : private ServerTypes,
                             public rclcpp_action::ServerBase,
                             public std::enable_shared_from_this<ServerOfAction> {
 public:
  ServerOfAction(Shared& shared, const NodeHandle& node, const ActionSettings& settings, ActionServerHandler& handler)
      : ServerTypes(*settings.types, shared.rmw),
        ServerBase(node.base(), node.clock(), node.logging(), settings.action, &support, options(settings)),
        shared_(shared),
        handler_(handler),
        types_(*settings.types),
        at_(types_) {}

  [[nodiscard]] bool running() const noexcept { return shared_.running.load(std::memory_order_relaxed); }
  void say_status() { publish_status(); }
  void feedback(const GoalId& id, const void* feedback) {
    const std::shared_ptr<void> message = lend(*types_.feedback_message);
    write_at(struct_of(message), at_.feedback_goal_id, id);
    if (!message::assign(*types_.feedback, feedback, within(struct_of(message), at_.feedback_value))) throw std::bad_alloc();
    publish_feedback(message);
  }
  // A result that can be sent; default values if there is none.
  [[nodiscard]] std::shared_ptr<void> answer(GoalStatus status, const void* result) {
    std::shared_ptr<void> answer = create_result_response(static_cast<std::int8_t>(status));
    if (result != nullptr && !message::assign(*types_.result, result, within(struct_of(answer), at_.result)))
      throw std::bad_alloc();
    return answer;
  }
  // As rclcpp_action::Server does once a goal has ended.
  void ended(const GoalId& id, const std::shared_ptr<void>& answer) {
    publish_result(id, answer);
    publish_status();
    notify_goal_terminal_state();
  }
  void forgotten(const GoalId& id) noexcept { handler_.on_forgotten(id); }
  bool failed(const char* what) noexcept {
    shared_.sink.on_write_failed(shared_.clock.now(), what);
    return false;
  }

 private:
  static rcl_action_server_options_t options(const ActionSettings& settings) {
    constexpr std::int64_t kForGood = std::int64_t{10} * 365 * 24 * 3600 * kNanosecondsPerSecond;
    rcl_action_server_options_t options = rcl_action_server_get_default_options();
    const rmw_qos_profile_t services = to_ros(settings.qos.services).get_rmw_qos_profile();
    options.goal_service_qos = options.result_service_qos = options.cancel_service_qos = services;
    options.feedback_topic_qos = to_ros(settings.qos.feedback).get_rmw_qos_profile();
    options.status_topic_qos = to_ros(settings.qos.status).get_rmw_qos_profile();
    options.result_timeout.nanoseconds = settings.result_timeout_ns < 0 ? kForGood : settings.result_timeout_ns;
    return options;
  }

  std::shared_ptr<void> create_goal_request() override { return lend(*types_.send_goal.request); }
  std::shared_ptr<void> create_result_request() override { return lend(*types_.get_result.request); }
  std::shared_ptr<void> create_result_response(decltype(action_msgs::msg::GoalStatus::status) status) override {
    std::shared_ptr<void> response = lend(*types_.get_result.response);
    write_at(struct_of(response), at_.result_status, status);
    return response;
  }
  rclcpp_action::GoalUUID get_goal_id_from_goal_request(void* message) override {
    return read_at<GoalId>(message, at_.goal_id);
  }
  rclcpp_action::GoalUUID get_goal_id_from_result_request(void* message) override {
    return read_at<GoalId>(message, at_.result_goal_id);
  }

  std::pair<rclcpp_action::GoalResponse, std::shared_ptr<void>> call_handle_goal_callback(
      rclcpp_action::GoalUUID& id, std::shared_ptr<void> request) override {
    // rclcpp_action would accept and then fail.
    const GoalResponse response =
        known(id) ? GoalResponse::kReject : handler_.on_goal({id, within(struct_of(request), at_.goal), kUnknownTime});
    std::shared_ptr<void> answer = lend(*types_.send_goal.response);
    write_at(struct_of(answer), at_.accepted, response != GoalResponse::kReject);
    switch (response) {
      case GoalResponse::kReject:
        break;
      case GoalResponse::kAcceptAndExecute:
        return {rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE, std::move(answer)};
      case GoalResponse::kAcceptAndDefer:
        return {rclcpp_action::GoalResponse::ACCEPT_AND_DEFER, std::move(answer)};
    }
    return {rclcpp_action::GoalResponse::REJECT, std::move(answer)};
  }
  void call_goal_accepted_callback(std::shared_ptr<rcl_action_goal_handle_t> handle, rclcpp_action::GoalUUID id,
                                   std::shared_ptr<void> request) override {
    const auto goal = std::make_shared<GoalOfAction>(shared_from_this(), handle, id, *types_.goal,
                                                     within(struct_of(request), at_.goal));
    {
      const std::lock_guard lock(mutex_);
      std::erase_if(goals_, [](const auto& entry) { return entry.second.rcl.expired(); });
      goals_[id] = {goal, handle};
    }
    handler_.on_accepted(goal);
  }
  rclcpp_action::CancelResponse call_handle_cancel_callback(const rclcpp_action::GoalUUID& id) override {
    std::shared_ptr<GoalOfAction> goal;
    {
      const std::lock_guard lock(mutex_);
      const auto found = goals_.find(id);
      if (found != goals_.end()) goal = found->second.goal.lock();
    }
    if (!goal || handler_.on_cancel(*goal) != CancelResponse::kAccept) return rclcpp_action::CancelResponse::REJECT;
    try {
      goal->begin_cancel();
      return rclcpp_action::CancelResponse::ACCEPT;
    } catch (const std::exception&) {  // it has ended meanwhile
      return rclcpp_action::CancelResponse::REJECT;
    }
  }
  // rcl_action keeps the handle of a goal until it expires.
  bool known(const GoalId& id) {
    const std::lock_guard lock(mutex_);
    const auto found = goals_.find(id);
    return found != goals_.end() && !found->second.rcl.expired();
  }

  struct Goal {
    std::weak_ptr<GoalOfAction> goal;
    std::weak_ptr<rcl_action_goal_handle_t> rcl;
  };

  Shared& shared_;
  ActionServerHandler& handler_;
  const message::ActionTypes& types_;
  const ActionPlaces at_;
  std::mutex mutex_;
  std::map<GoalId, Goal> goals_;
};

GoalOfAction::~GoalOfAction() {
  const auto server = server_.lock();
  if (!server || !server->running() || !try_canceling()) return;
  try {
    server->ended(id_, server->answer(GoalStatus::kCanceled, nullptr));
  } catch (const std::exception& error) {
    server->failed(error.what());
  }
  server->forgotten(id_);
}

GoalStatus GoalOfAction::status() const noexcept {
  try {
    if (ServerGoalHandleBase::is_canceling()) return GoalStatus::kCanceling;
    if (is_executing()) return GoalStatus::kExecuting;
    if (is_active()) return GoalStatus::kAccepted;
  } catch (const std::exception&) {
  }
  const std::lock_guard lock(mutex_);
  return ended_;
}

bool GoalOfAction::execute() noexcept {
  const auto server = server_.lock();
  if (!server || !server->running()) return false;
  try {
    _execute();
  } catch (const std::exception&) {  // from another state
    return false;
  }
  try {
    server->say_status();
    return true;
  } catch (const std::exception& error) {
    return server->failed(error.what());
  }
}

bool GoalOfAction::publish_feedback(const void* feedback) noexcept {
  const auto server = server_.lock();
  if (!server || !server->running() || is_terminal(status())) return false;
  try {
    server->feedback(id_, feedback);
    return true;
  } catch (const std::exception& error) {
    return server->failed(error.what());
  }
}

bool GoalOfAction::end(GoalStatus status, void (GoalOfAction::*step)(), const void* result) noexcept {
  const auto server = server_.lock();
  if (!server || !server->running()) return false;
  try {
    const std::shared_ptr<void> answer = server->answer(status, result);
    {
      const std::lock_guard lock(mutex_);
      try {
        (this->*step)();
      } catch (const std::exception&) {  // from another state
        return false;
      }
      ended_ = status;
    }
    server->ended(id_, answer);
    return true;
  } catch (const std::exception& error) {
    return server->failed(error.what());
  }
}

class AnyActionServer final : public ActionEnd<RosActionServer, ServerOfAction> {
 public:
  AnyActionServer(Shared& shared, const NodeHandle& node, const ActionSettings& settings, ActionServerHandler& handler)
      : ActionEnd(shared, node), graph_(node.graph()), service_(action_part(settings, "send_goal")) {
    keep(std::make_shared<ServerOfAction>(shared, node, settings, handler));
  }
  [[nodiscard]] std::size_t matched() noexcept override {
    return counted([this] { return count_clients(*graph_, service_); });
  }

 private:
  const rclcpp::node_interfaces::NodeGraphInterface::SharedPtr graph_;
  const std::string service_;
};

}  // namespace

std::unique_ptr<RosActionClient> make_action_client(Shared& shared, const NodeHandle& node, const ActionSettings& settings,
                                                    ActionClientHandler& handler) {
  return std::make_unique<AnyActionClient>(shared, node, settings, handler);
}

std::unique_ptr<RosActionServer> make_action_server(Shared& shared, const NodeHandle& node, const ActionSettings& settings,
                                                    ActionServerHandler& handler) {
  return std::make_unique<AnyActionServer>(shared, node, settings, handler);
}

}  // namespace perflab::runtime::ros
