// Services in virtual time: the round trip takes exactly the programmed times of links and server.
#include "virtual_lab.h"

namespace perflab::graph {
namespace {

constexpr const char* kCall = R"(
name: call
processes:
  - name: a
    nodes:
      - name: caller
        clients: [{service: add, type: stamped10b, period: 10ms}]
  - name: b
    nodes:
      - name: callee
        servers: [{service: add, type: stamped10b, work: 300us}]
)";

TEST(Services, TheRoundTripIsTwoLinksAndTheWorkOfTheServer) {
  const VirtualLab lab(kCall, 2 * kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  const std::vector<ServiceView> services = lab.live().services();
  ASSERT_EQ(services.size(), 1u);
  EXPECT_EQ(services[0].client_node->name, "caller");
  EXPECT_EQ(services[0].server_node->qualified_name(), "/callee");
  EXPECT_EQ(services[0].requests->sent(), 200u);
  EXPECT_EQ(services[0].replies->sequence().received(), 200u);
  EXPECT_EQ(services[0].replies->latency().min(), 2'300'000);
  EXPECT_EQ(services[0].replies->latency().max(), 2'300'000);
  EXPECT_EQ(services[0].replies->response().max(), 2'300'000);
  const Totals totals = lab.live().totals();
  EXPECT_EQ(totals.sent, 200u);
  EXPECT_EQ(totals.deliveries_expected, 200u);
  EXPECT_EQ(totals.completed, 200u);
}

TEST(Services, WarmUpRequestsAreCountedApart) {
  const VirtualLab lab(kCall, kNanosecondsPerSecond, {{"disturb.delay", "1ms"}}, kNanosecondsPerSecond);
  const ServiceView service = lab.live().services().at(0);
  EXPECT_EQ(service.requests->sent(), 100u);
  EXPECT_EQ(service.requests->warmup_sent(), 100u);
  EXPECT_EQ(service.replies->sequence().received(), 100u);
  EXPECT_EQ(service.replies->sequence().gap(), 0u);
}

TEST(Services, EachClientGetsTheRepliesToItsOwnRequestsOnly) {
  const VirtualLab lab(R"(
name: calls
nodes:
  - name: one
    clients: [{service: add, type: stamped10b, period: 10ms}, {service: other, type: stamped100b, period: 50ms}]
  - name: two
    clients: [{service: add, type: stamped10b, period: 20ms}]
  - name: callee
    servers: [{service: add, type: stamped10b}, {service: other, type: stamped100b}]
)",
                       kNanosecondsPerSecond, {{"disturb.delay", "100us"}});
  for (const ServiceView& service : lab.live().services()) {
    const bool one = service.client_node->name == "one";
    const std::uint64_t expected = service.client->service == "/other" ? 20 : one ? 100 : 50;
    EXPECT_EQ(service.requests->sent(), expected);
    EXPECT_EQ(service.replies->sequence().received(), expected);
    EXPECT_EQ(service.replies->sequence().duplicate(), 0u);
  }
}

TEST(Services, ALostRequestOrReplyIsALostRoundTrip) {
  const VirtualLab lab(kCall, 10 * kNanosecondsPerSecond, {{"disturb.delay", "1ms"}, {"disturb.loss", "0.1"}, {"disturb.seed", "3"}});
  const ServiceView service = lab.live().services().at(0);
  const auto& replies = service.replies->sequence();
  EXPECT_EQ(service.requests->sent(), 1'000u);
  // Two links that each lose a tenth.
  EXPECT_NEAR(static_cast<double>(replies.received()), 810.0, 50.0);
  EXPECT_LE(replies.received() + replies.gap(), 1'000u);
  EXPECT_GE(replies.received() + replies.gap(), 990u);
}

}  // namespace
}  // namespace perflab::graph
