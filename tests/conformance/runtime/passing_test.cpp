// How messages pass: shared, given away, lent; within the process and through the middleware.
#include "lab.h"

namespace perflab::runtime::conformance {
namespace {

class Passes : public AnyExecutor {};

TEST_P(Passes, MessagesToWhoSharesAndToWhoOwnsThem) {
  const Node on = node();
  struct Way {
    PassBy pass_by;
    const char* topic;
    std::size_t readers;
    Publisher* publisher = nullptr;
    std::vector<Inbox*> inboxes{};
  };
  std::deque<Way> ways{{PassBy::kUnspecified, "/unspecified", 3},
                       {PassBy::kShared, "/shared", 3},
                       {PassBy::kUnique, "/unique", 3},
                       {PassBy::kUnique, "/one", 1}};
  for (Way& way : ways) {
    for (const PassBy taken : {PassBy::kUnique, PassBy::kShared, PassBy::kUnspecified}) {
      if (way.inboxes.size() == way.readers) break;
      way.inboxes.push_back(&subscribe(on, way.topic, kSmall, keep_last(100), taken));
    }
    way.publisher = &publisher(way.topic, kSmall, keep_last(100), way.pass_by);
  }
  const std::vector<Parts> all = make_all(kSmall, 50);
  at(10ms, [&] {
    for (const Parts& parts : all) {
      for (const Way& way : ways) EXPECT_TRUE(send_prepared(*way.publisher, parts));
    }
  });
  ASSERT_TRUE(matched());
  for (const Way& way : ways) {
    SCOPED_TRACE(way.topic);
    EXPECT_TRUE(eventually([&] { return way.publisher->matched() == way.readers; }));
    const Passing passing = way.publisher->passing();
    EXPECT_EQ(passing.intra_process, intra_process() ? way.readers : 0);
    EXPECT_EQ(passing.middleware, intra_process() ? 0 : way.readers);
    EXPECT_FALSE(passing.loaned);
    if (!intra_process() || way.readers == 1) {
      EXPECT_EQ(passing.copies, 0u);
    }
  }
  start();
  for (const Way& way : ways) {
    for (const Inbox* inbox : way.inboxes) {
      EXPECT_TRUE(eventually([&] { return inbox->count() >= 50; })) << inbox->count();
    }
  }
  runtime().stop();
  for (const Way& way : ways) {
    for (const Inbox* inbox : way.inboxes) {
      EXPECT_EQ(inbox->numbers(), range(0, 50)) << way.topic;
      EXPECT_TRUE(inbox->all_intact()) << way.topic;
    }
  }
}

// Of every type, in every way that it can go.
TEST_P(Passes, EveryTypeInEveryWay) {
  struct Way {
    Kind kind;
    Publisher* publisher;
    Inbox* inbox;
  };
  const Node on = node();
  std::vector<Way> ways;
  for (const Kind& kind : kinds()) {
    for (const PassBy pass_by : {PassBy::kShared, PassBy::kUnique, PassBy::kLoaned}) {
      const bool lends = pass_by == PassBy::kLoaned;
      if (lends && (!kind.format->type->plain || intra_process() || !abilities().loans)) continue;
      const std::string topic = "/topic_" + std::to_string(ways.size());
      Publisher* made = nullptr;
      try {
        made = &publisher(topic, kind, keep_last(100), pass_by);
      } catch (const Error& error) {  // where there is no shared memory, say
        EXPECT_TRUE(lends) << error.what();
        EXPECT_EQ(error.kind(), Error::Kind::kUnsupported) << error.what();
        continue;
      }
      ways.push_back({kind, made, &subscribe(on, topic, kind, keep_last(100), lends ? PassBy::kUnspecified : pass_by)});
    }
  }
  at(10ms, [&] {
    for (std::uint64_t i = 0; i < 10; ++i) {
      for (const Way& way : ways) EXPECT_TRUE(send_prepared(*way.publisher, way.kind, i));
    }
  });
  ASSERT_TRUE(matched());
  start();
  for (const Way& way : ways)
    EXPECT_TRUE(eventually([&] { return way.inbox->count() >= 10; })) << way.inbox->count();
  runtime().stop();
  for (const Way& way : ways) {
    SCOPED_TRACE(way.kind.name());
    EXPECT_EQ(way.inbox->numbers(), range(0, 10));
    EXPECT_TRUE(way.inbox->all_intact());
  }
}

// A message that was made ready and not sent is of no consequence for the next one.
TEST_P(Passes, MessagesThatWereMadeReadyAndNotSentGoNowhere) {
  const Node on = node();
  Inbox& inbox = subscribe(on, "/a", kSmall, keep_last(100), PassBy::kUnique);
  Publisher& writer = publisher("/a", kSmall, keep_last(100), PassBy::kUnique);
  at(10ms, [&] {
    EXPECT_TRUE(writer.prepare(Parts(kSmall, 77).outgoing()));
    for (std::uint64_t i = 0; i < 5; ++i) EXPECT_TRUE(send_prepared(writer, Parts(kSmall, i)));
    EXPECT_TRUE(writer.prepare(Parts(kSmall, 78).outgoing()));
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return inbox.count() >= 5; })) << inbox.count();
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, 5));
  EXPECT_TRUE(inbox.all_intact());
}

// What is given to prepare() is read there and then: the next message may have other content in the same place.
TEST_P(Passes, ContentThatChangesInItsPlace) {
  const Node on = node();
  std::vector<Inbox*> inboxes;
  std::vector<Publisher*> publishers;
  for (const PassBy pass_by : {PassBy::kShared, PassBy::kUnique}) {
    const std::string topic = pass_by == PassBy::kShared ? "/shared" : "/unique";
    inboxes.push_back(&subscribe(on, topic, kSmall));
    publishers.push_back(&publisher(topic, kSmall, keep_last(100), pass_by));
  }
  at(10ms, [&] {
    std::vector<std::uint8_t> place(kSmall.fixed_size());
    for (std::uint64_t i = 0; i < 20; ++i) {
      const Parts parts(kSmall, i);
      std::ranges::copy(parts.bytes, place.begin());
      for (Publisher* const publisher : publishers) {
        EXPECT_TRUE(publisher->prepare(parts.outgoing(place)));
        EXPECT_TRUE(publisher->publish(parts.outgoing(place)));
      }
    }
  });
  ASSERT_TRUE(matched());
  start();
  for (const Inbox* inbox : inboxes)
    EXPECT_TRUE(eventually([&] { return inbox->count() >= 20; })) << inbox->count();
  runtime().stop();
  for (const Inbox* inbox : inboxes) {
    EXPECT_EQ(inbox->numbers(), range(0, 20));
    EXPECT_TRUE(inbox->all_intact());
  }
}

INSTANTIATE_TEST_SUITE_P(, Passes, testing::ValuesIn(all_executors()), case_name);

class Loans : public Lab, public testing::WithParamInterface<const char*> {};

// They are refused, or they arrive and passing() says whether they were lent.
TEST_P(Loans, AreRefusedOrSaidAndCarryTheWholeMessage) {
  open();
  const Kind kind = fixed(GetParam());
  if ((kind.known_by_stamp() && !abilities().known_by_stamp) || (kind.of_a_user() && !abilities().types_of_users))
    GTEST_SKIP() << "the runtime has no such type";
  Inbox& inbox = subscribe(node(ExecutorKind::kSingleThreaded), "/a", kind);
  Publisher* writer = nullptr;
  try {
    writer = &publisher("/a", kind, keep_last(1'000), PassBy::kLoaned);
  } catch (const Error& error) {  // also where they exist: for lack of shared memory, say
    EXPECT_EQ(error.kind(), Error::Kind::kUnsupported) << error.what();
    EXPECT_NE(std::string(error.what()).find("/a"), std::string::npos) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
    return;
  }
  const std::vector<Parts> all = make_all(kind, 50);
  const Parts unsent(kind, 77);
  at(10ms, [&] {
    EXPECT_TRUE(writer->prepare(unsent.outgoing()));
    for (const Parts& parts : all) EXPECT_TRUE(send_prepared(*writer, parts));
    EXPECT_TRUE(writer->prepare(unsent.outgoing()));  // given back at the end
  });
  ASSERT_TRUE(matched());
  const bool must = !abilities().loans_by_type || std::string_view(GetParam()) == "array1k";
  if (must || !abilities().loans) {
    EXPECT_EQ(writer->passing().loaned, abilities().loans);
  }
  start();
  EXPECT_TRUE(eventually([&] { return inbox.count() >= 50; })) << inbox.count();
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, 50));
  EXPECT_TRUE(inbox.all_intact());
}

INSTANTIATE_TEST_SUITE_P(, Loans,
                         testing::Values("stamped_int64", "array1k", "radar_track", "struct4k",
                                         "conformance_msgs/msg/Within", "geometry_msgs/msg/Twist"),
                         [](const auto& info) {
                           const std::string name = info.param;
                           return name.substr(name.rfind('/') + 1);
                         });

}  // namespace
}  // namespace perflab::runtime::conformance
