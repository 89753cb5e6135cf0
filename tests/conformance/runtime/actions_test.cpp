// Actions: every goal is answered, worked on and ends once, for the one who gave it, as rcl_action says.
#include "actions.h"

namespace perflab::runtime::conformance {
namespace {

using enum GoalStatus;

template <typename Base>
class WithActions : public Base {
 protected:
  // Handlers that a test made are gone before the runtime otherwise.
  void TearDown() override { this->close(); }

  static ActionSettings action(const Node& on, const std::string& name) {
    ActionSettings settings;
    settings.participant = on.participant;
    settings.group = on.group;
    settings.action = name;
    settings.types = &stamped_action();
    settings.qos.services = settings.qos.feedback = keep_last(1'000);
    settings.qos.status.reliability = usual_qos().reliability;
    if (!subject().abilities().durable) settings.qos.status.durability = PERFLAB_VOLATILE;
    return settings;
  }
  ActionServer& serve_action(const Node& on, const std::string& name, Works& works,
                             Nanoseconds result_timeout_ns = kResultTimeout) {
    ActionSettings settings = action(on, name);
    settings.result_timeout_ns = result_timeout_ns;
    return this->runtime().create_action_server(on.executor, settings, works);
  }
  ActionClient& action_client(const Node& on, const std::string& name, Heard& heard) {
    return this->runtime().create_action_client(on.executor, action(on, name), heard);
  }
  static bool give(ActionClient& client, std::uint64_t goal, std::uint8_t of = 1, bool ask_result = true) {
    return client.send_goal(goal_id(goal, of), goal_of(goal).data(), ask_result);
  }
  static bool succeed(ServerGoal& goal) { return goal.succeed(result_of(number_of(goal.id())).data()); }

  // One thing after the other, each once what it waits for is so; in callbacks of a timer.
  struct Step {
    std::function<bool()> when;
    std::function<void()> then;
  };
  void play(std::vector<Step> steps) {
    steps_ = std::move(steps);
    Ticks& ticks = this->timer(this->source(), 2ms, 1, this->real_time() ? 1'000'000 : 2'000, true);
    ticks.on_each = [this](Nanoseconds) {
      const std::size_t at = played_;
      if (at == steps_.size() || !steps_[at].when()) return;
      if (steps_[at].then) steps_[at].then();
      ++played_;
    };
    this->start();
    EXPECT_TRUE(eventually([this] { return played_ == steps_.size(); })) << "step " << played_;
    this->runtime().stop();
  }

 private:
  std::vector<Step> steps_;
  std::atomic<std::size_t> played_{0};
};

class Actions : public WithActions<AnyService> {};

// Two clients; the server works in another thread than it is asked in, and goals end in every way.
TEST_P(Actions, AreWorkedOnFromElsewhere) {
  constexpr std::uint64_t kGoals = 20;
  constexpr std::uint64_t kFeedback = 3;
  const auto rejected = [](std::uint64_t goal) { return goal % 5 == 4; };
  Works works;
  std::array<Heard, 2> heard;
  const Node serving = node();
  const Node asking = node();
  ActionServer& server = serve_action(serving, "/one/act", works);
  // One of them in the node that serves.
  std::array<ActionClient*, 2> clients{&action_client(serving, "/one/act", heard[0]),
                                       &action_client(asking, "/one/act", heard[1])};
  works.decide = [&](std::uint64_t goal) {
    if (rejected(goal)) return GoalResponse::kReject;
    return goal % 2 == 0 ? GoalResponse::kAcceptAndExecute : GoalResponse::kAcceptAndDefer;
  };
  timer(Lab::node(ExecutorKind::kSingleThreaded), 2ms, 1, real_time() ? 1'000'000 : 500, true).on_each = [&](Nanoseconds) {
    for (const auto& goal : works.all()) {
      if (is_terminal(goal->status())) continue;
      const std::uint64_t number = number_of(goal->id());
      EXPECT_EQ(goal->execute(), number % 2 == 1);
      for (std::uint64_t i = 0; i < kFeedback; ++i)
        EXPECT_TRUE(goal->publish_feedback(feedback_of(number * kFeedback + i).data()));
      EXPECT_TRUE(number % 3 == 0 ? goal->abort(result_of(number).data()) : goal->succeed(result_of(number).data()));
    }
  };
  at(10ms, [&] {
    for (std::uint64_t goal = 0; goal < kGoals; ++goal) {
      for (std::uint8_t c = 0; c < 2; ++c) EXPECT_TRUE(give(*clients[c], goal, c));
    }
  });
  EXPECT_TRUE(eventually([&] { return server.matched() == 2; })) << server.matched();
  for (ActionClient* const client : clients) EXPECT_TRUE(eventually([&] { return client->matched() == 1; }));
  start();
  const std::size_t taken = kGoals - kGoals / 5;
  for (const Heard& one : heard) {
    EXPECT_TRUE(eventually([&] { return one.ended() >= taken && one.answered() >= kGoals; })) << one.ended();
    EXPECT_TRUE(eventually([&] { return one.fed_back() >= taken * kFeedback; })) << one.fed_back();
  }
  runtime().stop();
  EXPECT_EQ(works.asked(), 2 * kGoals);
  EXPECT_EQ(works.accepted(), 2 * taken);
  EXPECT_TRUE(works.forgotten().empty());
  for (const Heard& one : heard) {
    EXPECT_EQ(one.ended(), taken);
    for (std::uint64_t goal = 0; goal < kGoals; ++goal) {
      EXPECT_EQ(one.answers()[goal], !rejected(goal));
      const std::vector<std::uint64_t> expected =
          rejected(goal) ? range(0, 0) : range(goal * kFeedback, (goal + 1) * kFeedback);
      EXPECT_EQ(one.feedback(goal), expected) << "goal " << goal;
    }
    for (const Heard::Result& result : one.results()) {
      EXPECT_EQ(result.number, result.goal);
      EXPECT_EQ(result.status, result.goal % 3 == 0 ? kAborted : kSucceeded) << "goal " << result.goal;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Actions, testing::ValuesIn(differing_service_cases()), service_case_name);

class ActionStates : public WithActions<Lab> {
 protected:
  void SetUp() override { open(); }
  // A server, and a client elsewhere.
  void make(Nanoseconds result_timeout_ns = kResultTimeout) {
    server_ = &serve_action(node(ExecutorKind::kSingleThreaded), "/act", works_, result_timeout_ns);
    client_ = &action_client(node(ExecutorKind::kSingleThreaded), "/act", heard_);
    ASSERT_TRUE(eventually([&] { return server_->matched() == 1 && client_->matched() == 1; }));
  }
  bool give(std::uint64_t goal, bool ask_result = true) { return WithActions::give(*client_, goal, 1, ask_result); }
  ServerGoal& goal(std::uint64_t number) { return *works_.goal(goal_id(number)); }
  auto answered(std::size_t count) {
    return [this, count] { return heard_.answered() == count && works_.accepted() >= count; };
  }
  auto ended(std::size_t count) {
    return [this, count] { return heard_.ended() == count; };
  }
  auto cancels(std::size_t count) {
    return [this, count] { return heard_.cancels() == count; };
  }
  static bool always() { return true; }

  Works works_;
  Heard heard_;
  ActionServer* server_ = nullptr;
  ActionClient* client_ = nullptr;
};

TEST_F(ActionStates, FollowOneAnother) {
  make();
  works_.decide = [](std::uint64_t) { return GoalResponse::kAcceptAndDefer; };
  const message::Object result = result_of(0);
  const message::Object feedback = feedback_of(0);
  play({{always, [&] { EXPECT_TRUE(give(0)); }},
        {answered(1),
         [&] {
           ServerGoal& one = goal(0);
           EXPECT_EQ(one.status(), kAccepted);
           for (const bool led : {one.succeed(result.data()), one.abort(result.data()), one.canceled(result.data())})
             EXPECT_FALSE(led);
           EXPECT_TRUE(one.execute());
           EXPECT_FALSE(one.execute());
           EXPECT_EQ(one.status(), kExecuting);
           EXPECT_FALSE(one.canceled(result.data()));
           EXPECT_TRUE(one.succeed(result.data()));
           EXPECT_EQ(one.status(), kSucceeded);
           for (const bool led : {one.succeed(result.data()), one.abort(result.data()), one.canceled(result.data()),
                                  one.execute(), one.publish_feedback(feedback.data())})
             EXPECT_FALSE(led);
         }},
        {[&] { return heard_.ended() == 1 && !heard_.states(0).empty() && heard_.states(0).back() == kSucceeded; }, nullptr}});
  EXPECT_EQ(heard_.results(), (std::vector<Heard::Result>{{0, kSucceeded, 0}}));
  EXPECT_TRUE(std::ranges::is_sorted(heard_.states(0)));
}

TEST_F(ActionStates, AreLedToCanceledByWhoAsks) {
  make();
  works_.decide_cancel = [](ServerGoal& one) {
    return number_of(one.id()) == 3 ? CancelResponse::kReject : CancelResponse::kAccept;
  };
  const auto end_all = [&] {
    for (const auto& one : works_.all()) {
      const bool canceling = one->is_canceling();
      EXPECT_EQ(one->canceled(result_of(number_of(one->id())).data()), canceling);
    }
  };
  play({{always, [&] { EXPECT_TRUE(give(0)); }},
        {answered(1), [&] { EXPECT_TRUE(client_->cancel_goal(goal_id(0))); }},
        {cancels(1),
         [&] {
           EXPECT_TRUE(goal(0).is_canceling());
           end_all();
         }},
        {ended(1), [&] { EXPECT_TRUE(client_->cancel_goal(goal_id(0))); }},  // terminated
        {cancels(2), [&] { EXPECT_TRUE(client_->cancel_goal(goal_id(77))); }},  // unknown
        {cancels(3), [&] { EXPECT_TRUE(give(1)); }},
        {[&] { return answered(2)() && heard_.stamp(1) != 0; }, [&] { EXPECT_TRUE(give(2)); }},
        {answered(3), [&] { EXPECT_TRUE(client_->cancel({{}, heard_.stamp(1)})); }},  // those accepted no later than 1
        {cancels(4), end_all},
        {ended(2), [&] { EXPECT_TRUE(give(3)); }},
        {answered(4), [&] { EXPECT_TRUE(client_->cancel_goal(goal_id(3))); }},  // the server says no
        {cancels(5), [&] { EXPECT_TRUE(client_->cancel_all()); }},              // ... of that one
        {cancels(6),
         [&] {
           end_all();
           EXPECT_TRUE(succeed(goal(3)));
         }},
        {ended(4), nullptr}});
  EXPECT_EQ(heard_.cancelled(), (std::vector<Heard::Cancelled>{{CancelReturn::kNone, {0}},
                                                               {CancelReturn::kTerminated, {}},
                                                               {CancelReturn::kUnknownGoal, {}},
                                                               {CancelReturn::kNone, {1}},
                                                               {CancelReturn::kRejected, {}},
                                                               {CancelReturn::kNone, {2}}}));
  std::vector<Heard::Result> results = heard_.results();
  std::ranges::sort(results, {}, &Heard::Result::goal);
  EXPECT_EQ(results, (std::vector<Heard::Result>{
                         {0, kCanceled, 0}, {1, kCanceled, 1}, {2, kCanceled, 2}, {3, kSucceeded, 3}}));
}

TEST_F(ActionStates, AreToldToWhoAsksBeforeTheEndAndAfterIt) {
  make();
  play({{always, [&] { EXPECT_TRUE(client_->request_result(goal_id(9))); }},  // of nobody
        {ended(1), [&] { EXPECT_TRUE(give(0, false)); }},
        {answered(1),
         [&] {
           EXPECT_TRUE(client_->request_result(goal_id(0)));
           EXPECT_TRUE(client_->request_result(goal_id(0)));
           EXPECT_TRUE(give(1, false));
         }},
        {answered(2),
         [&] {
           EXPECT_EQ(heard_.ended(), 1u);
           EXPECT_TRUE(succeed(goal(0)));
         }},
        {ended(3), [&] { EXPECT_TRUE(client_->request_result(goal_id(0))); }},
        {ended(4), nullptr}});
  EXPECT_EQ(heard_.results(), (std::vector<Heard::Result>{
                                  {9, kUnknown, 0}, {0, kSucceeded, 0}, {0, kSucceeded, 0}, {0, kSucceeded, 0}}));
}

TEST_F(ActionStates, OfAnIdThatIsUsedTwiceStayThoseOfTheFirst) {
  make();
  std::vector<bool> accepted;
  heard_.on_answer = nullptr;
  Heard second;
  ActionClient& other = action_client(node(ExecutorKind::kSingleThreaded), "/act", second);
  ASSERT_TRUE(eventually([&] { return other.matched() == 1; }));
  play({{always, [&] { EXPECT_TRUE(give(5)); }},
        {answered(1), [&] { EXPECT_TRUE(WithActions::give(other, 5)); }},
        {[&] { return second.answered() == 1; }, [&] { EXPECT_TRUE(succeed(goal(5))); }},
        {ended(1), nullptr}});
  EXPECT_EQ(works_.asked(), 1u);
  EXPECT_EQ(heard_.answers(), (std::map<std::uint64_t, bool>{{5, true}}));
  EXPECT_EQ(second.answers(), (std::map<std::uint64_t, bool>{{5, false}}));
}

TEST_F(ActionStates, OfAForgottenGoalEndInCanceled) {
  make();
  play({{always, [&] { EXPECT_TRUE(give(7)); }},
        {answered(1), [&] { works_.drop(goal_id(7)); }},
        {ended(1), nullptr}});
  ASSERT_EQ(heard_.results().size(), 1u);
  EXPECT_EQ(heard_.results()[0].status, kCanceled);
  EXPECT_EQ(works_.forgotten(), (std::vector<std::uint64_t>{7}));
}

TEST_F(ActionStates, AreForgottenAfterTheirTime) {
  make(50'000'000);
  Nanoseconds end_ns = 0;
  play({{always, [&] { EXPECT_TRUE(give(0, false)); }},
        {answered(1),
         [&] {
           EXPECT_TRUE(succeed(goal(0)));
           end_ns = now();
         }},
        {[&] { return now() > end_ns + 100'000'000; }, [&] { EXPECT_TRUE(client_->request_result(goal_id(0))); }},
        {ended(1), nullptr}});
  EXPECT_EQ(heard_.results(), (std::vector<Heard::Result>{{0, kUnknown, 0}}));
}

// Many goals at a time, on which several threads work.
TEST_F(ActionStates, OfManyGoalsAreEachItsOwn) {
  constexpr std::uint64_t kGoals = 200;
  make();
  const auto work = [&](std::uint64_t of, std::uint64_t count) {
    for (std::uint64_t i = of; i < kGoals; i += count) {
      EXPECT_TRUE(goal(i).publish_feedback(feedback_of(i).data()));
      EXPECT_TRUE(succeed(goal(i)));
    }
  };
  std::vector<std::thread> threads;
  play({{always,
         [&] {
           for (std::uint64_t i = 0; i < kGoals; ++i) EXPECT_TRUE(give(i));
         }},
        {answered(kGoals),
         [&] {
           if (!real_time()) return work(0, 1);
           for (std::uint64_t t = 0; t < 3; ++t) threads.emplace_back(work, t, 3);
         }},
        {[&] { return heard_.ended() == kGoals && heard_.fed_back() == kGoals; }, nullptr}});
  for (std::thread& thread : threads) thread.join();
  for (std::uint64_t i = 0; i < kGoals; ++i) EXPECT_EQ(heard_.feedback(i), (std::vector<std::uint64_t>{i}));
  std::vector<Heard::Result> results = heard_.results();
  std::ranges::sort(results, {}, &Heard::Result::goal);
  for (std::uint64_t i = 0; i < kGoals; ++i) EXPECT_EQ(results.at(i), (Heard::Result{i, kSucceeded, i}));
}

// One client ends while its goal is worked on; the server works on, for it and for the other.
TEST_F(ActionStates, DoNotDependOnTheClient) {
  if (!real_time()) GTEST_SKIP() << "virtual time has one process, which ends as a whole";
  make();
  const measure::MonotonicClock clock;
  Sink sink;
  Heard gone;
  std::unique_ptr<Runtime> other = subject().open({}, domain(), clock, sink);
  const std::size_t executor = other->add_executor({.name = "other"});
  other->name_group(0, {.node_namespace = "/", .name = "other"});
  ActionClient& client = other->create_action_client(executor, action({executor, 0}, "/act"), gone);
  ASSERT_TRUE(eventually([&] { return client.matched() == 1 && server_->matched() == 2; }));
  start();
  other->start(clock.now());
  EXPECT_TRUE(WithActions::give(client, 1, 2));
  EXPECT_TRUE(eventually([&] { return gone.answered() == 1 && works_.accepted() == 1; }));
  other->stop();
  other.reset();
  EXPECT_TRUE(eventually([&] { return server_->matched() == 1; }));
  EXPECT_TRUE(give(2));
  EXPECT_TRUE(eventually(answered(1)));
  EXPECT_TRUE(eventually([&] { return works_.accepted() == 2; }));
  const auto orphan = works_.goal(goal_id(1, 2));
  ASSERT_NE(orphan, nullptr);
  EXPECT_TRUE(orphan->publish_feedback(feedback_of(1).data()));
  static_cast<void>(succeed(*orphan));  // a middleware may say that nobody is there any more
  EXPECT_EQ(orphan->status(), kSucceeded);
  EXPECT_TRUE(succeed(goal(2)));
  EXPECT_TRUE(eventually(ended(1)));
  runtime().stop();
  EXPECT_EQ(heard_.results(), (std::vector<Heard::Result>{{2, kSucceeded, 2}}));
  static_cast<void>(sink_.take_write_failures());
}

TEST(GoalIds, AreTheSameForASeedAndElseUnlikeOthers) {
  GoalIds one(5), two(5), other(6), any, another;
  const GoalId first = one.next();
  EXPECT_EQ(first, two.next());
  EXPECT_NE(first, one.next());
  EXPECT_NE(first, other.next());
  EXPECT_NE(any.next(), another.next());
  EXPECT_EQ(first[6] >> 4, 4);  // a UUID of version 4
  EXPECT_EQ(first[8] >> 6, 2);
}

}  // namespace
}  // namespace perflab::runtime::conformance
