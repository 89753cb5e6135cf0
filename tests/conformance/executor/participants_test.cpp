// Endpoints of several participants of one process, on one executor.
#include "../runtime/lab.h"

namespace perflab::runtime::conformance {
namespace {

constexpr std::size_t kParticipants = 3;

class SeveralParticipants : public AnyExecutor {
 protected:
  void SetUp() override { open({.intra_process = intra_process(), .participants = kParticipants}); }
  // One node per participant.
  std::array<Node, kParticipants> nodes() {
    const std::size_t on = executor(GetParam().kind);
    return {node_on(on, 0), node_on(on, 1), node_on(on, 2)};
  }
};

// Every node publishes a topic that all of them subscribe.
TEST_P(SeveralParticipants, EveryMessageReachesEveryNode) {
  const std::array<Node, kParticipants> nodes = this->nodes();
  std::vector<Inbox*> inboxes;
  std::vector<Publisher*> publishers;
  for (const Node& from : nodes) {
    const std::string topic = "/topic" + std::to_string(from.participant);
    publishers.push_back(&publisher_of(from, topic, kSmall));
    for (const Node& to : nodes) inboxes.push_back(&subscribe(to, topic, kSmall));
  }
  ASSERT_TRUE(matched());
  for (Publisher* const publisher : publishers) {
    ASSERT_TRUE(eventually([&] { return publisher->matched() == kParticipants; }));
    const Passing passing = publisher->passing();
    EXPECT_EQ(passing.intra_process, intra_process() ? kParticipants : 0u);
    EXPECT_EQ(passing.middleware, intra_process() ? 0u : kParticipants);
  }
  start();
  for (std::uint64_t number = 0; number < 50; ++number) {
    for (Publisher* const publisher : publishers) ASSERT_TRUE(send(*publisher, kSmall, number));
  }
  for (const Inbox* const inbox : inboxes) EXPECT_TRUE(eventually([&] { return inbox->count() == 50; }));
  runtime().stop();
  for (const Inbox* const inbox : inboxes) EXPECT_EQ(inbox->numbers(), range(0, 50));
}

TEST_P(SeveralParticipants, RequestsAndRepliesCrossThem) {
  const ServiceKind kind = service_kind("stamped10b");
  const std::array<Node, kParticipants> nodes = this->nodes();
  Server* server = nullptr;
  serve(nodes[0], "/echo", kind, &server);
  std::vector<Inbox*> replies;
  std::vector<Client*> clients;
  for (const Node& asking : {nodes[1], nodes[2]}) {
    replies.push_back(&inbox(kind.reply));
    clients.push_back(&client(asking, "/echo", kind, *replies.back()));
  }
  ASSERT_TRUE(eventually([&] {
    return server->matched() == clients.size() &&
           std::ranges::all_of(clients, [](Client* client) { return client->matched() == 1; });
  }));
  start();
  for (std::uint64_t number = 0; number < 20; ++number) {
    for (Client* const client : clients) ASSERT_TRUE(request(*client, kind, number));
  }
  for (const Inbox* inbox : replies) EXPECT_TRUE(eventually([&] { return inbox->count() == 20; }));
  runtime().stop();
  for (const Inbox* inbox : replies) EXPECT_EQ(inbox->numbers(), range(0, 20));
}

INSTANTIATE_TEST_SUITE_P(On, SeveralParticipants, testing::ValuesIn(all_executors()), case_name);

class SeveralParticipantsDescription : public Lab {};

TEST_F(SeveralParticipantsDescription, TellsOfEach) {
  const std::string description = open({.participants = kParticipants}).describe();
  EXPECT_EQ(description.front(), '{');
  EXPECT_NE(description.find("\"participants\":["), std::string::npos) << description;
}

}  // namespace
}  // namespace perflab::runtime::conformance
