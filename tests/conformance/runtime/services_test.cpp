// Services: every request is answered once, to the one who asked, in each framing.
#include "lab.h"

namespace perflab::runtime::conformance {
namespace {

class Services : public AnyService {};

TEST_P(Services, AnswerEveryRequestToTheOneWhoAsked) {
  constexpr std::uint64_t kClients = 4;
  constexpr std::uint64_t kRequests = 50;
  EXPECT_EQ(runtime().service_framing(), GetParam().framing);
  const ServiceKind kind = service_kind("stamped10b");
  const Node serving = node();
  const Node asking = node();
  Server* server = nullptr;
  Echo& echo = serve(serving, "/add", kind, &server);
  std::vector<Inbox*> replies;
  std::vector<Client*> clients;
  for (std::uint64_t c = 0; c < kClients; ++c) {
    // One of them in the node that serves.
    const Node& on = c == 0 ? serving : c == 1 ? asking : node_on(asking.executor);
    replies.push_back(&inbox(kind.reply));
    clients.push_back(&client(on, "/add", kind, *replies.back()));
    Client& asker = *clients.back();
    timer(Lab::node(ExecutorKind::kSingleThreaded), 10ms, 1, 1).on_each = [&asker, kind, c](Nanoseconds) {
      for (std::uint64_t i = 0; i < kRequests; ++i) EXPECT_TRUE(request(asker, kind, c * kRequests + i));
    };
  }
  EXPECT_TRUE(eventually([&] { return server->matched() == kClients; })) << server->matched();
  for (Client* const one : clients) EXPECT_TRUE(eventually([&] { return one->matched() == 1; }));
  start();
  for (const Inbox* inbox : replies)
    EXPECT_TRUE(eventually([&] { return inbox->count() >= kRequests; })) << inbox->count();
  runtime().stop();
  EXPECT_EQ(echo.count(), kClients * kRequests);
  for (std::uint64_t c = 0; c < kClients; ++c) {
    EXPECT_EQ(replies[c]->numbers(), range(c * kRequests, (c + 1) * kRequests));
    EXPECT_TRUE(replies[c]->all_intact());
    for (const Received& reply : replies[c]->messages()) EXPECT_GT(reply.related.sequence, 0);
  }
}

// Requests are sent by timers and by callbacks of messages, and the server works on them.
TEST_P(Services, WorkWhileTheyAreAsked) {
  constexpr Nanoseconds kWork = 1'000'000;
  constexpr std::uint64_t kRequests = 10;
  const ServiceKind kind = service_kind("stamped1kb");
  const Node serving = node();
  const Node asking = node();
  Echo& echo = serve(serving, "/one/two/add", kind);
  echo.on_each = [&] { runtime().work(kWork); };
  Inbox& replies = inbox(kind.reply);
  Client& asker = client(asking, "/one/two/add", kind, replies);
  std::array<Nanoseconds, 2 * kRequests> asked{};
  const auto ask = [&](std::uint64_t number) {
    asked[number] = now();
    EXPECT_TRUE(request(asker, kind, number));
  };
  Inbox& orders = subscribe(asking, "/orders", kSmall);
  orders.on_each = [&](const Received& order) { ask(order.number); };
  Publisher& writer = publisher("/orders", kSmall);
  at(10ms, [&] {
    for (std::uint64_t i = 0; i < kRequests; ++i) EXPECT_TRUE(send(writer, kSmall, i));
  });
  ASSERT_TRUE(matched());
  ASSERT_TRUE(eventually([&] { return asker.matched() == 1; }));
  start();
  EXPECT_TRUE(eventually([&] { return replies.count() >= kRequests; })) << replies.count();
  runtime().stop();
  EXPECT_EQ(replies.numbers(), range(0, kRequests));
  EXPECT_TRUE(replies.all_intact());
  for (const Received& reply : replies.messages()) {
    EXPECT_GE(reply.begin_ns - asked[reply.number], kWork) << "request " << reply.number;
  }
}

TEST_P(Services, OfEveryTypeAreAskedAndAnsweredInFull) {
  constexpr std::uint64_t kRequests = 10;
  std::vector<ServiceKind> kinds{service_kind("stamped9_float32"), service_kind("stamped10kb")};
  if (abilities().types_of_users) {
    for (const std::uint32_t length : {1u, 3u, 1'003u})
      kinds.push_back(service_kind("conformance_msgs/srv/Ask", length));
    kinds.push_back(service_kind("conformance_msgs/srv/Mixed"));
  }
  const Node serving = node();
  const Node asking = node();
  std::vector<Inbox*> replies;
  std::vector<Echo*> echoes;
  std::vector<Client*> clients;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string name = "/service_" + std::to_string(i);
    echoes.push_back(&serve(serving, name, kinds[i]));
    replies.push_back(&inbox(kinds[i].reply));
    clients.push_back(&client(asking, name, kinds[i], *replies.back()));
  }
  at(10ms, [&] {
    for (std::uint64_t n = 0; n < kRequests; ++n) {
      for (std::size_t i = 0; i < kinds.size(); ++i) EXPECT_TRUE(request(*clients[i], kinds[i], n));
    }
  });
  for (Client* const one : clients) ASSERT_TRUE(eventually([&] { return one->matched() == 1; }));
  start();
  for (const Inbox* inbox : replies)
    EXPECT_TRUE(eventually([&] { return inbox->count() >= kRequests; })) << inbox->count();
  runtime().stop();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    SCOPED_TRACE(kinds[i].ros_type);
    EXPECT_EQ(echoes[i]->count(), kRequests);  // which compare the requests
    EXPECT_EQ(replies[i]->numbers(), range(0, kRequests));
    EXPECT_TRUE(replies[i]->all_intact());
  }
}

// Keeps every request, to be answered from elsewhere.
class Keeper final : public RequestHandler, public Forgotten {
 public:
  explicit Keeper(const ServiceKind& kind) : kind_(kind) {}

  void on_request(const Delivery& delivery, Reply& reply) noexcept override {
    const std::uint64_t number = read(delivery, kind_.request).number;
    std::unique_ptr<LateReply> kept = reply.later(*this);
    ASSERT_NE(kept, nullptr);
    EXPECT_FALSE(reply.send(Parts(kind_.reply, number).outgoing())) << "it is empty";
    EXPECT_EQ(reply.later(*this), nullptr);
    const std::lock_guard lock(mutex_);
    kept_.emplace_back(number, std::move(kept));
  }
  void on_forgotten(Nanoseconds) noexcept override { ++forgotten_; }

  [[nodiscard]] std::size_t count() const {
    const std::lock_guard lock(mutex_);
    return kept_.size();
  }
  // The last first; every fourth one is forgotten.
  void answer_all() {
    std::vector<std::pair<std::uint64_t, std::unique_ptr<LateReply>>> kept;
    {
      const std::lock_guard lock(mutex_);
      kept.swap(kept_);
    }
    for (auto one = kept.rbegin(); one != kept.rend(); ++one) {
      if (one->first % 4 == 3) continue;
      const Parts answer(kind_.reply, one->first);
      EXPECT_TRUE(one->second->send(answer.outgoing()));
      EXPECT_FALSE(one->second->send(answer.outgoing())) << "answered twice";
    }
  }
  [[nodiscard]] std::size_t forgotten() const { return forgotten_; }

 private:
  const ServiceKind kind_;
  mutable std::mutex mutex_;
  std::vector<std::pair<std::uint64_t, std::unique_ptr<LateReply>>> kept_;
  std::atomic<std::size_t> forgotten_{0};
};

class LateReplies : public AnyService {};

TEST_P(LateReplies, GoToTheOneWhoAskedInAnyOrder) {
  constexpr std::uint64_t kRequests = 20;
  const ServiceKind kind = service_kind("stamped1kb");
  Keeper keeper(kind);
  const Node serving = node();
  runtime().create_server(serving.executor, service(serving, "/late", kind), keeper);
  Inbox& replies = inbox(kind.reply);
  Client& asker = client(node(), "/late", kind, replies);
  at(10ms, [&] {
    for (std::uint64_t i = 0; i < kRequests; ++i) EXPECT_TRUE(request(asker, kind, i));
  });
  timer(Lab::node(ExecutorKind::kSingleThreaded), 2ms, 1, real_time() ? 1'000'000 : 500, true).on_each = [&](Nanoseconds) {
    if (keeper.count() == kRequests) keeper.answer_all();
  };
  ASSERT_TRUE(eventually([&] { return asker.matched() == 1; }));
  start();
  EXPECT_TRUE(eventually([&] { return replies.count() >= kRequests - kRequests / 4; })) << replies.count();
  EXPECT_TRUE(eventually([&] { return keeper.forgotten() == kRequests / 4; })) << keeper.forgotten();
  runtime().stop();
  std::vector<std::uint64_t> numbers = replies.numbers();
  std::vector<std::uint64_t> expected = range(0, kRequests);
  std::erase_if(expected, [](std::uint64_t number) { return number % 4 == 3; });
  std::ranges::reverse(expected);
  EXPECT_EQ(numbers, expected);
  EXPECT_TRUE(replies.all_intact());
  close();  // before the keeper
}

INSTANTIATE_TEST_SUITE_P(, Services, testing::ValuesIn(service_cases()), service_case_name);
INSTANTIATE_TEST_SUITE_P(, LateReplies, testing::ValuesIn(differing_service_cases()), service_case_name);

class ServiceDefaults : public Lab {};

TEST_F(ServiceDefaults, FramingIsOneOfThoseThatCanBeAskedFor) {
  open();
  EXPECT_EQ(std::ranges::count(abilities().framings, runtime().service_framing()), 1);
}

}  // namespace
}  // namespace perflab::runtime::conformance
