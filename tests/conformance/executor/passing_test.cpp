// How messages pass: what passing() says, what is refused, which memory they are in.
#include <algorithm>

#include "../middleware/peer.h"
#include "fixture.h"

namespace perflab::runtime::conformance {
namespace {

using perflab::conformance::Peer;
using perflab::conformance::range;

class Passes : public Lab {
 protected:
  template <typename Function>
  void expect_unsupported(Function&& function, const std::string& word) {
    try {
      function();
      ADD_FAILURE() << "not refused";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kUnsupported) << error.what();
      EXPECT_NE(std::string(error.what()).find("/a"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    }
  }
};

// The address of the bytes that each subscription was given.
struct Addresses {
  explicit Addresses(std::vector<Inbox*> inboxes) : at(inboxes.size()) {
    for (std::size_t i = 0; i < inboxes.size(); ++i) {
      inboxes[i]->on_each = [this, i](const Delivery& delivery) { at[i] = delivery.bytes.data(); };
    }
  }
  std::vector<const std::uint8_t*> at;
};

TEST_F(Passes, OneMessageToAllWhoShareIt) {
  open({.intra_process = true});
  const std::size_t on = executor(ExecutorKind::kInline);
  Inbox& a = subscribe(on, "/a", keep_last(10));
  Inbox& b = subscribe(on, "/a", keep_last(10), 0, PassBy::kShared);
  Publisher& giver = publisher("/a", keep_last(10), PassBy::kUnique);
  Publisher& keeper = publisher("/a", keep_last(10), PassBy::kShared);
  EXPECT_EQ(giver.passing().intra_process, 2u);
  EXPECT_EQ(giver.passing().middleware, 0u);
  EXPECT_EQ(giver.passing().copies, 0u);
  EXPECT_EQ(keeper.passing().copies, 1u);  // the publisher keeps its own
  const Addresses addresses({&a, &b});
  runtime().start(clock_.now());
  ASSERT_TRUE(send(giver, 1));
  EXPECT_EQ(addresses.at[0], addresses.at[1]);
  ASSERT_TRUE(send(keeper, 2));
  EXPECT_EQ(addresses.at[0], addresses.at[1]);
  runtime().stop();
  EXPECT_EQ(a.numbers(), range(1, 3));
}

TEST_F(Passes, OneMessageToEachWhoOwnsIt) {
  open({.intra_process = true});
  const std::size_t on = executor(ExecutorKind::kInline);
  Inbox& a = subscribe(on, "/a", keep_last(10), 0, PassBy::kUnique);
  Inbox& b = subscribe(on, "/a", keep_last(10), 0, PassBy::kUnique);
  Inbox& c = subscribe(on, "/a", keep_last(10), 0, PassBy::kShared);
  Publisher& giver = publisher("/a", keep_last(10), PassBy::kUnique);
  EXPECT_EQ(giver.passing().intra_process, 3u);
  EXPECT_EQ(giver.passing().copies, 2u);
  runtime().start(clock_.now());
  ASSERT_TRUE(send(giver, 1));
  for (const Inbox* inbox : {&a, &b, &c}) EXPECT_EQ(inbox->numbers(), std::vector<std::uint64_t>{1});
  runtime().stop();
}

TEST_F(Passes, WithinTheProcessAndToAnotherOne) {
  if (!plugin_.capabilities().across_processes) return;
  open({.intra_process = true});
  const std::size_t on = executor(ExecutorKind::kSingleThreaded);
  Inbox& inbox = subscribe(on, "/conformance", keep_last(100), 0, PassBy::kUnique);
  Publisher& writer = publisher("/conformance", keep_last(100), PassBy::kUnique);
  Peer peer(subject().plugin, domain_.id());
  peer.ask("reader r rt/conformance " + std::string(perflab::conformance::kType) +
           " keep_all reliable volatile 1");
  ASSERT_EQ(peer.ask("wait_matched r 1"), "ok");
  ASSERT_TRUE(eventually([&] { return writer.matched() == 2; }));
  const Passing passing = writer.passing();
  EXPECT_EQ(passing.intra_process, 1u);
  EXPECT_EQ(passing.middleware, 1u);
  EXPECT_EQ(passing.copies, 1u);  // given away, and still needed for the middleware
  runtime().start(clock_.now());
  for (std::uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(send(writer, i));
  EXPECT_EQ(peer.ask("take r 50 " + std::to_string(kMessageBytes)),
            "took 50 intact 50 ordered 1 first 0 last 49");
  EXPECT_TRUE(eventually([&] { return inbox.count() == 50; }));
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, 50));
}

TEST_F(Passes, WhatRclcppRefusesWithinAProcessIsRefused) {
  open({.intra_process = true});
  const std::size_t on = executor(ExecutorKind::kEvents);
  // Alone on its topic it is allowed.
  Inbox& inbox = subscribe(on, "/a", keep_all());
  expect_unsupported([&] { publisher("/a", keep_all()); }, "keep_all");
  static_cast<void>(inbox);

  perflab_qos durable = keep_last(10);
  durable.durability = PERFLAB_TRANSIENT_LOCAL;
  open({.intra_process = true});
  const std::size_t again = executor(ExecutorKind::kEvents);
  publisher("/a", durable);
  expect_unsupported([&] { subscribe(again, "/a", durable); }, "transient_local");
}

TEST_F(Passes, AnIncompatiblePairIsReportedAndNotConnected) {
  open({.intra_process = true});
  const std::size_t on = executor(ExecutorKind::kEvents);
  perflab_qos best_effort = keep_last(10);
  best_effort.reliability = PERFLAB_BEST_EFFORT;
  Publisher& writer = publisher("/a", best_effort);
  subscribe(on, "/a", keep_last(10));
  EXPECT_EQ(writer.matched(), 0u);
  EXPECT_EQ(sink_.count(PERFLAB_INCOMPATIBLE_QOS),
            2u);  // as the middleware: one of the writer, one of the reader
  subscribe(on, "/a", best_effort);
  EXPECT_EQ(writer.matched(), 1u);
  EXPECT_EQ(sink_.count(PERFLAB_MATCHED), 2u);
}

TEST_F(Passes, AnotherTypeOrKindIsAnotherTopic) {
  open({.intra_process = true});
  const std::size_t on = executor(ExecutorKind::kEvents);
  subscribe(on, "/a", keep_last(10));
  EndpointSettings other = endpoint("/a", keep_last(10));
  other.kind = TopicKind::kRequest;
  EXPECT_EQ(runtime().create_publisher(other).matched(), 0u);
  EXPECT_EQ(publisher("/b", keep_last(10)).matched(), 0u);
  EXPECT_EQ(publisher("/a", keep_last(10)).matched(), 1u);
}

// The loans of a plug-in that has them for this type; a refusal names the topic.
class Loans : public Lab {
 protected:
  Publisher* lender() {
    try {
      return &publisher("/a", keep_last(100), PassBy::kLoaned);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kUnsupported) << error.what();
      return nullptr;
    }
  }
};

TEST_F(Loans, CarryTheWholeMessage) {
  open({});
  const std::size_t on = executor(ExecutorKind::kEvents);
  Inbox& inbox = subscribe(on, "/a", keep_last(100));
  std::atomic<int> damaged{0};
  inbox.on_each = [&](const Delivery& delivery) { damaged += intact(delivery.bytes, kMessageBytes) ? 0 : 1; };
  Publisher* const writer = lender();
  if (writer == nullptr) return;
  ASSERT_TRUE(all_matched(1));
  EXPECT_TRUE(writer->passing().loaned);
  runtime().start(clock_.now());
  for (std::uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(send(*writer, i));
  // A loan that was prepared and not published is used for the next message.
  ASSERT_TRUE(writer->prepare(std::vector<std::uint8_t>(64, 1)));
  ASSERT_TRUE(send(*writer, 50));
  EXPECT_TRUE(eventually([&] { return inbox.count() == 51; })) << inbox.count();
  EXPECT_FALSE(writer->prepare(std::vector<std::uint8_t>(kMessageBytes + 1)));
  EXPECT_TRUE(writer->prepare(std::vector<std::uint8_t>(64)));  // given back at the end
  runtime().stop();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(sink_.write_failures().size(), 1u);
}

TEST_F(Loans, AreNotForSubscriptionsOfTheSameProcess) {
  open({.intra_process = true});
  const std::size_t on = executor(ExecutorKind::kEvents);
  if (lender() == nullptr) return;
  try {
    subscribe(on, "/a", keep_last(10));
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kUnsupported);
    EXPECT_NE(std::string(error.what()).find("/a"), std::string::npos) << error.what();
  }
}

// The double lends so many messages and no more.
TEST_F(Loans, ThatCannotBeHadAreFailedWrites) {
  if (plugin_.name() != "double") return;
  open({});
  EndpointSettings settings = endpoint("/exhausted", keep_last(10), PassBy::kLoaned);
  Publisher& writer = runtime().create_publisher(settings);
  EXPECT_FALSE(send(writer, 1));
  EXPECT_EQ(sink_.write_failures(), std::vector<std::string>{"double: no loan on rt/exhausted"});
}

}  // namespace
}  // namespace perflab::runtime::conformance
