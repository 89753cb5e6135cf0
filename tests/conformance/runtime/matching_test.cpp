// Endpoints: who meets whom, and what the counts say.
#include <set>

#include "lab.h"

namespace perflab::runtime::conformance {
namespace {

class Matching : public Lab, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    if (lacks_delivery_within_the_process(GetParam())) GTEST_SKIP() << "refused, as it should be";
    open({.intra_process = GetParam()});
  }

  template <typename Endpoint>
  static testing::AssertionResult meets(Endpoint& endpoint, std::size_t peers) {
    if (eventually([&] { return endpoint.matched() == peers; })) return testing::AssertionSuccess();
    return testing::AssertionFailure() << endpoint.matched() << " instead of " << peers;
  }
};

TEST_P(Matching, PublishersAndSubscriptionsCountEachOtherAndStrangersToo) {
  const Node on = node(ExecutorKind::kSingleThreaded);
  const auto subscription = [&](const std::string& topic) -> Subscription& {
    return runtime().create_subscription(on.executor, endpoint(on, topic, kSmall, keep_last(10)),
                                         inbox(kSmall));
  };
  Publisher& first = publisher("/a", kSmall);
  EXPECT_EQ(first.matched(), 0u);
  Subscription& elsewhere = subscription("/b");
  EXPECT_EQ(elsewhere.matched(), 0u);

  Subscription& a = subscription("/a");
  EXPECT_TRUE(meets(first, 1));
  EXPECT_TRUE(meets(a, 1));
  Subscription& stranger = subscription("/a");
  EXPECT_TRUE(meets(first, 2));
  EXPECT_TRUE(meets(stranger, 1));
  Publisher& second = publisher("/a", kSmall);
  EXPECT_TRUE(meets(second, 2));
  EXPECT_TRUE(meets(a, 2));
  EXPECT_TRUE(meets(stranger, 2));
  EXPECT_EQ(first.matched(), 2u);
  EXPECT_EQ(elsewhere.matched(), 0u);
  if (abilities().tells_events) {
    EXPECT_TRUE(sink_.has(PERFLAB_MATCHED));
  }
}

TEST_P(Matching, ClientsAndServersCountEachOtherAndStrangersToo) {
  const ServiceKind kind = service_kind("stamped10b");
  const Node serving = node(ExecutorKind::kSingleThreaded);
  const Node asking = node(ExecutorKind::kSingleThreaded);
  Client& first = client(asking, "/add", kind, inbox(kind.reply));
  Client& elsewhere = client(asking, "/subtract", kind, inbox(kind.reply));
  EXPECT_EQ(first.matched(), 0u);
  Server* server = nullptr;
  serve(serving, "/add", kind, &server);
  EXPECT_TRUE(meets(first, 1));
  EXPECT_TRUE(meets(*server, 1));
  Client& second = client(asking, "/add", kind, inbox(kind.reply));
  EXPECT_TRUE(meets(second, 1));
  EXPECT_TRUE(meets(*server, 2));
  Server* stranger = nullptr;
  serve(node(ExecutorKind::kSingleThreaded), "/add", kind, &stranger);
  EXPECT_TRUE(meets(first, 2));
  EXPECT_TRUE(meets(second, 2));
  EXPECT_TRUE(meets(*stranger, 2));
  EXPECT_EQ(elsewhere.matched(), 0u);
}

TEST_P(Matching, IdentitiesDiffer) {
  const Node on = node(ExecutorKind::kSingleThreaded);
  std::vector<perflab_identity> identities;
  const auto add = [&](const perflab_identity& identity) {
    if (abilities().tells_writers) {
      EXPECT_FALSE(is_none(identity));
    }
    if (!is_none(identity)) identities.push_back(identity);
  };
  for (int i = 0; i < 3; ++i) add(publisher("/a", kSmall).identity());
  const ServiceKind kind = service_kind("stamped10b");
  for (int i = 0; i < 2; ++i) add(client(on, "/add", kind, inbox(kind.reply)).identity());
  for (int i = 0; i < 3; ++i)
    add(runtime()
            .create_subscription(on.executor, endpoint(on, "/a", kSmall, keep_last(10)), inbox(kSmall))
            .identity());
  std::set<std::vector<std::uint8_t>> different;
  for (const perflab_identity& one : identities)
    different.insert({std::begin(one.bytes), std::end(one.bytes)});
  EXPECT_EQ(different.size(), identities.size());
}

// A process that has two participants, where it can: they find each other.
TEST_P(Matching, ParticipantsOfOneProcessMeet) {
  if (abilities().participants < 2) return;
  open({.intra_process = GetParam(), .participants = 2});
  const Node here = node_on(executor(ExecutorKind::kSingleThreaded), 0);
  const Node there = node_on(executor(ExecutorKind::kSingleThreaded), 1);
  Inbox& near = subscribe(here, "/a", kSmall);
  Inbox& far = subscribe(there, "/a", kSmall);
  Publisher& writer = publisher_of(here, "/a", kSmall);
  ASSERT_TRUE(meets(writer, 2));
  ASSERT_TRUE(matched());
  timer(here, 10ms, 1, 1).on_each = [&](Nanoseconds) {
    for (std::uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(send(writer, kSmall, i));
  };
  start();
  EXPECT_TRUE(eventually([&] { return near.count() >= 20 && far.count() >= 20; }))
      << near.count() << " and " << far.count();
  runtime().stop();
  EXPECT_EQ(near.numbers(), range(0, 20));
  EXPECT_EQ(far.numbers(), range(0, 20));
}

std::vector<bool> ways() {
  return subject().abilities().intra_process ? std::vector<bool>{false, true} : std::vector<bool>{false};
}
INSTANTIATE_TEST_SUITE_P(, Matching, testing::ValuesIn(ways()), [](const auto& info) {
  return info.param ? "intra_process" : "through_the_middleware";
});

}  // namespace
}  // namespace perflab::runtime::conformance
