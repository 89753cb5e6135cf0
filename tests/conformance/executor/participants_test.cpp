// Endpoints of several participants of one process, on one executor.
#include "../middleware/fixture.h"
#include "fixture.h"

namespace perflab::runtime::conformance {
namespace {

using perflab::conformance::range;

constexpr std::size_t kParticipants = 3;

class SeveralParticipants : public Lab, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    if (plugin_.name() == "double") GTEST_SKIP() << "the double joins endpoints of one participant only";
    open({.intra_process = GetParam().intra_process, .participants = kParticipants});
  }
  EndpointSettings of(std::size_t participant, const std::string& topic) const {
    EndpointSettings settings = endpoint(topic, keep_last(100));
    settings.participant = participant;
    return settings;
  }
};

// Every node, one per participant, publishes a topic that all of them subscribe.
TEST_P(SeveralParticipants, EveryMessageReachesEveryNode) {
  const std::size_t on = executor(GetParam().kind);
  std::vector<Inbox*> inboxes;
  std::vector<Publisher*> publishers;
  for (std::size_t p = 0; p < kParticipants; ++p) {
    const std::string topic = "/topic" + std::to_string(p);
    publishers.push_back(&runtime().create_publisher(of(p, topic)));
    for (std::size_t to = 0; to < kParticipants; ++to) {
      inboxes.push_back(&inboxes_.emplace_back());
      subscriptions_.push_back(&runtime().create_subscription(on, of(to, topic), *inboxes.back()));
    }
  }
  ASSERT_TRUE(all_matched(1));
  for (Publisher* const publisher : publishers) {
    ASSERT_TRUE(eventually([&] { return publisher->matched() == kParticipants; }));
    const Passing passing = publisher->passing();
    EXPECT_EQ(passing.intra_process, GetParam().intra_process ? kParticipants : 0u);
    EXPECT_EQ(passing.middleware, GetParam().intra_process ? 0u : kParticipants);
  }
  runtime().start(clock_.now());
  for (std::uint64_t number = 0; number < 50; ++number) {
    for (Publisher* const publisher : publishers) ASSERT_TRUE(send(*publisher, number));
  }
  for (const Inbox* const inbox : inboxes) EXPECT_TRUE(eventually([&] { return inbox->count() == 50; }));
  runtime().stop();
  for (const Inbox* const inbox : inboxes) EXPECT_EQ(inbox->numbers(), range(0, 50));
}

TEST_P(SeveralParticipants, RequestsAndRepliesCrossThem) {
  class Echo final : public RequestHandler {
   public:
    void on_request(const Delivery& request, Reply& reply) noexcept override {
      EXPECT_TRUE(
          reply.send(request.bytes.first(message::kFrameBytes), request.bytes.subspan(message::kFrameBytes)));
    }
  } echo;
  const std::size_t on = executor(GetParam().kind);
  ServiceSettings settings;
  settings.service = "/echo";
  settings.ros_type = "perflab_msgs/srv/Conformance";
  settings.qos = keep_last(100);
  settings.participant = 0;
  Server& server = runtime().create_server(on, settings, echo);
  std::vector<Client*> clients;
  for (std::size_t p = 1; p < kParticipants; ++p) {
    settings.participant = p;
    clients.push_back(&runtime().create_client(on, settings, inboxes_.emplace_back()));
  }
  ASSERT_TRUE(eventually([&] {
    return server.matched() == clients.size() &&
           std::ranges::all_of(clients, [](Client* client) { return client->matched() == 1; });
  }));
  runtime().start(clock_.now());
  for (std::uint64_t number = 0; number < 20; ++number) {
    const auto bytes = make_message(number, kMessageBytes);
    const std::span<const std::uint8_t> whole(bytes);
    for (Client* const client : clients) {
      ASSERT_TRUE(client->request(whole.first(message::kFrameBytes), whole.subspan(message::kFrameBytes)));
    }
  }
  for (const Inbox& inbox : inboxes_) EXPECT_TRUE(eventually([&] { return inbox.count() == 20; }));
  runtime().stop();
  for (const Inbox& inbox : inboxes_) EXPECT_EQ(inbox.numbers(), range(0, 20));
}

TEST_P(SeveralParticipants, DescriptionTellsOfEach) {
  const std::string description = runtime().describe();
  EXPECT_EQ(description.front(), '{');
  EXPECT_NE(description.find("\"participants\":["), std::string::npos) << description;
}

INSTANTIATE_TEST_SUITE_P(On, SeveralParticipants, testing::ValuesIn(all_executors()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
