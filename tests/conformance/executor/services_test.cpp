// Services: what is not framed as theirs, and which framing there is.
#include "../runtime/dds.h"
#include "../runtime/lab.h"

namespace perflab::runtime::conformance {
namespace {

class Services : public AnyService {};

// What is not framed as ours is no request, nor a reply to one.
TEST_P(Services, IgnoreWhatIsNotTheirs) {
  const ServiceKind kind = service_kind("stamped100b");
  const Node on = node();
  Inbox& replies = inbox(kind.reply);
  serve(on, "/add", kind);
  Client& asking = client(on, "/add", kind, replies);
  EndpointSettings foreign = endpoint(on, "/add", kind.reply, keep_last(10));
  foreign.kind = TopicKind::kReply;
  foreign.fixed_size = 0;
  Publisher& stranger = runtime().create_publisher(foreign);
  ASSERT_TRUE(eventually([&] { return asking.matched() == 1 && stranger.matched() == 1; }));
  start();
  ASSERT_TRUE(send(stranger, kind.reply, 99));
  const std::array<std::uint8_t, 4> tiny{0, 1, 0, 0};
  const perflab_bytes part{tiny.data(), tiny.size()};
  ASSERT_TRUE(stranger.publish_related({&part, 1}, nullptr, nullptr));
  ASSERT_TRUE(request(asking, kind, 5));
  EXPECT_TRUE(eventually([&] { return replies.count() >= 1; }));
  runtime().stop();
  EXPECT_EQ(replies.numbers(), range(5, 6));
}

INSTANTIATE_TEST_SUITE_P(, Services, testing::ValuesIn(service_cases()), service_case_name);

class ServiceDefaults : public Lab {};

TEST_F(ServiceDefaults, FramingIsThatOfTheRmwOfThePlugin) {
  EXPECT_EQ(open().service_framing(), dds().capabilities().related_samples ? ServiceFraming::kRmwFastrtps
                                                                           : ServiceFraming::kRmwCyclonedds);
}

}  // namespace
}  // namespace perflab::runtime::conformance
