// How messages pass: what passing() says, what is refused, which memory they are in.
#include "../middleware/peer.h"
#include "../runtime/dds.h"
#include "../runtime/lab.h"

namespace perflab::runtime::conformance {
namespace {

using perflab::conformance::Peer;

class Passes : public Lab {
 protected:
  Passes() { open({.intra_process = true}); }
};

// Where each subscription found the message that it was given last.
struct Places {
  explicit Places(std::vector<Inbox*> inboxes) : at(inboxes.size()) {
    for (std::size_t i = 0; i < inboxes.size(); ++i) {
      inboxes[i]->on_each = [this, i](const Received& one) { at[i] = one.place; };
    }
  }
  std::vector<const std::uint8_t*> at;
};

TEST_F(Passes, OneMessageToAllWhoShareIt) {
  const Node on = node(ExecutorKind::kInline);
  Inbox& a = subscribe(on, "/a", kSmall);
  Inbox& b = subscribe(on, "/a", kSmall, keep_last(10), PassBy::kShared);
  Publisher& giver = publisher("/a", kSmall, keep_last(10), PassBy::kUnique);
  Publisher& keeper = publisher("/a", kSmall, keep_last(10), PassBy::kShared);
  EXPECT_EQ(giver.passing().intra_process, 2u);
  EXPECT_EQ(giver.passing().middleware, 0u);
  EXPECT_EQ(giver.passing().copies, 0u);
  EXPECT_EQ(keeper.passing().copies, 1u);  // the publisher keeps its own
  const Places places({&a, &b});
  start();
  ASSERT_TRUE(send_prepared(giver, kSmall, 1));
  EXPECT_EQ(places.at[0], places.at[1]);
  ASSERT_TRUE(send_prepared(keeper, kSmall, 2));
  EXPECT_EQ(places.at[0], places.at[1]);
  runtime().stop();
  EXPECT_EQ(a.numbers(), range(1, 3));
}

TEST_F(Passes, OneMessageToEachWhoOwnsIt) {
  const Node on = node(ExecutorKind::kInline);
  Inbox& a = subscribe(on, "/a", kSmall, keep_last(10), PassBy::kUnique);
  Inbox& b = subscribe(on, "/a", kSmall, keep_last(10), PassBy::kUnique);
  Inbox& c = subscribe(on, "/a", kSmall, keep_last(10), PassBy::kShared);
  Publisher& giver = publisher("/a", kSmall, keep_last(10), PassBy::kUnique);
  EXPECT_EQ(giver.passing().intra_process, 3u);
  EXPECT_EQ(giver.passing().copies, 2u);
  start();
  ASSERT_TRUE(send_prepared(giver, kSmall, 1));
  for (const Inbox* inbox : {&a, &b, &c}) EXPECT_EQ(inbox->numbers(), range(1, 2));
  runtime().stop();
}

TEST_F(Passes, WithinTheProcessAndToAnotherOne) {
  if (!dds().capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  Inbox& inbox = subscribe(node(ExecutorKind::kSingleThreaded), "/conformance", kOfPeers, keep_last(100),
                           PassBy::kUnique);
  Publisher& writer = publisher("/conformance", kOfPeers, keep_last(100), PassBy::kUnique);
  Peer peer(dds().file(), domain());
  peer.ask("reader r rt/conformance " + message::dds_type_name(kOfPeers.ros_type()) +
           " keep_all " + usual_reliability() + " volatile 1");
  ASSERT_EQ(peer.ask("wait_matched r 1"), "ok");
  ASSERT_TRUE(eventually([&] { return writer.matched() == 2; }));
  const Passing passing = writer.passing();
  EXPECT_EQ(passing.intra_process, 1u);
  EXPECT_EQ(passing.middleware, 1u);
  EXPECT_EQ(passing.copies, 1u);  // given away, and still needed for the middleware
  start();
  for (std::uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(send_prepared(writer, kOfPeers, i));
  EXPECT_EQ(peer.ask("take r 50 " + std::to_string(kOfPeers.fixed_size())),
            "took 50 intact 50 ordered 1 first 0 last 49");
  EXPECT_TRUE(eventually([&] { return inbox.count() == 50; }));
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, 50));
  EXPECT_TRUE(inbox.all_intact());
}

// The only endpoint of a topic may have it; the second endpoint is refused.
TEST_F(Passes, NoHistoryWithoutABoundWithinAProcessAsWithRclcpp) {
  subscribe(node(ExecutorKind::kEvents), "/a", kSmall, keep_all());
  expect_error([&] { publisher("/a", kSmall, keep_all()); }, Error::Kind::kUnsupported, {"/a", "keep_all"});
}

TEST_F(Passes, NoHistoryForThoseWhoComeLaterWithinAProcessAsWithRclcpp) {
  if (!subject().abilities().durable) GTEST_SKIP() << "the plug-in refuses it itself";
  perflab_qos durable = keep_last(10);
  durable.durability = PERFLAB_TRANSIENT_LOCAL;
  const Node on = node(ExecutorKind::kEvents);
  publisher("/a", kSmall, durable);
  expect_error([&] { subscribe(on, "/a", kSmall, durable); }, Error::Kind::kUnsupported,
               {"/a", "transient_local"});
}

TEST_F(Passes, AnIncompatiblePairIsReportedAndNotConnected) {
  if (!subject().abilities().reliable) GTEST_SKIP() << "no QoS of the plug-in is incompatible";
  const Node on = node(ExecutorKind::kEvents);
  perflab_qos best_effort = keep_last(10);
  best_effort.reliability = PERFLAB_BEST_EFFORT;
  Publisher& writer = publisher("/a", kSmall, best_effort);
  subscribe(on, "/a", kSmall, keep_last(10));
  EXPECT_EQ(writer.matched(), 0u);
  EXPECT_EQ(sink_.count(PERFLAB_INCOMPATIBLE_QOS),
            2u);  // as the middleware: one of the writer, one of the reader
  subscribe(on, "/a", kSmall, best_effort);
  EXPECT_EQ(writer.matched(), 1u);
  EXPECT_EQ(sink_.count(PERFLAB_MATCHED), 2u);
}

TEST_F(Passes, AnotherTypeOrKindIsAnotherTopic) {
  const Node on = node(ExecutorKind::kEvents);
  subscribe(on, "/a", kSmall);
  EndpointSettings other = endpoint(on, "/a", kSmall, keep_last(10));
  other.kind = TopicKind::kRequest;
  EXPECT_EQ(runtime().create_publisher(other).matched(), 0u);
  EXPECT_EQ(publisher("/b", kSmall).matched(), 0u);
  EXPECT_EQ(publisher("/a", kSmall).matched(), 1u);
}

class Loans : public Lab {};

// Of a plug-in that has them for this type; a refusal names the topic, too.
TEST_F(Loans, AreNotForSubscriptionsOfTheSameProcess) {
  open({.intra_process = true});
  const Node on = node(ExecutorKind::kEvents);
  expect_error(
      [&] {
        publisher("/a", kSmall, keep_last(100), PassBy::kLoaned);
        subscribe(on, "/a", kSmall);
      },
      Error::Kind::kUnsupported, {"/a"});
}

}  // namespace
}  // namespace perflab::runtime::conformance
