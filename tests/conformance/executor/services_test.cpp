// Services: what is not framed as theirs, and which framing there is.

#include "fixture.h"
#include "runtime/service.h"

namespace perflab::runtime::conformance {
namespace {

struct ServiceCase {
  ExecutorKind kind;
  const char* name;
  bool intra_process;
  ServiceFraming framing;
};

std::vector<ServiceCase> service_cases() {
  std::vector<ServiceCase> cases;
  for (const Case& one : all_executors()) {
    for (const ServiceFraming framing : {ServiceFraming::kRmwCyclonedds, ServiceFraming::kRmwFastrtps}) {
      cases.push_back({one.kind, one.name, one.intra_process, framing});
    }
  }
  return cases;
}

// Answers with what it got.
class Echo final : public RequestHandler {
 public:
  void on_request(const Delivery& request, Reply& reply) noexcept override {
    const Alone alone(running_);
    EXPECT_TRUE(intact(request.bytes, kMessageBytes)) << request.bytes.size();
    // Without the padding that the message may have got on its way.
    const auto bytes = request.bytes.first(std::min(request.bytes.size(), kMessageBytes));
    EXPECT_TRUE(reply.send(bytes.first(message::kFrameBytes), bytes.subspan(message::kFrameBytes)));
    count_.fetch_add(1);
  }
  std::size_t count() const { return count_; }

 private:
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> running_{false};
};

bool request(Client& client, std::uint64_t number) {
  const auto bytes = make_message(number, kMessageBytes);
  const std::span<const std::uint8_t> whole(bytes);
  return client.request(whole.first(message::kFrameBytes), whole.subspan(message::kFrameBytes));
}

class Services : public Lab, public testing::WithParamInterface<ServiceCase> {
 protected:
  // False, after a look at the error, where the plug-in cannot do it.
  bool open_with_framing() {
    const ServiceFraming framing = GetParam().framing;
    const DdsSettings settings{.intra_process = GetParam().intra_process, .service_framing = framing};
    if (framing == ServiceFraming::kRmwCyclonedds || plugin_.capabilities().related_samples) {
      open(settings);
      return true;
    }
    try {
      open(settings);
      ADD_FAILURE() << "related samples where there are none";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kUnsupported);
      EXPECT_NE(std::string(error.what()).find("--service-framing rmw_cyclonedds"), std::string::npos)
          << error.what();
    }
    return false;
  }
  static ServiceSettings service(int depth) {
    ServiceSettings settings;
    settings.service = "/add";
    settings.ros_type = "perflab_msgs/srv/Conformance";
    settings.qos = keep_last(depth);
    return settings;
  }
};

// What is not framed as ours is no request, nor a reply to one.
TEST_P(Services, IgnoreWhatIsNotTheirs) {
  if (!open_with_framing()) return;
  const std::size_t on = executor(GetParam().kind);
  Echo echo;
  Inbox& inbox = inboxes_.emplace_back();
  runtime().create_server(on, service(10), echo);
  Client& client = runtime().create_client(on, service(10), inbox);
  EndpointSettings foreign = endpoint("/add", keep_last(10));
  foreign.kind = TopicKind::kReply;
  foreign.ros_type = "perflab_msgs/srv/Conformance_Response";
  foreign.fixed_size = 0;
  Publisher& stranger = runtime().create_publisher(foreign);
  ASSERT_TRUE(eventually([&] { return client.matched() == 1 && stranger.matched() == 1; }));
  runtime().start(clock_.now());
  ASSERT_TRUE(send(stranger, 99));
  const std::array<std::uint8_t, 4> tiny{0, 1, 0, 0};
  const perflab_bytes part{tiny.data(), tiny.size()};
  ASSERT_TRUE(stranger.publish_related({&part, 1}, nullptr, nullptr));
  ASSERT_TRUE(request(client, 5));
  EXPECT_TRUE(eventually([&] { return inbox.count() >= 1; }));
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), std::vector<std::uint64_t>{5});
}

INSTANTIATE_TEST_SUITE_P(, Services, testing::ValuesIn(service_cases()), [](const auto& info) {
  return std::string(info.param.name) + (info.param.intra_process ? "_intra_process" : "") +
         (info.param.framing == ServiceFraming::kRmwFastrtps ? "_rmw_fastrtps" : "_rmw_cyclonedds");
});

class ServiceDefaults : public Lab {};

TEST_F(ServiceDefaults, FramingIsThatOfTheRmwOfThePlugin) {
  EXPECT_EQ(open({}).service_framing(), plugin_.capabilities().related_samples
                                            ? ServiceFraming::kRmwFastrtps
                                            : ServiceFraming::kRmwCyclonedds);
}

}  // namespace
}  // namespace perflab::runtime::conformance
