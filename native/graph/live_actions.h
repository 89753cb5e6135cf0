// The action ends of a LiveGraph: clients that send goals and measure them, and servers that work on goals.
//
// Exchanges between client and server are recorded like services, under their wire names: send_goal, whose
// reply is the acceptance; get_result, whose latency is from sending the goal to its result; cancel_goal.
// Feedback is an edge from server to client; the server numbers it for each client.
//
// Goal ids identify the client and the goal, so message types need no field for it.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "graph/live_parts.h"

namespace perflab::graph {

// The goal id of a client of the graph: 8 bytes that distinguish it from other ids, then client and goal.
struct GoalName {
  std::uint64_t salt = 0;
  std::uint16_t client = 0;    // index among the clients of the action
  std::uint64_t sequence = 0;  // including message::kWarmUpBit; below 2^48

  [[nodiscard]] runtime::GoalId id() const noexcept {
    runtime::GoalId id;
    const std::uint64_t name = (std::uint64_t{client} << 48U) | sequence;
    std::memcpy(id.data(), &salt, sizeof salt);
    std::memcpy(id.data() + sizeof salt, &name, sizeof name);
    return id;
  }
  [[nodiscard]] static GoalName of(const runtime::GoalId& id) noexcept {
    GoalName name;
    std::uint64_t packed = 0;
    std::memcpy(&name.salt, id.data(), sizeof name.salt);
    std::memcpy(&packed, id.data() + sizeof name.salt, sizeof packed);
    name.client = static_cast<std::uint16_t>(packed >> 48U);
    name.sequence = packed & message::kSequenceMask;
    return name;
  }
};

// The names in records for the topic of an action's feedback and for its receiver.
[[nodiscard]] inline std::string feedback_topic(const std::string& action) { return action + "/_action/feedback"; }
[[nodiscard]] inline std::string goals_of(const Node& client) { return "goals of " + client.qualified_name(); }

inline Publisher feedback_publisher(message::Formats& messages, const ActionServer& server) {
  Publisher publisher;
  publisher.topic = feedback_topic(server.action);
  const message::Format& format = messages.format_of_part(*messages.find_action(server.type)->feedback);
  publisher.type = format.name;
  publisher.length = message::kServiceLength;
  publisher.size_bytes = static_cast<std::uint32_t>(format.payload_bytes(message::kServiceLength));
  return publisher;
}

// Sends goals, by a timer or for a program.
class LiveGraph::LiveActionClient final : public runtime::ActionClientHandler,
                                          public runtime::TimerHandler,
                                          public ActionClientEnd {
 public:
  LiveActionClient(Shared& shared, const Node& node, const ActionClient& client, const LiveSettings& settings, bool driven)
      : shared_(shared),
        node_(node),
        client_(client),
        driven_(driven),
        types_(*shared.messages.find_action(client.type)),
        goal_format_(shared.messages.format_of_part(*types_.goal)),
        feedback_format_(shared.messages.format_of_part(*types_.feedback)),
        name_{.salt = mixed(settings.seed), .client = ends().number_of(node)},
        goals_(*this, "send_goal", types_.send_goal, client.frequency_hz, settings, settings.thresholds),
        results_(*this, "get_result", types_.get_result, 0.0, settings, kNeverLate) {
    if (client.cancel_after_ns > 0 || !driven)
      cancels_.emplace(*this, "cancel_goal", types_.cancel, 0.0, settings, settings.thresholds);
    if (driven) message::fill(goal_.emplace(*types_.goal), message::kServiceLength);
    if (ends().feedback) {
      measure::EdgeFigures figures = figures_of(settings, *ends().server, node, false);
      figures.deserialize = false;
      feedback_.emplace(shared.memory, shared.events, shared.feedback_edges++, settings.thresholds, 0.0, figures);
      feedback_publisher_ = feedback_publisher(shared.messages, *ends().settings);
      feedback_subscription_.topic = feedback_publisher_.topic;
      feedback_subscription_.filter = goals_of(node);
    }
  }

  void attach(runtime::ActionClient& endpoint) noexcept { endpoint_ = &endpoint; }
  void measure_from(Nanoseconds instant) noexcept {
    for (Part* const part : parts()) part->measure_from(instant);
    if (feedback_) feedback_->measure_from(instant);
    measured_from_ = instant;
  }

  // For a timer.
  void send(Nanoseconds due_ns) noexcept { static_cast<void>(send(*goal_, due_ns, {})); }
  [[nodiscard]] measure::PublisherRecorder& recorder() noexcept { return goals_.asked; }
  // For the cancelling timer: cancels all goals that were due that long ago. It ticks once per goal; on
  // rclcpp every timer counts from its own instant, so the two are not due at exactly the same nanosecond.
  void on_tick(Nanoseconds due_ns) noexcept override {
    const auto period_ns = static_cast<Nanoseconds>(1e9 / client_.frequency_hz);
    const Nanoseconds given_ns = due_ns - client_.cancel_after_ns + period_ns / 2;
    std::vector<runtime::GoalId> late;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [id, goal] : open_) {
        if (!goal.cancelled && goal.accepted && goal.due_ns <= given_ns) late.push_back(id);
      }
    }
    for (const runtime::GoalId& id : late) static_cast<void>(cancel(id, due_ns));
  }
  void on_skipped(Nanoseconds /*first_due_ns*/, std::uint64_t /*count*/) noexcept override {}

  // For a program.
  std::optional<runtime::GoalId> send_goal(const void* goal, Nanoseconds due_ns, GoalEvents events) override {
    if (!shared_.may_send(due_ns)) return std::nullopt;
    message::Object own(*types_.goal, goal);
    return send(own, due_ns, std::move(events));
  }
  bool cancel_goal(const runtime::GoalId& id) override { return cancel(id, shared_.clock.now()); }
  [[nodiscard]] const message::ActionTypes& types() const noexcept override { return types_; }
  [[nodiscard]] bool driven() const noexcept { return driven_; }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const std::string& end_name() const noexcept { return client_.action; }

  void on_goal_answer(const runtime::GoalAnswer& answer) noexcept override {
    const Nanoseconds callback_ns = shared_.clock.now();
    Goal goal;
    {
      const std::lock_guard lock(mutex_);
      const auto found = open_.find(answer.id);
      if (found == open_.end()) return;
      found->second.accepted = answer.accepted;
      if (answer.accepted) found->second.result_sequence = results_.asked.next_sequence(found->second.due_ns);
      goal = found->second;
      if (!answer.accepted) open_.erase(found);
    }
    goals_.record(goal, goal.sequence, callback_ns, answer.arrived_ns, answer.accepted ? "accepted" : "rejected");
    if (goal.events && goal.events->on_answer) goal.events->on_answer(answer.accepted, answer.stamp_ns);
    if (!answer.accepted) return;
    const Nanoseconds asked_ns = shared_.clock.now();
    results_.sent(endpoint_->request_result(answer.id), goal.due_ns, asked_ns, goal.result_sequence, shared_.clock.now());
  }
  void on_feedback(const runtime::GoalFeedback& feedback) noexcept override {
    const Nanoseconds callback_ns = shared_.clock.now();
    if (feedback_) {
      const message::Header header = feedback_format_.stamp_in(feedback.feedback);
      const bool recorded =
          feedback_->record_callback({header.intended_ns, header.published_ns, message::sequence_of(header)}, callback_ns,
                                     feedback.arrived_ns);
      if (recorded) measure::detail::add<std::uint64_t>(feedback_completed_, 1);
    }
    if (driven_) return;
    const auto events = events_of(feedback.id);
    if (events && events->on_feedback) events->on_feedback(feedback.feedback);
  }
  void on_result(const runtime::GoalResult& result) noexcept override {
    const Nanoseconds callback_ns = shared_.clock.now();
    Goal goal;
    {
      const std::lock_guard lock(mutex_);
      const auto found = open_.find(result.id);
      if (found == open_.end()) return;
      goal = found->second;
      open_.erase(found);
    }
    results_.record(goal, goal.result_sequence, callback_ns, result.arrived_ns, word_of(result.status));
    if (goal.events && goal.events->on_result) goal.events->on_result(result.status, result.result);
  }
  void on_cancel_answer(const runtime::CancelAnswer& answer) noexcept override {
    const Nanoseconds callback_ns = shared_.clock.now();
    Goal cancelled;
    {
      const std::lock_guard lock(mutex_);
      const auto found = cancelling_.find(answer.asked);
      if (found == cancelling_.end()) return;
      cancelled = found->second;
      cancelling_.erase(found);
    }
    cancels_->record(cancelled, cancelled.sequence, callback_ns, answer.arrived_ns,
                     answer.returned == runtime::CancelReturn::kNone ? "accepted" : "rejected");
    if (cancelled.events && cancelled.events->on_cancel) cancelled.events->on_cancel(answer.returned);
  }

  [[nodiscard]] std::size_t expected() const { return ends().servers; }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const { return node_.qualified_name() + " action client " + client_.action; }
  [[nodiscard]] std::uint64_t completed() const noexcept {
    std::uint64_t all = measure::detail::load(feedback_completed_);
    for (const Part* const part : parts()) all += measure::detail::load(part->completed);
    return all;
  }
  void append_services(std::vector<ServiceView>& views) const {
    for (const Part* const part : parts()) views.push_back(part->view());
  }
  void append_edges(std::vector<EdgeView>& views) const {
    if (feedback_)
      views.push_back({ends().server, &node_, &feedback_publisher_, &feedback_subscription_, &*feedback_});
  }

 private:
  // A result is as late as its goal takes, which must not count as a late message.
  static constexpr measure::ThresholdSettings kNeverLate{
      .late_percent = 0, .late_ns = INT64_MAX, .too_late_percent = 0, .too_late_ns = INT64_MAX};

  struct Goal {
    Nanoseconds due_ns = 0;
    Nanoseconds sent_ns = 0;
    std::uint64_t sequence = 0;
    std::uint64_t result_sequence = 0;
    bool accepted = false;
    bool cancelled = false;
    std::shared_ptr<const GoalEvents> events{};  // set for a program
  };

  // One service of the action.
  struct Part {
    Part(LiveActionClient& owner, const char* what, const message::ServiceTypes& types, double frequency_hz,
         const LiveSettings& settings, const measure::ThresholdSettings& thresholds)
        : client{.service = owner.client_.action + "/_action/" + what, .type = owner.client_.type, .frequency_hz = frequency_hz},
          asked(owner.shared_.memory),
          answers(owner.shared_.memory, owner.shared_.events, owner.shared_.action_parts++, thresholds, frequency_hz,
                  figures(owner, settings)),
          size_bytes(owner.shared_.messages.format_of_part(*types.request).payload_bytes(message::kServiceLength)),
          owner_(owner) {}

    void measure_from(Nanoseconds instant) noexcept {
      asked.measure_from(instant);
      answers.measure_from(instant);
    }
    void sent(bool was, Nanoseconds due_ns, Nanoseconds sent_ns, std::uint64_t sequence, Nanoseconds returned_ns) noexcept {
      if (was) {
        asked.record_sent({due_ns, sent_ns, sequence}, returned_ns);
      } else {
        asked.record_write_error(due_ns);
      }
    }
    void record(const Goal& goal, std::uint64_t sequence, Nanoseconds callback_ns, Nanoseconds arrived_ns,
                const char* answer) noexcept {
      if (!answers.record_callback({goal.due_ns, goal.sent_ns, sequence}, callback_ns, arrived_ns)) return;
      {
        const std::lock_guard lock(mutex);
        ++said[answer];
      }
      measure::detail::add<std::uint64_t>(completed, 1);
    }
    [[nodiscard]] ServiceView view() const {
      const std::lock_guard lock(mutex);
      return {&owner_.node_, &client, owner_.ends().server, size_bytes, &asked, &answers, said};
    }
    static measure::EdgeFigures figures(const LiveActionClient& owner, const LiveSettings& settings) {
      measure::EdgeFigures figures = figures_of(settings, owner.node_, *owner.ends().server, false);
      figures.deserialize = false;
      return figures;
    }

    const Client client;  // as in the records
    measure::PublisherRecorder asked;
    measure::EdgeRecorder answers;
    const std::size_t size_bytes;
    std::uint64_t completed = 0;
    mutable std::mutex mutex;
    std::map<std::string, std::uint64_t> said{};  // counts of the answers

   private:
    const LiveActionClient& owner_;
  };

  static const char* word_of(runtime::GoalStatus status) noexcept {
    switch (status) {
      case runtime::GoalStatus::kSucceeded:
        return "succeeded";
      case runtime::GoalStatus::kAborted:
        return "aborted";
      case runtime::GoalStatus::kCanceled:
        return "canceled";
      default:
        return "unknown";
    }
  }

  [[nodiscard]] const ActionEnds& ends() const { return shared_.index.actions.at(client_.action); }
  [[nodiscard]] std::vector<Part*> parts() noexcept {
    return cancels_ ? std::vector{&goals_, &results_, &*cancels_} : std::vector{&goals_, &results_};
  }
  [[nodiscard]] std::vector<const Part*> parts() const noexcept {
    return cancels_ ? std::vector<const Part*>{&goals_, &results_, &*cancels_} : std::vector<const Part*>{&goals_, &results_};
  }
  [[nodiscard]] bool measures(Nanoseconds due_ns) const noexcept { return due_ns > measured_from_; }

  // Takes the next number before sending the goal: handlers may send another one before this returns.
  std::optional<runtime::GoalId> send(message::Object& object, Nanoseconds due_ns, GoalEvents events) noexcept {
    std::uint64_t& next = measures(due_ns) ? next_ : next_warmup_;
    std::uint64_t sequence = 0;
    {
      const std::lock_guard lock(mutex_);
      sequence = next++;
    }
    try {
      GoalName name = name_;
      name.sequence = Wanted::key(sequence, measures(due_ns));
      const runtime::GoalId id = name.id();
      Goal goal{.due_ns = due_ns, .sequence = sequence};
      if (!driven_) goal.events = std::make_shared<const GoalEvents>(std::move(events));
      goal.sent_ns = shared_.clock.now();
      if (goal_format_.stamp != message::Stamp::kNone) {
        goal_format_.stamp_object({.intended_ns = due_ns,
                                   .published_ns = goal.sent_ns,
                                   .sequence = sequence,
                                   .size_bytes = static_cast<std::uint32_t>(goals_.size_bytes),
                                   .frequency_hz = static_cast<float>(client_.frequency_hz)},
                                  object.data());
      }
      {
        const std::lock_guard lock(mutex_);
        open_.insert_or_assign(id, goal);
        if (!driven_) remember(id, goal.events);
      }
      const bool sent = endpoint_->send_goal(id, object.data(), false);
      goals_.sent(sent, due_ns, goal.sent_ns, sequence, shared_.clock.now());
      if (sent) return id;
      const std::lock_guard lock(mutex_);
      open_.erase(id);
    } catch (const std::bad_alloc&) {
      goals_.asked.record_write_error(due_ns);
    }
    const std::lock_guard lock(mutex_);
    if (next == sequence + 1) --next;
    return std::nullopt;
  }
  bool cancel(const runtime::GoalId& id, Nanoseconds due_ns) noexcept {
    Goal cancelled;
    {
      const std::lock_guard lock(mutex_);
      const auto found = open_.find(id);
      if (found == open_.end() || cancelling_.contains(id)) return false;
      found->second.cancelled = true;
      cancelled = {.due_ns = due_ns,
                   .sent_ns = shared_.clock.now(),
                   .sequence = cancels_->asked.next_sequence(due_ns),
                   .events = found->second.events};
      cancelling_.emplace(id, cancelled);
    }
    const bool sent = endpoint_->cancel_goal(id);
    cancels_->sent(sent, due_ns, cancelled.sent_ns, cancelled.sequence, shared_.clock.now());
    if (sent) return true;
    const std::lock_guard lock(mutex_);
    cancelling_.erase(id);
    return false;
  }

  // For feedback that comes after the result. Requires the mutex.
  void remember(const runtime::GoalId& id, const std::shared_ptr<const GoalEvents>& events) {
    constexpr std::size_t kRemembered = 100;
    recent_.insert_or_assign(id, events);
    order_.push_back(id);
    if (order_.size() <= kRemembered) return;
    if (!open_.contains(order_.front())) recent_.erase(order_.front());
    order_.erase(order_.begin());
  }
  std::shared_ptr<const GoalEvents> events_of(const runtime::GoalId& id) {
    const std::lock_guard lock(mutex_);
    if (const auto open = open_.find(id); open != open_.end()) return open->second.events;
    const auto recent = recent_.find(id);
    return recent == recent_.end() ? nullptr : recent->second;
  }

  Shared& shared_;
  const Node& node_;
  const ActionClient& client_;
  const bool driven_;  // driven by a timer of the graph, otherwise by a program
  const message::ActionTypes& types_;
  const message::Format& goal_format_;
  const message::Format& feedback_format_;
  std::optional<message::Object> goal_;  // its own goal, for a timer
  const GoalName name_;
  Part goals_, results_;
  std::optional<Part> cancels_;
  std::optional<measure::EdgeRecorder> feedback_;
  Publisher feedback_publisher_;        // as records see them
  Subscription feedback_subscription_;
  std::uint64_t feedback_completed_ = 0;
  runtime::ActionClient* endpoint_ = nullptr;
  Nanoseconds measured_from_ = kUnknownTime;
  std::mutex mutex_;
  std::uint64_t next_ = 0;  // numbers of goals, of the measured part and the warm-up
  std::uint64_t next_warmup_ = 0;
  std::map<runtime::GoalId, Goal> open_;        // not ended
  std::map<runtime::GoalId, Goal> cancelling_;  // requests that are not answered, by what they cancel
  std::map<runtime::GoalId, std::shared_ptr<const GoalEvents>> recent_;
  std::vector<runtime::GoalId> order_;
};

// Works on goals at the steps of a timer, or hands them to a program.
class LiveGraph::LiveActionServer final : public runtime::ActionServerHandler,
                                          public runtime::TimerHandler,
                                          public ActionServerEnd {
 public:
  LiveActionServer(Shared& shared, const Node& node, const ActionServer& server, runtime::Runtime& runtime)
      : shared_(shared),
        node_(node),
        server_(server),
        runtime_(runtime),
        types_(*shared.messages.find_action(server.type)),
        feedback_format_(shared.messages.format_of_part(*types_.feedback)),
        result_(*types_.result),
        feedback_(*types_.feedback),
        publisher_(feedback_publisher(shared.messages, server)) {
    message::fill(result_, message::kServiceLength);
    message::fill(feedback_, message::kServiceLength);
    if (ends().server == &node && ends().feedback) sent_.emplace(shared.memory);
    counts_.resize(ends().clients.size());
  }

  void attach(runtime::ActionServer& endpoint) noexcept { endpoint_ = &endpoint; }
  void measure_from(Nanoseconds instant) noexcept {
    if (sent_) sent_->measure_from(instant);
  }

  // Of a program.
  void set_handling(GoalHandling handling) override { handling_ = std::move(handling); }
  [[nodiscard]] bool handled() const noexcept { return handling_.has_value(); }
  [[nodiscard]] const message::ActionTypes& types() const noexcept override { return types_; }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const std::string& end_name() const noexcept { return server_.action; }

  runtime::GoalResponse on_goal(const runtime::GoalRequest& request) noexcept override {
    if (handling_) return handling_->on_goal(request.id, request.goal);
    const bool rejected = server_.reject_every > 0 && ++asked_ % static_cast<std::uint64_t>(server_.reject_every) == 0;
    return rejected ? runtime::GoalResponse::kReject : runtime::GoalResponse::kAcceptAndExecute;
  }
  void on_accepted(std::shared_ptr<runtime::ServerGoal> goal) noexcept override {
    auto recorded = std::make_shared<Recorded>(*this, std::move(goal));
    if (handling_) {
      handling_->on_accepted(std::move(recorded));
      return;
    }
    const std::lock_guard lock(mutex_);
    work_.push_back({std::move(recorded), shared_.clock.now()});
  }
  runtime::CancelResponse on_cancel(runtime::ServerGoal& goal) noexcept override {
    const bool may = !handling_ || !handling_->on_cancel || handling_->on_cancel(goal);
    return may ? runtime::CancelResponse::kAccept : runtime::CancelResponse::kReject;
  }
  void on_forgotten(const runtime::GoalId& /*id*/) noexcept override {}  // the runtime cancels the goal and
                                                                         // notifies the client

  // A step.
  void on_tick(Nanoseconds due_ns) noexcept override {
    std::vector<Work> now;
    {
      const std::lock_guard lock(mutex_);
      now.swap(work_);
    }
    std::erase_if(now, [&](const Work& work) { return step(work, due_ns); });
    const std::lock_guard lock(mutex_);
    work_.insert(work_.begin(), std::make_move_iterator(now.begin()), std::make_move_iterator(now.end()));
  }
  void on_skipped(Nanoseconds /*first_due_ns*/, std::uint64_t /*count*/) noexcept override {}

  [[nodiscard]] std::size_t expected() const { return ends().clients.size(); }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const { return node_.qualified_name() + " action server " + server_.action; }
  // feedback sent to clients of the graph
  [[nodiscard]] std::uint64_t sent() const noexcept { return sent_ ? sent_->sent() : 0; }
  void append_publishers(std::vector<PublisherView>& views) const {
    if (!sent_) return;
    PublisherView view{&node_, &publisher_, &*sent_, {}};
    for (std::size_t i = 0; i < counts_.size(); ++i)
      view.wanted.push_back({goals_of(*ends().clients[i]), measure::detail::load(counts_[i].measured)});
    views.push_back(std::move(view));
  }

 private:
  // A goal with recorded feedback.
  class Recorded final : public runtime::ServerGoal {
   public:
    Recorded(LiveActionServer& server, std::shared_ptr<runtime::ServerGoal> goal) : server_(server), goal_(std::move(goal)) {}
    [[nodiscard]] const runtime::GoalId& id() const noexcept override { return goal_->id(); }
    [[nodiscard]] const void* goal() const noexcept override { return goal_->goal(); }
    [[nodiscard]] runtime::GoalStatus status() const noexcept override { return goal_->status(); }
    bool execute() noexcept override { return goal_->execute(); }
    bool publish_feedback(const void* feedback) noexcept override {
      return server_.publish(*goal_, feedback, server_.shared_.clock.now());
    }
    bool publish_due(Nanoseconds due_ns) noexcept { return server_.publish(*goal_, nullptr, due_ns); }
    bool succeed(const void* result) noexcept override { return goal_->succeed(result); }
    bool abort(const void* result) noexcept override { return goal_->abort(result); }
    bool canceled(const void* result) noexcept override { return goal_->canceled(result); }

   private:
    LiveActionServer& server_;
    const std::shared_ptr<runtime::ServerGoal> goal_;
  };
  struct Work {
    std::shared_ptr<Recorded> goal;
    Nanoseconds accepted_ns = 0;
  };
  struct Count {
    std::uint64_t measured = 0;
    std::uint64_t warmup = 0;
  };

  // True once the goal has ended.
  bool step(const Work& work, Nanoseconds due_ns) noexcept {
    if (is_terminal(work.goal->status())) return true;
    if (work.goal->is_canceling()) {
      static_cast<void>(work.goal->canceled(result_.data()));
      return true;
    }
    runtime_.work(server_.work_ns);
    if (server_.feedback) static_cast<void>(work.goal->publish_due(due_ns));
    if (shared_.clock.now() - work.accepted_ns < server_.duration_ns) return false;
    // Cancelled meanwhile: the next step ends it.
    return work.goal->succeed(result_.data()) || is_terminal(work.goal->status());
  }

  // Sends the server's own feedback unless one is given. One thread at a time, because feedback is numbered;
  // handlers may send more before this returns.
  bool publish(runtime::ServerGoal& goal, const void* given, Nanoseconds due_ns) noexcept {
    if (!sent_) return goal.publish_feedback(given != nullptr ? given : feedback_.data());
    const std::lock_guard lock(sending_);
    const GoalName name = GoalName::of(goal.id());
    if (name.client >= counts_.size()) return goal.publish_feedback(given != nullptr ? given : feedback_.data());
    if (given != nullptr && !message::assign(*types_.feedback, given, feedback_.data())) return false;
    const bool measured = sent_->measures(due_ns);
    std::uint64_t& count = measured ? counts_[name.client].measured : counts_[name.client].warmup;
    const std::uint64_t number = count;
    measure::detail::add<std::uint64_t>(count, 1);
    const Nanoseconds now = shared_.clock.now();
    feedback_format_.stamp_object({.intended_ns = due_ns,
                                   .published_ns = now,
                                   .sequence = number,
                                   .size_bytes = publisher_.size_bytes,
                                   .frequency_hz = 0.0F},
                                  feedback_.data());
    if (!goal.publish_feedback(feedback_.data())) {
      if (!is_terminal(goal.status())) sent_->record_write_error(due_ns);
      if (count == number + 1) measure::detail::store(count, number);
      return false;
    }
    sent_->record_sent({due_ns, now, sent_->next_sequence(due_ns)}, shared_.clock.now());
    return true;
  }
  [[nodiscard]] const ActionEnds& ends() const { return shared_.index.actions.at(server_.action); }

  Shared& shared_;
  const Node& node_;
  const ActionServer& server_;
  runtime::Runtime& runtime_;
  const message::ActionTypes& types_;
  const message::Format& feedback_format_;
  message::Object result_;
  message::Object feedback_;
  const Publisher publisher_;  // as in the records
  std::optional<measure::PublisherRecorder> sent_;
  std::vector<Count> counts_;  // indexed by client
  std::optional<GoalHandling> handling_;
  runtime::ActionServer* endpoint_ = nullptr;
  std::atomic<std::uint64_t> asked_{0};
  std::mutex mutex_;
  std::vector<Work> work_;
  std::recursive_mutex sending_;
};

}  // namespace perflab::graph
