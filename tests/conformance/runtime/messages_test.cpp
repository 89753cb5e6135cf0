// Messages: intact, once, in order, one at a time.
#include <time.h>

#include "lab.h"

namespace perflab::runtime::conformance {
namespace {


// Sends on what it gets, as it came but for its stamp: a relay of a graph.
class Relay final : public MessageHandler {
 public:
  Relay(const Kind& kind, Publisher& publisher) : format_(*kind.format), publisher_(publisher) {}

  void on_message(const Delivery& delivery) noexcept override {
    message::Header header;
    if (format_.stamp == message::Stamp::kNone) {
      const auto bytes = delivery.bytes.first(format_.codec.extent(delivery.bytes));
      const Outgoing message{{}, {}, bytes, delivery.source_timestamp_ns};
      EXPECT_TRUE(publisher_.prepare(message) && publisher_.publish(message));
      return;
    }
    ASSERT_TRUE(format_.read_stamp(delivery.bytes, header));
    std::array<std::uint8_t, message::kHeaderBytes> stamp{};
    const auto bytes = delivery.bytes.first(format_.codec.extent(delivery.bytes));
    const std::size_t at = format_.stamp_at(bytes);
    const Outgoing message{bytes.first(at), std::span(stamp).first(format_.stamp_bytes),
                           bytes.subspan(at + format_.stamp_bytes)};
    // The stamp is written anew and says the same: what arrives in the end is what was sent at first.
    format_.write_stamp(header, false, stamp.data());
    EXPECT_TRUE(publisher_.prepare(message) && publisher_.publish(message));
  }

 private:
  const message::Format& format_;
  Publisher& publisher_;
};

class Messages : public AnyExecutor {
 protected:
  ~Messages() override { close(); }  // before the relays are gone

  std::deque<Relay> relays_;
};

TEST_P(Messages, ArriveIntactOnceAndInTheOrderOfTheirPublisher) {
  constexpr std::uint64_t kOther = 10'000;
  const Node on = node();
  Inbox& first = subscribe(on, "/a", kSmall);
  Inbox& second = subscribe(on, "/a", kSmall);
  Publisher& a = publisher("/a", kSmall);
  Publisher& b = publisher("/a", kSmall);
  at(10ms, [&] {
    for (std::uint64_t i = 0; i < 200; ++i) {
      EXPECT_TRUE(send(a, kSmall, i));
      EXPECT_TRUE(send(b, kSmall, kOther + i));
    }
  });
  ASSERT_TRUE(matched(2));
  start();
  for (const Inbox* inbox : {&first, &second})
    EXPECT_TRUE(eventually([&] { return inbox->count() >= 400; })) << inbox->count();
  runtime().stop();
  for (const Inbox* inbox : {&first, &second}) {
    EXPECT_TRUE(inbox->all_intact());
    std::vector<std::uint64_t> of_a, of_b;
    for (const std::uint64_t number : inbox->numbers()) (number < kOther ? of_a : of_b).push_back(number);
    EXPECT_EQ(of_a, range(0, 200));
    EXPECT_EQ(of_b, range(kOther, kOther + 200));
  }
}

TEST_P(Messages, OfEveryTypeAndLengthArriveIntact) {
  const Node on = node();
  std::vector<Kind> kinds = conformance::kinds();
  kinds.push_back(kLarge);
  std::vector<Inbox*> inboxes;
  std::vector<Publisher*> publishers;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string topic = "/topic_" + std::to_string(i);
    inboxes.push_back(&subscribe(on, topic, kinds[i], keep_last(10)));
    publishers.push_back(&publisher(topic, kinds[i], keep_last(10)));
  }
  at(10ms, [&] {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      for (std::uint64_t n = 0; n < 4; ++n) EXPECT_TRUE(send(*publishers[i], kinds[i], n));
    }
  });
  ASSERT_TRUE(matched());
  start();
  for (const Inbox* inbox : inboxes)
    EXPECT_TRUE(eventually([&] { return inbox->count() >= 4; })) << inbox->count();
  runtime().stop();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    SCOPED_TRACE(kinds[i].name());
    EXPECT_TRUE(inboxes[i]->all_intact());
    EXPECT_EQ(inboxes[i]->numbers(), range(0, 4));
    for (const Received& one : inboxes[i]->messages()) EXPECT_EQ(one.bytes, kinds[i].bytes());
  }
}

TEST_P(Messages, OfEveryTypeAreRelayedAsTheyCame) {
  const std::vector<Kind> kinds = conformance::kinds();
  const Node on = node();
  std::vector<Inbox*> inboxes;
  std::vector<Publisher*> publishers;
  std::vector<Subscription*> relayed;
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const std::string from = "/from_" + std::to_string(i), to = "/to_" + std::to_string(i);
    inboxes.push_back(&subscribe(on, to, kinds[i]));
    const PassBy pass_by = i % 2 == 0 ? PassBy::kShared : PassBy::kUnique;
    Relay& relay = relays_.emplace_back(kinds[i], publisher_of(on, to, kinds[i], keep_last(1'000), pass_by));
    relayed.push_back(
        &runtime().create_subscription(on.executor, endpoint(on, from, kinds[i], keep_last(1'000)), relay));
    publishers.push_back(&publisher(from, kinds[i]));
  }
  at(10ms, [&] {
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      for (std::uint64_t n = 0; n < 10; ++n) EXPECT_TRUE(send(*publishers[i], kinds[i], n));
    }
  });
  ASSERT_TRUE(matched());
  for (Subscription* const one : relayed) ASSERT_TRUE(eventually([&] { return one->matched() == 1; }));
  start();
  for (const Inbox* inbox : inboxes)
    EXPECT_TRUE(eventually([&] { return inbox->count() >= 10; })) << inbox->count();
  runtime().stop();
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    SCOPED_TRACE(kinds[i].name());
    EXPECT_TRUE(inboxes[i]->all_intact());
    EXPECT_EQ(inboxes[i]->numbers(), range(0, 10));
  }
}

// The length goes with what is behind the stamp or with the stamp; with prepare() or without.
TEST_P(Messages, OfAVariableTypeHaveTheLengthThatEachWasSentWith) {
  const std::vector<std::uint32_t> lengths{0, 1, 2, 3, 4, 5, 1'000, 0, 65'537, 7};
  const Node on = node();
  Inbox& inbox = subscribe(on, "/a", variable(0));
  Publisher& writer = publisher("/a", variable(0));
  std::vector<Parts> all;
  for (std::uint64_t i = 0; i < 2 * lengths.size(); ++i)
    all.emplace_back(variable(lengths[i / 2]), i, i % 2 == 1);
  at(10ms, [&] {
    for (std::uint64_t i = 0; i < all.size(); ++i) {
      if (i % 2 == 0) {
        EXPECT_TRUE(writer.prepare(all[i].outgoing()));
      }
      EXPECT_TRUE(writer.publish(all[i].outgoing()));
    }
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return inbox.count() >= 2 * lengths.size(); })) << inbox.count();
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, 2 * lengths.size()));
  for (const Received& one : inbox.messages()) {
    EXPECT_TRUE(one.intact) << "of length " << lengths[one.number / 2];
    EXPECT_EQ(one.bytes, lengths[one.number / 2]);
  }
}

std::int64_t wall_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * kNanosecondsPerSecond + now.tv_nsec;
}

TEST_P(Messages, SayWhoWroteThemAndWhen) {
  const Node on = node();
  Inbox& inbox = subscribe(on, "/a", kSmall);
  const std::array<Publisher*, 2> writers{&publisher("/a", kSmall), &publisher("/a", kSmall)};
  std::array<Nanoseconds, 20> sent{};  // right before
  at(10ms, [&] {
    for (std::uint64_t i = 0; i < sent.size(); ++i) {
      sent[i] = now();
      EXPECT_TRUE(send(*writers[i % 2], kSmall, i));
    }
  });
  ASSERT_TRUE(matched(2));
  const std::int64_t wall_before = wall_ns();
  start();
  EXPECT_TRUE(eventually([&] { return inbox.count() >= sent.size(); })) << inbox.count();
  const std::int64_t wall_after = wall_ns();
  runtime().stop();
  ASSERT_EQ(inbox.count(), sent.size());
  std::array<std::int64_t, 2> last{};
  for (const Received& one : inbox.messages()) {
    const std::size_t writer = one.number % 2;
    if (!is_none(one.writer) || abilities().tells_writers) {
      EXPECT_TRUE(middleware::same(one.writer, writers[writer]->identity()));
    }
    if (one.sequence != 0) {
      EXPECT_GT(one.sequence, std::exchange(last[writer], one.sequence));
    }
    EXPECT_TRUE(is_none(one.related.writer));
    EXPECT_GE(one.begin_ns, sent[one.number]);
    if (intra_process() && abilities().tells_arrivals) {
      EXPECT_NE(one.arrived_ns, kUnknownTime);
    }
    if (one.arrived_ns != kUnknownTime) {
      EXPECT_GE(one.arrived_ns, sent[one.number]);
      EXPECT_LE(one.arrived_ns, one.begin_ns);
    }
    if (one.source_timestamp_ns != kUnknownTime) {
      constexpr Nanoseconds kClockWasSet = 60 * kNanosecondsPerSecond;
      EXPECT_GT(one.source_timestamp_ns, wall_before - kClockWasSet);
      EXPECT_LT(one.source_timestamp_ns, wall_after + kClockWasSet);
    }
  }
}

TEST_P(Messages, AreHandledAfterTheStartAndNotBefore) {
  const Node on = node();
  Inbox& inbox = subscribe(on, "/a", kSmall);
  Publisher& writer = publisher("/a", kSmall);
  ASSERT_TRUE(matched());
  std::atomic<bool> started{false};
  inbox.on_each = [&](const Received&) { EXPECT_TRUE(started) << "a message before the start"; };
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(send(writer, kSmall, i));
  std::this_thread::sleep_for(20ms);  // so that a runtime that does not wait for the start is detected
  EXPECT_EQ(inbox.entered(), 0u);
  started = true;
  start();
  EXPECT_TRUE(eventually([&] { return inbox.count() >= 20; })) << inbox.count();
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, 20));
}

TEST_P(Messages, CanBePublishedInACallback) {
  const Node here = node();
  const Node there = node_on(here.executor);
  Inbox& a = subscribe(here, "/a", kSmall);
  Inbox& b = subscribe(there, "/b", kSmall);
  Inbox& c = subscribe(node(), "/c", kSmall);
  Publisher& to_a = publisher("/a", kSmall);
  Publisher& to_b = publisher_of(here, "/b", kSmall);
  Publisher& to_c = publisher_of(there, "/c", kSmall);
  a.on_each = [&](const Received& one) { EXPECT_TRUE(send(to_b, kSmall, one.number + 1'000)); };
  b.on_each = [&](const Received& one) { EXPECT_TRUE(send(to_c, kSmall, one.number + 1'000)); };
  at(10ms, [&] {
    for (std::uint64_t i = 0; i < 50; ++i) EXPECT_TRUE(send(to_a, kSmall, i));
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return c.count() >= 50; })) << c.count();
  runtime().stop();
  EXPECT_EQ(a.numbers(), range(0, 50));
  EXPECT_EQ(b.numbers(), range(1'000, 1'050));
  EXPECT_EQ(c.numbers(), range(2'000, 2'050));
  EXPECT_TRUE(c.all_intact());
}

// Three threads send what one subscription gets; its handler sees to it that it is alone.
TEST_P(Messages, OfOneSubscriptionAreHandledOneAtATime) {
  constexpr std::uint64_t kSenders = 3;
  constexpr std::uint64_t kEach = 100;
  const Node on = node(4);
  Inbox& inbox = subscribe(on, "/a", kSmall);
  inbox.on_each = [&](const Received&) { runtime().work(20'000); };
  for (std::uint64_t s = 0; s < kSenders; ++s) {
    const Node from = Lab::node(ExecutorKind::kSingleThreaded);
    Publisher& writer = publisher_of(from, "/a", kSmall);
    timer(from, 10ms, 1, 1).on_each = [&writer, s](Nanoseconds) {
      for (std::uint64_t i = 0; i < kEach; ++i) EXPECT_TRUE(send(writer, kSmall, s * kEach + i));
    };
  }
  ASSERT_TRUE(matched(kSenders));
  start();
  EXPECT_TRUE(eventually([&] { return inbox.count() >= kSenders * kEach; })) << inbox.count();
  runtime().stop();
  const std::vector<Received> messages = inbox.messages();
  EXPECT_EQ(messages.size(), kSenders * kEach);
  for (std::size_t i = 1; i < messages.size(); ++i)
    EXPECT_LE(messages[i - 1].end_ns, messages[i].begin_ns) << "callbacks " << i - 1 << " and " << i;
  std::vector<std::uint64_t> numbers = inbox.numbers();
  std::ranges::sort(numbers);
  EXPECT_EQ(numbers, range(0, kSenders * kEach));
}

INSTANTIATE_TEST_SUITE_P(, Messages, testing::ValuesIn(all_executors()), case_name);

class Histories : public AnyExecutor {};

// The first callback is held up until the others have come. That is known from a subscription that handles
// messages where they come.
TEST_P(Histories, LoseTheOldestWhereTheyAreFull) {
  constexpr std::uint64_t kMessages = 10;
  const Node on = node();
  const Node aside = Lab::node(ExecutorKind::kInline);
  Inbox& inbox = subscribe(on, "/a", kSmall, keep_last(3));
  Inbox& probe = subscribe(aside, "/a", kSmall, keep_last(100));
  Publisher& writer = publisher("/a", kSmall, keep_last(100));
  inbox.on_each = [&](const Received& one) {
    if (one.number == 0) hold(200ms, [&] { return probe.count() == kMessages; });
  };
  at(10ms, [&] { EXPECT_TRUE(send(writer, kSmall, 0)); });
  at(50ms, [&] {
    hold(0ms, [&] { return inbox.entered() == 1; });
    for (std::uint64_t i = 1; i < kMessages; ++i) EXPECT_TRUE(send(writer, kSmall, i));
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] {
    const std::vector<std::uint64_t> numbers = inbox.numbers();
    return !numbers.empty() && numbers.back() == kMessages - 1;
  }));
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), (std::vector<std::uint64_t>{0, 7, 8, 9}));
}

INSTANTIATE_TEST_SUITE_P(, Histories, testing::ValuesIn(queueing_executors()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
