// multi_threaded: which thread takes what.
#include <set>

#include "../runtime/lab.h"
#include "realtime/scheduling.h"

namespace perflab::runtime::conformance {
namespace {

class Groups : public Lab, public testing::WithParamInterface<bool> {
 protected:
  Groups() { open({.intra_process = GetParam()}); }
};

TEST_P(Groups, ATimerRunsWhileAnotherGroupIsBusy) {
  const Node on = node(ExecutorKind::kMultiThreaded, 2);
  Inbox& busy = subscribe(on, "/busy", kSmall);
  Publisher& writer = publisher("/busy", kSmall);
  Ticks& ticks = timer(node_on(on.executor), 1ms, 1, 20);
  Gate gate;
  busy.on_each = [&](const Received&) { gate.pass(); };
  ASSERT_TRUE(matched());
  start();
  ASSERT_TRUE(send(writer, kSmall, 0));
  EXPECT_TRUE(eventually([&] { return ticks.count() == 20; })) << ticks.count();
  gate.open();
  EXPECT_TRUE(eventually([&] { return busy.count() == 1; }));
  runtime().stop();
}

// Of the threads without work one waits for the next tick. When it leaves for a callback another takes its
// place.
TEST_P(Groups, ATimerRunsWhileThatOfAnotherGroupIsBusy) {
  const Node on = node(ExecutorKind::kMultiThreaded, 2);
  Ticks& busy = timer(on, 5ms, 1, 1);
  Ticks& ticks = timer(node_on(on.executor), 20ms, 1, 3);
  Gate gate;
  busy.on_each = [&](Nanoseconds) { gate.pass(); };
  start();
  EXPECT_TRUE(eventually([&] { return ticks.count() == 3; })) << ticks.count();
  gate.open();
  EXPECT_TRUE(timers_done());
  runtime().stop();
}

// ... and it takes work as well, though woken by nobody but a thread that has enough.
TEST_P(Groups, TheThreadThatWaitsForATickTakesWorkToo) {
  const Node on = node(ExecutorKind::kMultiThreaded, 3);
  Inbox& first = subscribe(on, "/first", kSmall);
  Inbox& a = subscribe(node_on(on.executor), "/a", kSmall);
  Inbox& b = subscribe(node_on(on.executor), "/b", kSmall);
  Publisher& to_first = publisher("/first", kSmall);
  Publisher& to_a = publisher("/a", kSmall);
  Publisher& to_b = publisher("/b", kSmall);
  timer(node_on(on.executor), 1h, 1, 1);
  Gate a_runs, b_runs;
  first.on_each = [&](const Received&) {
    EXPECT_TRUE(send(to_a, kSmall, 0));
    EXPECT_TRUE(send(to_b, kSmall, 0));
    a_runs.pass();
    b_runs.pass();
  };
  a.on_each = [&](const Received&) {
    a_runs.open();
    b_runs.pass();
  };
  b.on_each = [&](const Received&) {
    b_runs.open();
    a_runs.pass();
  };
  ASSERT_TRUE(matched());
  start();
  ASSERT_TRUE(send(to_first, kSmall, 0));
  EXPECT_TRUE(eventually([&] { return first.count() + a.count() + b.count() == 3; }));
  runtime().stop();
}

TEST_P(Groups, ThreadsAreAsManyAsAskedForAndHaveNames) {
  const Node on = node_on(executor(ExecutorKind::kMultiThreaded, 3, "executor_with_a_long_name"));
  timer(on, 1ms, 1, 1);
  start();
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
