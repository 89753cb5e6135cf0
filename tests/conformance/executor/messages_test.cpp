// Messages under pressure: every one, once, in order; nobody starves, nothing runs after the end. What holds
// for every runtime is in conformance/runtime.
#include <map>

#include "../middleware/peer.h"
#include "../runtime/dds.h"
#include "../runtime/lab.h"

namespace perflab::runtime::conformance {
namespace {

using perflab::conformance::Peer;

constexpr std::uint64_t kPerWriter = 1'000'000;  // numbers of a writer begin at its index times this

// A history in which nothing is lost: within a process only keep_last exists.
perflab_qos lossless(const Case& one, int messages) {
  return one.intra_process ? keep_last(messages) : keep_all();
}

// Several threads of this process and another process send to the same two subscriptions, with pauses in
// which the executor falls asleep: a wake-up that is lost shows as messages that are not handled.
TEST_P(AnyExecutor, LosesNoWakeUpWhenManySendAtOnce) {
  if (!subject().abilities().reliable) GTEST_SKIP() << "the plug-in may lose messages under pressure";
  constexpr std::uint64_t kThreads = 3;
  constexpr std::uint64_t kMessages = 1'500;
  constexpr std::uint64_t kRemote = 1'500;
  constexpr auto kAll = static_cast<int>(kThreads * kMessages + kRemote);
  const bool remote = dds().capabilities().across_processes;
  const perflab_qos qos = lossless(GetParam(), kAll);
  const Node on = node(3);
  const std::array<Inbox*, 2> inboxes{&subscribe(on, "/conformance", kOfPeers, qos),
                                      &subscribe(node_on(on.executor), "/conformance", kOfPeers, qos)};
  std::vector<Publisher*> writers;
  for (std::uint64_t i = 0; i < kThreads; ++i) writers.push_back(&publisher("/conformance", kOfPeers, qos));
  Peer peer(dds().file(), domain());
  if (remote) {
    peer.ask("writer w rt/conformance " + message::dds_type_name(kOfPeers.ros_type()) +
             (intra_process() ? " keep_last " + usual_reliability() + " volatile " + std::to_string(kAll)
                              : " keep_all " + usual_reliability() + " volatile 1"));
    ASSERT_EQ(peer.ask("wait_matched w 2"), "ok");
  }
  ASSERT_TRUE(matched(kThreads + (remote ? 1 : 0)));
  start();

  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        EXPECT_TRUE(send(*writers[t], kOfPeers, (t + 1) * kPerWriter + i));
        if (i % 50 == t) std::this_thread::sleep_for(1ms);
      }
    });
  }
  std::uint64_t expected = kThreads * kMessages;
  if (remote) {
    const std::string size = std::to_string(kOfPeers.fixed_size());
    for (std::uint64_t i = 0; i < kRemote; i += 100) {
      EXPECT_EQ(peer.ask("write w " + std::to_string(9 * kPerWriter + i) + " 100 " + size), "wrote 100");
    }
    expected += kRemote;
  }
  for (std::thread& thread : threads) thread.join();
  for (const Inbox* inbox : inboxes) {
    EXPECT_TRUE(eventually([&] { return inbox->count() >= expected; })) << [&] {
      std::map<std::uint64_t, std::uint64_t> of_writer;
      for (const std::uint64_t number : inbox->numbers()) ++of_writer[number / kPerWriter];
      std::string text;
      for (const auto& [writer, count] : of_writer)
        text += std::to_string(count) + " of writer " + std::to_string(writer) + ", ";
      return text + std::to_string(expected) + " in all were sent";
    }();
  }
  runtime().stop();
  for (const Inbox* inbox : inboxes) {
    std::map<std::uint64_t, std::uint64_t> next;
    for (const std::uint64_t number : inbox->numbers()) {
      ASSERT_EQ(number % kPerWriter, next[number / kPerWriter]++) << "of writer " << number / kPerWriter;
    }
    EXPECT_EQ(inbox->numbers().size(), expected);
  }
}

TEST_P(AnyExecutor, RunsNothingAfterStopWhileMessagesFlow) {
  const Node on = node();
  Inbox& inbox = subscribe(on, "/a", kSmall, keep_last(100));
  const std::array<Publisher*, 2> writers{&publisher("/a", kSmall, keep_last(100)),
                                          &publisher("/a", kSmall, keep_last(100))};
  Ticks& ticks = timer(on, 200us, 1, 1'000'000'000);
  std::atomic<bool> stopped{false};
  inbox.on_each = [&](const Received&) { EXPECT_FALSE(stopped) << "a message after the end"; };
  ticks.on_each = [&](Nanoseconds) { EXPECT_FALSE(stopped) << "a tick after the end"; };
  ASSERT_TRUE(matched(2));
  start();
  std::atomic<bool> enough{false};
  std::vector<std::thread> threads;
  for (Publisher* const writer : writers) {
    threads.emplace_back([&enough, writer] {
      for (std::uint64_t i = 0; !enough; ++i) {
        EXPECT_TRUE(send(*writer, kSmall, i));
        if (i % 20 == 0) std::this_thread::sleep_for(100us);
      }
    });
  }
  EXPECT_TRUE(eventually([&] { return inbox.count() > 500 && ticks.count() > 20; }));
  std::thread controller([&] {
    runtime().stop();
    stopped = true;
  });
  controller.join();
  const std::size_t at_the_end = inbox.count();
  std::this_thread::sleep_for(20ms);  // the writers go on
  enough = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(inbox.count(), at_the_end);
  runtime().stop();
}

INSTANTIATE_TEST_SUITE_P(, AnyExecutor, testing::ValuesIn(all_executors()), case_name);

// What holds for those that have a queue, that is, where a callback may publish what it subscribes.
class QueueingExecutor : public AnyExecutor {};

// A callback that publishes to its own topic keeps its subscription ready forever.
TEST_P(QueueingExecutor, AFloodStarvesNeitherAnotherSubscriptionNorATimer) {
  const perflab_qos qos = lossless(GetParam(), 100);
  const Node on = node();
  Inbox& flooded = subscribe(on, "/flood", kSmall, keep_last(100));
  Inbox& other = subscribe(on, "/other", kSmall, qos);
  Inbox& elsewhere = subscribe(node_on(on.executor), "/elsewhere", kSmall, qos);
  Publisher& flood = publisher("/flood", kSmall, keep_last(100));
  Publisher& to_other = publisher("/other", kSmall, qos);
  Publisher& to_elsewhere = publisher("/elsewhere", kSmall, qos);
  Ticks& ticks = timer(on, 100us, 1, 100);
  std::atomic<bool> enough{false};
  flooded.on_each = [&](const Received&) {
    if (!enough) {
      EXPECT_TRUE(send(flood, kSmall, 0));
    }
  };
  ASSERT_TRUE(matched());
  // From here on the publisher is the callback's.
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(send(flood, kSmall, 0));
  start();
  ASSERT_TRUE(eventually([&] { return flooded.count() > 100; }));
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(send(to_other, kSmall, i));
    ASSERT_TRUE(send(to_elsewhere, kSmall, i));
  }
  EXPECT_TRUE(eventually([&] { return other.count() == 100; })) << other.count();
  EXPECT_TRUE(eventually([&] { return elsewhere.count() == 100; })) << elsewhere.count();
  EXPECT_TRUE(timers_done()) << ticks.count();
  const std::size_t then = flooded.count();
  EXPECT_TRUE(eventually([&] { return flooded.count() > then; })) << "the flood had ended";
  enough = true;
  runtime().stop();
  EXPECT_EQ(other.numbers(), range(0, 100));
  EXPECT_EQ(ticks.count(), 100u);
}

// A backlog of one subscription takes turns with that of another, message by message.
TEST_P(QueueingExecutor, TakesOneMessagePerTurn) {
  const perflab_qos qos = lossless(GetParam(), 300);
  const Node on = node();
  Inbox& gate_keeper = subscribe(on, "/gate", kSmall, qos);
  Inbox& many = subscribe(on, "/many", kSmall, qos);
  Inbox& few = subscribe(on, "/few", kSmall, qos);
  Inbox& probe = subscribe(Lab::node(ExecutorKind::kInline), "/probe", kSmall, qos);
  Publisher& to_gate = publisher("/gate", kSmall, qos);
  Publisher& to_many = publisher("/many", kSmall, qos);
  Publisher& to_few = publisher("/few", kSmall, qos);
  Publisher& to_probe = publisher("/probe", kSmall, qos);
  Gate gate;
  gate_keeper.on_each = [&](const Received&) { gate.pass(); };
  std::vector<char> order;  // one group: never at the same time
  many.on_each = [&](const Received&) { order.push_back('m'); };
  few.on_each = [&](const Received&) { order.push_back('f'); };
  ASSERT_TRUE(matched());
  start();
  ASSERT_TRUE(send(to_gate, kSmall, 0));
  ASSERT_TRUE(eventually([&] { return gate_keeper.entered() == 1; }));  // the executor is held up in it
  for (std::uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(send(to_many, kSmall, i));
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(send(to_few, kSmall, i));
  // Sent after them, and handled in the thread that brings it: now all of them are there.
  ASSERT_TRUE(send(to_probe, kSmall, 0));
  ASSERT_TRUE(eventually([&] { return probe.count() == 1; }));
  gate.open();
  EXPECT_TRUE(eventually([&] { return many.count() == 200 && few.count() == 20; }));
  runtime().stop();
  for (std::size_t i = 0, fews = 0; i < order.size() && fews < 20; ++i) {
    if (order[i] == 'f') ++fews;
    // Two more than half of all so far are of the others at most.
    EXPECT_LE(i + 1 - fews, fews + 2) << "after " << fews << " messages";
  }
}

INSTANTIATE_TEST_SUITE_P(, QueueingExecutor, testing::ValuesIn(queueing_executors()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
