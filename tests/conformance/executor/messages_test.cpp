// Messages under pressure: every one, once, in order; nobody starves, nothing runs after the end. What holds
// for every runtime is in conformance/runtime.
#include <algorithm>
#include <map>

#include "../middleware/peer.h"
#include "fixture.h"

namespace perflab::runtime::conformance {
namespace {

using perflab::conformance::Peer;
using perflab::conformance::range;

constexpr std::uint64_t kPerWriter = 1'000'000;  // numbers of a writer begin at its index times this

TEST_P(AnyExecutor, SaysWhenAMessageOfThisProcessCame) {
  if (!GetParam().intra_process) return;
  Inbox& inbox = subscribe(executor(), "/a", keep_last(10));
  Publisher& writer = publisher("/a", keep_last(10));
  std::atomic<Nanoseconds> arrived{kUnknownTime};
  inbox.on_each = [&](const Delivery& delivery) { arrived = delivery.arrived_ns; };
  runtime().start(clock_.now());
  const Nanoseconds before = clock_.now();
  ASSERT_TRUE(send(writer, 7));
  ASSERT_TRUE(eventually([&] { return inbox.count() == 1; }));
  EXPECT_GE(arrived, before);
  runtime().stop();
}

// Several threads of this process and another process send to the same two subscriptions, with pauses in
// which the executor falls asleep: a wake-up that is lost shows as messages that are not handled.
TEST_P(AnyExecutor, LosesNoWakeUpWhenManySendAtOnce) {
  constexpr std::uint64_t kThreads = 3;
  constexpr std::uint64_t kMessages = 1'500;
  constexpr std::uint64_t kRemote = 1'500;
  constexpr auto kAll = static_cast<int>(kThreads * kMessages + kRemote);
  const std::size_t on = executor(3);
  Inbox& first = subscribe(on, "/conformance", lossless(kAll), 0);
  Inbox& second = subscribe(on, "/conformance", lossless(kAll), 1);
  std::vector<Publisher*> writers;
  for (std::uint64_t i = 0; i < kThreads; ++i) writers.push_back(&publisher("/conformance", lossless(kAll)));
  Peer peer(subject().plugin, domain_.id());
  const std::string type = perflab::conformance::kType;
  if (plugin_.capabilities().across_processes) {
    peer.ask("writer w rt/conformance " + type +
             (GetParam().intra_process ? " keep_last reliable volatile " + std::to_string(kAll)
                                       : " keep_all reliable volatile 1"));
    ASSERT_TRUE(all_matched(kThreads + 1));
    ASSERT_EQ(peer.ask("wait_matched w 2"), "ok");
  } else {
    ASSERT_TRUE(all_matched(kThreads));
  }
  runtime().start(clock_.now());

  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < kMessages; ++i) {
        EXPECT_TRUE(send(*writers[t], (t + 1) * kPerWriter + i));
        if (i % 50 == t) std::this_thread::sleep_for(1ms);
      }
    });
  }
  std::uint64_t expected = kThreads * kMessages;
  if (plugin_.capabilities().across_processes) {
    for (std::uint64_t i = 0; i < kRemote; i += 100) {
      EXPECT_EQ(
          peer.ask("write w " + std::to_string(9 * kPerWriter + i) + " 100 " + std::to_string(kMessageBytes)),
          "wrote 100");
    }
    expected += kRemote;
  }
  for (std::thread& thread : threads) thread.join();
  for (const Inbox* inbox : {&first, &second}) {
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
  for (const Inbox* inbox : {&first, &second}) {
    std::map<std::uint64_t, std::uint64_t> next;
    for (const std::uint64_t number : inbox->numbers()) {
      ASSERT_EQ(number % kPerWriter, next[number / kPerWriter]++) << "of writer " << number / kPerWriter;
    }
    EXPECT_EQ(inbox->numbers().size(), expected);
  }
  EXPECT_TRUE(sink_.write_failures().empty());
}

// A message that comes after take() has found nothing, and before the executor knows that: only the double
// can do this at will. For a wait-set nothing is ever taken in vain.
TEST_P(AnyExecutor, LosesNoMessageThatComesWhileItLeaves) {
  if (plugin_.name() != "double" || GetParam().kind == ExecutorKind::kSingleThreaded ||
      GetParam().intra_process) {
    return;
  }
  const std::size_t on = executor();
  Inbox& inbox = subscribe(on, "/late", keep_all());
  Publisher& writer = publisher("/late", keep_all());
  runtime().start(clock_.now());
  ASSERT_TRUE(send(writer, 5));
  EXPECT_TRUE(eventually([&] { return inbox.count() == 11; })) << inbox.count();
  runtime().stop();
}

TEST_P(AnyExecutor, RunsNothingAfterStopWhileMessagesFlow) {
  const std::size_t on = executor();
  Inbox& inbox = subscribe(on, "/a", keep_last(100));
  std::vector<Publisher*> writers{&publisher("/a", keep_last(100)), &publisher("/a", keep_last(100))};
  Ticks& ticks = timer(on, 200'000, 1, 1'000'000'000);
  std::atomic<bool> stopped{false};
  inbox.on_each = [&](const Delivery&) { EXPECT_FALSE(stopped) << "a message after the end"; };
  ticks.on_each = [&] { EXPECT_FALSE(stopped) << "a tick after the end"; };
  ASSERT_TRUE(all_matched(2));
  runtime().start(clock_.now());
  std::atomic<bool> enough{false};
  std::vector<std::thread> threads;
  for (Publisher* const writer : writers) {
    threads.emplace_back([&enough, writer] {
      for (std::uint64_t i = 0; !enough; ++i) {
        EXPECT_TRUE(send(*writer, i));
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

// A callback that publishes to its own topic keeps its subscription ready for ever.
TEST_P(QueueingExecutor, AFloodStarvesNeitherAnotherSubscriptionNorATimer) {
  const std::size_t on = executor();
  Inbox& flooded = subscribe(on, "/flood", keep_last(100));
  Inbox& other = subscribe(on, "/other", lossless(100));
  Inbox& elsewhere = subscribe(on, "/elsewhere", lossless(100), 1);
  Publisher& flood = publisher("/flood", keep_last(100));
  Publisher& to_other = publisher("/other", lossless(100));
  Publisher& to_elsewhere = publisher("/elsewhere", lossless(100));
  Ticks& ticks = timer(on, 100'000, 1, 100);
  std::atomic<bool> enough{false};
  flooded.on_each = [&](const Delivery&) {
    if (!enough) {
      EXPECT_TRUE(send(flood, 0));
    }
  };
  ASSERT_TRUE(all_matched(1));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(send(flood, 0));  // from here on the publisher is the callback's
  runtime().start(clock_.now());
  ASSERT_TRUE(eventually([&] { return flooded.count() > 100; }));
  for (std::uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(send(to_other, i));
    ASSERT_TRUE(send(to_elsewhere, i));
  }
  EXPECT_TRUE(eventually([&] { return other.count() == 100; })) << other.count();
  EXPECT_TRUE(eventually([&] { return elsewhere.count() == 100; })) << elsewhere.count();
  EXPECT_TRUE(eventually([&] { return runtime().timers_done(); })) << ticks.count();
  const std::size_t then = flooded.count();
  EXPECT_TRUE(eventually([&] { return flooded.count() > then; })) << "the flood had ended";
  enough = true;
  runtime().stop();
  EXPECT_EQ(other.numbers(), range(0, 100));
  EXPECT_EQ(ticks.count(), 100u);
}

// A backlog of one subscription takes turns with that of another, message by message.
TEST_P(QueueingExecutor, TakesOneMessagePerTurn) {
  const std::size_t on = executor();
  const std::size_t aside = Lab::executor(ExecutorKind::kInline, 0, "executor_1");
  Inbox& gate_keeper = subscribe(on, "/gate", lossless(10));
  Inbox& many = subscribe(on, "/many", lossless(300));
  Inbox& few = subscribe(on, "/few", lossless(300));
  Inbox& probe = subscribe(aside, "/probe", lossless(10));
  Publisher& to_gate = publisher("/gate", lossless(10));
  Publisher& to_many = publisher("/many", lossless(300));
  Publisher& to_few = publisher("/few", lossless(300));
  Publisher& to_probe = publisher("/probe", lossless(10));
  Gate gate;
  gate_keeper.on_each = [&](const Delivery&) { gate.pass(); };
  std::vector<char> order;  // one group: never at the same time
  many.on_each = [&](const Delivery&) { order.push_back('m'); };
  few.on_each = [&](const Delivery&) { order.push_back('f'); };
  ASSERT_TRUE(all_matched(1));
  runtime().start(clock_.now());
  ASSERT_TRUE(send(to_gate, 0));
  ASSERT_TRUE(eventually([&] { return !gate_keeper.numbers().empty(); }));  // the executor is held up in it
  for (std::uint64_t i = 0; i < 200; ++i) ASSERT_TRUE(send(to_many, i));
  for (std::uint64_t i = 0; i < 20; ++i) ASSERT_TRUE(send(to_few, i));
  // Sent after them, and handled in the thread that brings it: now all of them are there.
  ASSERT_TRUE(send(to_probe, 0));
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

INSTANTIATE_TEST_SUITE_P(, AnyExecutor, testing::ValuesIn(all_executors()), case_name);
INSTANTIATE_TEST_SUITE_P(, QueueingExecutor, testing::ValuesIn(queueing_executors()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
