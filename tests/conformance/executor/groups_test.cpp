// multi_threaded: which thread takes what.
#include <set>

#include "fixture.h"
#include "realtime/scheduling.h"

namespace perflab::runtime::conformance {
namespace {

class Groups : public Lab, public testing::WithParamInterface<bool> {
 protected:
  Groups() { open({.intra_process = GetParam()}); }
};

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
