// multi_threaded: groups exclude within and run in parallel without.
#include <set>

#include "fixture.h"
#include "realtime/scheduling.h"

namespace perflab::runtime::conformance {
namespace {

class Groups : public Lab, public testing::WithParamInterface<bool> {
 protected:
  Groups() { open({.intra_process = GetParam()}); }
};

// Both callbacks wait until the other one runs: impossible one after the other.
TEST_P(Groups, TwoGroupsRunAtTheSameTime) {
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 2);
  Inbox& a = subscribe(on, "/a", keep_last(10), 1);
  Inbox& b = subscribe(on, "/b", keep_last(10), 2);
  Publisher& to_a = publisher("/a", keep_last(10));
  Publisher& to_b = publisher("/b", keep_last(10));
  Gate a_runs, b_runs;
  a.on_each = [&](const Delivery&) {
    a_runs.open();
    b_runs.pass();
  };
  b.on_each = [&](const Delivery&) {
    b_runs.open();
    a_runs.pass();
  };
  ASSERT_TRUE(all_matched(1));
  runtime().start(clock_.now());
  ASSERT_TRUE(send(to_a, 0));
  ASSERT_TRUE(send(to_b, 0));
  EXPECT_TRUE(eventually([&] { return a.count() == 1 && b.count() == 1; }));
  runtime().stop();
}

TEST_P(Groups, ATimerRunsWhileAnotherGroupIsBusy) {
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 2);
  Inbox& busy = subscribe(on, "/busy", keep_last(10), 1);
  Publisher& writer = publisher("/busy", keep_last(10));
  Ticks& ticks = timer(on, 1'000'000, 1, 20, false, 2);
  Gate gate;
  busy.on_each = [&](const Delivery&) { gate.pass(); };
  ASSERT_TRUE(all_matched(1));
  runtime().start(clock_.now());
  ASSERT_TRUE(send(writer, 0));
  EXPECT_TRUE(eventually([&] { return ticks.count() == 20; })) << ticks.count();
  gate.open();
  EXPECT_TRUE(eventually([&] { return busy.count() == 1; }));
  runtime().stop();
}

// Of the threads without work one waits for the next tick. When it leaves for a callback another takes its
// place.
TEST_P(Groups, ATimerRunsWhileThatOfAnotherGroupIsBusy) {
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 2);
  Ticks& busy = timer(on, 5'000'000, 1, 1, false, 1);
  Ticks& ticks = timer(on, 20'000'000, 1, 3, false, 2);
  Gate gate;
  busy.on_each = [&] { gate.pass(); };
  runtime().start(clock_.now());
  EXPECT_TRUE(eventually([&] { return ticks.count() == 3; })) << ticks.count();
  gate.open();
  EXPECT_TRUE(eventually([&] { return runtime().timers_done(); }));
  runtime().stop();
}

// ... and it takes work as well, though woken by nobody but a thread that has enough.
TEST_P(Groups, TheThreadThatWaitsForATickTakesWorkToo) {
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 3);
  Inbox& first = subscribe(on, "/first", keep_last(10), 1);
  Inbox& a = subscribe(on, "/a", keep_last(10), 2);
  Inbox& b = subscribe(on, "/b", keep_last(10), 3);
  Publisher& to_first = publisher("/first", keep_last(10));
  Publisher& to_a = publisher("/a", keep_last(10));
  Publisher& to_b = publisher("/b", keep_last(10));
  timer(on, 3'600'000'000'000, 1, 1, false, 4);
  Gate a_runs, b_runs;
  first.on_each = [&](const Delivery&) {
    EXPECT_TRUE(send(to_a, 0));
    EXPECT_TRUE(send(to_b, 0));
    a_runs.pass();
    b_runs.pass();
  };
  a.on_each = [&](const Delivery&) {
    a_runs.open();
    b_runs.pass();
  };
  b.on_each = [&](const Delivery&) {
    b_runs.open();
    a_runs.pass();
  };
  ASSERT_TRUE(all_matched(1));
  runtime().start(clock_.now());
  ASSERT_TRUE(send(to_first, 0));
  EXPECT_TRUE(eventually([&] { return first.count() + a.count() + b.count() == 3; }));
  runtime().stop();
}

// Three subscriptions and a timer of one group, four threads, and another group that keeps them busy.
TEST_P(Groups, CallbacksOfOneGroupExcludeEachOther) {
  constexpr std::uint64_t kMessages = 400;
  const perflab_qos qos = GetParam() ? keep_last(kMessages) : keep_all();
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 4);
  std::atomic<bool> running{false};
  std::vector<Inbox*> inboxes;
  std::vector<Publisher*> writers;
  for (const char* topic : {"/a", "/b", "/c", "/d"}) {
    const bool other_group = topic[1] == 'd';
    inboxes.push_back(&subscribe(on, topic, qos, other_group ? 8 : 7));
    if (!other_group) inboxes.back()->on_each = [&running](const Delivery&) { const Alone alone(running); };
    writers.push_back(&publisher(topic, qos));
  }
  Ticks& ticks = timer(on, 200'000, 1, 100, false, 7);
  ticks.on_each = [&running] { const Alone alone(running); };
  ASSERT_TRUE(all_matched(1));
  runtime().start(clock_.now());
  std::vector<std::thread> threads;
  for (Publisher* const writer : writers) {
    threads.emplace_back([writer] {
      for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_TRUE(send(*writer, i));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Inbox* inbox : inboxes) {
    EXPECT_TRUE(eventually([&] { return inbox->count() == kMessages; })) << inbox->count();
  }
  EXPECT_TRUE(eventually([&] { return runtime().timers_done(); }));
  runtime().stop();
  for (const Inbox* inbox : inboxes) EXPECT_EQ(inbox->numbers(), perflab::conformance::range(0, kMessages));
  EXPECT_EQ(ticks.count(), 100u);
}

TEST_P(Groups, ThreadsAreAsManyAsAskedForAndHaveNames) {
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 3, "executor_with_a_long_name");
  timer(on, 1'000'000, 1, 1);
  runtime().start(clock_.now());
  std::set<std::string> names;
  for (const realtime::ThreadState& thread : realtime::read_threads()) names.insert(thread.name);
  for (const char* name : {"executor_with.0", "executor_with.1", "executor_with.2"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
  EXPECT_FALSE(names.contains("executor_with.3"));
  runtime().stop();
}

INSTANTIATE_TEST_SUITE_P(, Groups, testing::Bool(), [](const auto& info) {
  return info.param ? "intra_process" : "through_the_middleware";
});

}  // namespace
}  // namespace perflab::runtime::conformance
