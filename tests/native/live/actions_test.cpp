// Actions in virtual time: acceptance, feedback, results and cancellation take exactly the programmed times
// of links and server, and every goal is accounted for.
#include "virtual_lab.h"

namespace perflab::graph {
namespace {

std::string graph_of(const std::string& server, const std::string& clients) {
  return "name: actions\nprocesses:\n  - name: a\n    nodes:\n      - name: controller\n        action_servers: "
         "[{action: move, type: stamped, duration: 50ms, step: 10ms" +
         server + "}]\n  - name: b\n    nodes:\n" + clients;
}
const std::string kPlanner = "      - {name: planner, action_clients: [{action: move, type: stamped, period: 100ms}]}\n";
const std::string kOperator =
    "      - {name: operator, action_clients: [{action: move, type: stamped, period: 100ms, cancel_after: 25ms}]}\n";

ServiceView part(const VirtualLab& lab, const std::string& client, const std::string& what) {
  for (ServiceView& view : lab.live().services()) {
    if (view.client_node->name == client && view.client->service == "/move/_action/" + what) return view;
  }
  throw std::out_of_range("no " + what + " of " + client);
}
void expect_times(const ServiceView& view, std::uint64_t count, Nanoseconds round_trip_ns) {
  EXPECT_EQ(view.requests->sent(), count) << view.client->service;
  EXPECT_EQ(view.replies->sequence().received(), count) << view.client->service;
  EXPECT_EQ(view.replies->latency().min(), round_trip_ns) << view.client->service;
  EXPECT_EQ(view.replies->latency().max(), round_trip_ns) << view.client->service;
  EXPECT_EQ(view.replies->too_late(), 0u);
}
using Answers = std::map<std::string, std::uint64_t>;

TEST(Actions, TakeWhatTheirLinksStepsAndDurationsTake) {
  const VirtualLab lab(graph_of("", kPlanner + kOperator), kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  // A goal is accepted after one link, and ends at the sixth step, the first at least 50 ms later.
  expect_times(part(lab, "planner", "send_goal"), 10, 2 * kMs);
  expect_times(part(lab, "planner", "get_result"), 10, 61 * kMs);
  EXPECT_EQ(part(lab, "planner", "send_goal").answers, (Answers{{"accepted", 10}}));
  EXPECT_EQ(part(lab, "planner", "get_result").answers, (Answers{{"succeeded", 10}}));
  // Cancelled after 25 ms, which the server handles at the third step.
  expect_times(part(lab, "operator", "cancel_goal"), 10, 2 * kMs);
  expect_times(part(lab, "operator", "get_result"), 10, 31 * kMs);
  EXPECT_EQ(part(lab, "operator", "get_result").answers, (Answers{{"canceled", 10}}));
  // Each client only gets feedback for its own goals.
  for (const EdgeView& view : lab.live().edges()) {
    const bool planner = view.subscription_node->name == "planner";
    EXPECT_EQ(view.publisher->topic, "/move/_action/feedback");
    EXPECT_EQ(view.subscription->filter, planner ? "goals of /planner" : "goals of /operator");
    EXPECT_EQ(view.recorder->sequence().received(), planner ? 60u : 20u);
    EXPECT_EQ(view.recorder->sequence().gap(), 0u);
    EXPECT_EQ(view.recorder->latency().min(), kMs);
    EXPECT_EQ(view.recorder->latency().max(), kMs);
  }
  const PublisherView feedback = lab.live().publishers().at(0);
  EXPECT_EQ(feedback.recorder->sent(), 80u);
  ASSERT_EQ(feedback.wanted.size(), 2u);
  EXPECT_EQ(feedback.wanted[0].count + feedback.wanted[1].count, 80u);
  const Totals totals = lab.live().totals();
  EXPECT_EQ(totals.sent, 20u + 20u + 10u + 80u);
  EXPECT_EQ(totals.deliveries_expected, totals.sent);
  EXPECT_EQ(totals.received, totals.sent);
  EXPECT_EQ(totals.completed, totals.sent);
  EXPECT_EQ(totals.lost, 0u);
}

TEST(Actions, OfWhichSomeAreRejectedAskForNoResultOfThose) {
  const VirtualLab lab(graph_of(", reject_every: 5, feedback: false", kPlanner), kNanosecondsPerSecond,
                       {{"disturb.delay", "1ms"}}, kNanosecondsPerSecond);
  EXPECT_EQ(part(lab, "planner", "send_goal").answers, (Answers{{"accepted", 8}, {"rejected", 2}}));
  EXPECT_EQ(part(lab, "planner", "send_goal").requests->warmup_sent(), 10u);
  expect_times(part(lab, "planner", "get_result"), 8, 61 * kMs);
  EXPECT_TRUE(lab.live().edges().empty());
  EXPECT_TRUE(lab.live().publishers().empty());
}

// Lost messages are attributed to the right part of the action.
TEST(Actions, OfWhichMessagesAreLostAreAccountedFor) {
  const VirtualLab lab(graph_of("", kPlanner), 20 * kNanosecondsPerSecond,
                       {{"disturb.delay", "1ms"}, {"disturb.loss", "0.1"}, {"disturb.seed", "3"}});
  const ServiceView goals = part(lab, "planner", "send_goal");
  const ServiceView results = part(lab, "planner", "get_result");
  EXPECT_EQ(goals.requests->sent(), 200u);
  EXPECT_NEAR(static_cast<double>(goals.replies->sequence().received()), 162.0, 20.0);  // two links
  EXPECT_EQ(results.requests->sent(), goals.answers.at("accepted"));
  for (const ServiceView& view : {goals, results}) {
    const auto& sequence = view.replies->sequence();
    EXPECT_EQ(sequence.received() + sequence.gap() + sequence.lowest(), sequence.highest() + 1);
    EXPECT_LE(sequence.highest(), view.requests->sent());
  }
  const EdgeView feedback = lab.live().edges().at(0);
  const std::uint64_t sent = lab.live().publishers().at(0).wanted.at(0).count;
  EXPECT_NEAR(static_cast<double>(feedback.recorder->sequence().received()), 0.9 * static_cast<double>(sent), 50.0);
  EXPECT_LE(feedback.recorder->sequence().highest(), sent);
}

}  // namespace
}  // namespace perflab::graph
