// A program for tests: publishes /ping to itself or another process, counts the messages on /pong, calls a service
// that it may itself answer late, and does further actions given by its options.
#include <atomic>
#include <mutex>
#include <vector>

#include "messages/example_interfaces/action/fibonacci.h"
#include "messages/std_msgs/msg/string.h"
#include "messages/std_srvs/srv/set_bool.h"
#include "program/program.h"

namespace {

using namespace perflab;
using messages::example_interfaces::action::Fibonacci;
using messages::std_msgs::msg::String;
using messages::std_srvs::srv::SetBool;

class Probe final : public program::Application {
 public:
  explicit Probe(program::Context& context) : context_(context), there_and_back_(context.times("there_and_back")) {
    program::Options& options = context.options();
    period_ns_ = options.duration("period", 2'000'000, 100'000);
    turns_ = options.integer("turns", 0, 0, 1'000'000);
    does_ = options.word("does", {"end", "nothing", "fail", "throw", "throw_in_thread", "undeclared", "outcome"}, "end");
    text_ = options.text("text", "ping");
    const bool threaded = options.flag("threaded", false);
    const bool serves = options.flag("serves", false);
    ping_ = context.publisher<String>("/probe", "/ping");
    context.on_message<String>("/probe", "/pong", [this](const String& pong, const program::Received& how) { back(pong, how); });
    if (threaded) {
      context.thread("control", [this](const program::Running& running) { control(running); });
    } else {
      context.timer("/probe", "say", period_ns_, [this](Nanoseconds due_ns) { say(due_ns); });
    }
    if (options.flag("acts", false)) act();
    if (!serves) return;
    ask_ = context.client<SetBool>("/probe", "/switch");
    context.on_request<SetBool>("/probe", "/switch", [this](const SetBool::Request& request, program::Request<SetBool> open) {
      SetBool::Response response;
      response.success = request.data;
      response.message = "late";
      const std::lock_guard lock(mutex_);
      waiting_.push_back([open, response] { open.reply(response); });
    });
  }

  void start(const program::Start& start) override { context_.figure("started", start.measured_from_ns > 0 ? 1.0 : 0.0); }
  void end(Nanoseconds) override { context_.figure("said_after_end", ping_.publish() ? 1.0 : 0.0); }
  void stop() override {
    context_.figure("stopped", 1.0);
    if (count_) context_.figure("feedback", feedback_.load());  // it may come after the result
  }

 private:
  // Counts for itself: a goal that is worked on turn by turn, with three words of feedback.
  void act() {
    count_ = context_.action_client<Fibonacci>("/probe", "/count");
    program::ActionServerHandlers<Fibonacci> handlers;
    handlers.on_goal = [](const program::GoalId&, const Fibonacci::Goal& goal) {
      return goal.order > 0 ? program::GoalResponse::kAcceptAndExecute : program::GoalResponse::kReject;
    };
    handlers.on_accepted = [this](program::Goal<Fibonacci> goal) {
      const std::lock_guard lock(mutex_);
      Fibonacci::Feedback so_far;
      so_far.sequence = {0, 1};
      for (std::int32_t turn = 0; turn < 3; ++turn) waiting_.push_back([goal, so_far] { goal.feedback(so_far); });
      Fibonacci::Result result;
      result.sequence = {0, 1};
      while (static_cast<std::int32_t>(result.sequence.size()) <= goal->order)
        result.sequence.push_back(result.sequence[result.sequence.size() - 2] + result.sequence.back());
      waiting_.push_back([goal, result] { goal.succeed(result); });
    };
    context_.on_goals<Fibonacci>("/probe", "/count", std::move(handlers));
  }

  void say(Nanoseconds due_ns) {
    ping_.message().data = text_ + " " + std::to_string(said_);
    if (ping_.publish(due_ns)) ++said_;
    std::vector<std::function<void()>> waiting;
    {
      const std::lock_guard lock(mutex_);
      waiting.swap(waiting_);
    }
    for (const auto& reply : waiting) reply();  // one turn later, and from another callback
  }

  void control(const program::Running& running) {
    if (does_ == "throw_in_thread") throw std::runtime_error("the control loop is gone");
    for (Nanoseconds due_ns = running.start().at_ns; !running.stopped(); due_ns += period_ns_) {
      program::Clock::sleep_until(due_ns);
      say(due_ns);
    }
  }

  void back(const String& pong, const program::Received& how) {
    there_and_back_.record(how.callback_ns - how.due_ns, how.callback_ns);
    if (pong.data.view().substr(0, text_.size()) != text_) context_.fail("what came back is " + pong.data.string());
    ++back_;
    if (back_ % 10 == 0) context_.figure("tens", static_cast<double>(back_));
    if (back_ == 1 && does_ == "throw") throw std::runtime_error("a handler that throws");
    if (back_ == turns_) finish();
  }

  void finish() {
    context_.figure("turns", static_cast<double>(back_));
    if (does_ == "fail") context_.fail("as it was told to");
    if (does_ == "outcome") context_.outcome("gave_up", "it was told to");
    if (does_ == "undeclared") context_.figure("unheard_of", 1.0);
    if (does_ == "nothing") return;
    if (count_) {
      Fibonacci::Goal goal;
      goal.order = 6;
      program::GoalHandlers<Fibonacci> handlers;
      handlers.on_response = [this](bool accepted, std::int64_t) {
        if (!accepted) context_.fail("the goal was rejected");
      };
      handlers.on_feedback = [this](const Fibonacci::Feedback&) { ++feedback_; };
      handlers.on_result = [this](program::GoalStatus status, const Fibonacci::Result& result) {
        if (status == program::GoalStatus::kSucceeded) context_.figure("counted", result.sequence.back());
        ask();
      };
      if (!count_->send(goal, std::move(handlers))) context_.fail("the goal was not sent");
    } else {
      ask();
    }
  }

  void ask() {
    SetBool::Request request;
    request.data = true;
    const auto on_reply = [this](const SetBool::Response& response, const program::Replied& how) {
      context_.figure("answered", response.success && response.message == "late" ? 1.0 : 0.0);
      context_.figure("answered_after", static_cast<double>(how.callback_ns - how.requested_ns) / 1e9);
      context_.end();
    };
    if (!ask_ || !ask_->call(request, on_reply)) context_.end();
  }

  program::Context& context_;
  program::Times& there_and_back_;
  Nanoseconds period_ns_ = 0;
  std::int64_t turns_ = 0;
  std::string does_, text_;
  program::Publisher<String> ping_;
  std::optional<program::Client<SetBool>> ask_;
  std::optional<program::ActionClient<Fibonacci>> count_;
  std::atomic<int> feedback_{0};
  std::int64_t said_ = 0, back_ = 0;
  std::mutex mutex_;
  std::vector<std::function<void()>> waiting_;
};

}  // namespace

int main(int argc, char** argv) {
  return perflab::program::run("perflab-probe", argc, argv,
                               [](perflab::program::Context& context) { return std::make_unique<Probe>(context); });
}
