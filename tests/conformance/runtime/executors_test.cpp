// Executors: what may run at the same time, in which threads, at what cost.
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <map>
#include <set>

#include "lab.h"
#include "realtime/scheduling.h"

namespace perflab::runtime::conformance {
namespace {

struct Span {
  Nanoseconds begin_ns;
  Nanoseconds end_ns;
};

void expect_none_at_the_same_time(std::vector<Span> spans) {
  std::ranges::sort(spans, {}, &Span::begin_ns);
  for (std::size_t i = 1; i < spans.size(); ++i)
    EXPECT_LE(spans[i - 1].end_ns, spans[i].begin_ns) << "callbacks " << i - 1 << " and " << i;
}

template <typename From>
void append(std::vector<Span>& to, const From& from) {
  for (const auto& one : from) to.push_back({one.begin_ns, one.end_ns});
}

class Groups : public AnyExecutor {};

// Three subscriptions, a server, a waitable and a timer of one node, and another node that keeps the executor
// busy.
TEST_P(Groups, CallbacksOfOneNodeExcludeEachOther) {
  ASSERT_FALSE(concurrent_callbacks(GetParam().kind));
  constexpr std::uint64_t kMessages = 60;
  const ServiceKind kind = service_kind("stamped10b");
  const Node on = node(4);
  const Node other = node_on(on.executor);
  const Node asking = Lab::node(ExecutorKind::kSingleThreaded);
  const auto work = [&] { runtime().work(20'000); };
  std::vector<Inbox*> inboxes;
  for (const char* topic : {"/a", "/b", "/c", "/d"}) {
    inboxes.push_back(&subscribe(topic[1] == 'd' ? other : on, topic, kSmall));
    inboxes.back()->on_each = [&](const Received&) { work(); };
    const Node from = Lab::node(ExecutorKind::kSingleThreaded);
    Publisher& writer = publisher_of(from, topic, kSmall);
    timer(from, 10ms, 1, 1).on_each = [&writer](Nanoseconds) {
      for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_TRUE(send(writer, kSmall, i));
    };
  }
  Echo& echo = serve(on, "/add", kind);
  echo.on_each = work;
  Inbox& replies = inbox(kind.reply);
  Client& asker = client(asking, "/add", kind, replies);
  timer(asking, 10ms, 1, 1).on_each = [&](Nanoseconds) {
    for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_TRUE(request(asker, kind, i));
  };
  const Guarded guarded = waitable(on);
  guarded.answers->on_each = [&](Nanoseconds) { work(); };
  Ticks& ticks = timer(on, 500us, 1, 80);
  ticks.on_each = [&](Nanoseconds due) {
    guarded.endpoint->trigger(due);
    work();
  };
  ASSERT_TRUE(matched());
  ASSERT_TRUE(eventually([&] { return asker.matched() == 1; }));
  start();
  for (const Inbox* inbox : inboxes)
    EXPECT_TRUE(eventually([&] { return inbox->count() >= kMessages; })) << inbox->count();
  EXPECT_TRUE(eventually([&] { return replies.count() >= kMessages; })) << replies.count();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] { return guarded.answers->answered() == ticks.count(); }));
  runtime().stop();
  std::vector<Span> spans;
  for (const Inbox* inbox : inboxes) {
    EXPECT_EQ(inbox->numbers(), range(0, kMessages));
    if (inbox != inboxes.back()) append(spans, inbox->messages());
  }
  append(spans, echo.requests());
  append(spans, guarded.answers->all());
  for (const Ticks::Tick& tick : ticks.all()) {
    if (tick.skipped == 0) spans.push_back({tick.begin_ns, tick.end_ns});
  }
  EXPECT_EQ(spans.size(), 4 * kMessages + ticks.count() + guarded.answers->executed());
  expect_none_at_the_same_time(spans);
}

// Each callback waits until the other one runs: impossible one after the other. In virtual time their times
// say so.
TEST_P(Groups, CallbacksOfTwoNodesRunAtTheSameTimeWhereThereAreSeveralThreads) {
  const Node here = node(2);
  const Node there = node_on(here.executor);
  Inbox& a = subscribe(here, "/a", kSmall);
  Inbox& b = subscribe(there, "/b", kSmall);
  Publisher& to_a = publisher("/a", kSmall);
  Publisher& to_b = publisher("/b", kSmall);
  const bool parallel = GetParam().kind == ExecutorKind::kMultiThreaded;
  const auto meet = [&, parallel](Inbox& other) {
    return [this, &other, parallel](const Received&) {
      if (parallel) {
        hold(5ms, [&] { return other.entered() == 1; });
      } else {
        runtime().work(5'000'000);
      }
    };
  };
  a.on_each = meet(b);
  b.on_each = meet(a);
  at(10ms, [&] {
    EXPECT_TRUE(send(to_a, kSmall, 0));
    EXPECT_TRUE(send(to_b, kSmall, 0));
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return a.count() + b.count() == 2; }));
  runtime().stop();
  ASSERT_EQ(a.count() + b.count(), 2u);
  const Received first = a.messages().front();
  const Received second = b.messages().front();
  const bool overlap = first.begin_ns < second.end_ns && second.begin_ns < first.end_ns;
  EXPECT_EQ(overlap, parallel);
}

INSTANTIATE_TEST_SUITE_P(, Groups, testing::ValuesIn(queueing_executors()), case_name);

class Work : public AnyExecutor {};

std::int64_t cpu_time_of_this_thread() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::int64_t>(time.tv_sec) * kNanosecondsPerSecond + time.tv_nsec;
}

TEST_P(Work, SpendsTheTimeOfTheCallback) {
  constexpr Nanoseconds kAmount = 3'000'000;
  const Node on = node();
  std::atomic<int> checked{0};
  const auto work = [&] {
    const Nanoseconds clock_before = now();
    const std::int64_t cpu_before = cpu_time_of_this_thread();
    runtime().work(kAmount);
    if (real_time()) {
      EXPECT_GE(cpu_time_of_this_thread() - cpu_before, kAmount);
    } else {
      EXPECT_EQ(now() - clock_before, kAmount);
    }
    ++checked;
  };
  Inbox& inbox = subscribe(on, "/a", kSmall);
  inbox.on_each = [&](const Received&) { work(); };
  Publisher& writer = publisher("/a", kSmall);
  at(10ms, [&] { EXPECT_TRUE(send(writer, kSmall, 0)); });
  timer(on, 10ms, 1, 2).on_each = [&](Nanoseconds) { work(); };
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] { return inbox.count() == 1; }));
  runtime().stop();
  EXPECT_GE(checked, 2);
}

INSTANTIATE_TEST_SUITE_P(, Work, testing::ValuesIn(all_executors()), case_name);

// ---- threads ----

class Threads : public AnyExecutor {};

// Virtual time has no threads to schedule.
std::vector<Case> executors_with_threads() {
  return subject().abilities().schedules_threads ? all_executors() : std::vector<Case>{};
}

std::string name_of_this_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

realtime::ThreadState this_thread() {
  return realtime::read_thread(gettid()).value_or(realtime::ThreadState{});
}

TEST_P(Threads, HaveTheirExecutorsName) {
  const Node on = node_on(executor(GetParam().kind, 1, "named_executor_x"));  // 16 bytes: one too many
  Inbox& inbox = subscribe(on, "/a", kSmall);
  Publisher& writer = publisher("/a", kSmall);
  at(10ms, [&] { EXPECT_TRUE(send(writer, kSmall, 0)); });
  Ticks& ticks = timer(on, 5ms, 1, 4);
  ticks.on_each = [](Nanoseconds) { EXPECT_EQ(name_of_this_thread(), "named_executor_"); };
  if (GetParam().kind != ExecutorKind::kInline)
    inbox.on_each = [](const Received&) { EXPECT_EQ(name_of_this_thread(), "named_executor_"); };
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] { return inbox.count() == 1; }));
  runtime().stop();
  EXPECT_GE(ticks.count(), 1u);
}

TEST_P(Threads, AreAsManyAsAskedFor) {
  constexpr int kThreads = 3;
  const Node on = node_on(executor(GetParam().kind, kThreads, "counted"));
  timer(on, 20ms, 1, 1'000'000);  // inline's thread ends with its timers
  start();
  const std::size_t wanted = GetParam().kind == ExecutorKind::kMultiThreaded ? kThreads : 1;
  // While it runs: a thread may name itself.
  std::set<int> found;
  EXPECT_TRUE(eventually([&] {
    for (const realtime::ThreadState& thread : realtime::read_threads()) {
      if (thread.name.starts_with("counted")) found.insert(thread.tid);
    }
    return found.size() >= wanted;
  })) << found.size();
  runtime().stop();
  // What rclcpp's EventsExecutor starts for itself has its name as well.
  if (GetParam().kind != ExecutorKind::kEvents) {
    EXPECT_EQ(found.size(), wanted);
  }
}

// Of one thread, and in it, but for inline's messages.
TEST_P(Threads, RunEveryCallbackOfTheirExecutor) {
  const Node here = node(2);
  const Node there = node_on(here.executor);
  std::mutex mutex;
  std::map<int, std::string> threads;
  const auto note = [&] {
    const std::lock_guard lock(mutex);
    threads[gettid()] = name_of_this_thread();
  };
  Inbox& a = subscribe(here, "/a", kSmall);
  Inbox& b = subscribe(there, "/b", kSmall);
  Publisher& to_a = publisher("/a", kSmall);
  Publisher& to_b = publisher("/b", kSmall);
  if (GetParam().kind != ExecutorKind::kInline) {
    for (Inbox* inbox : {&a, &b}) inbox->on_each = [&](const Received&) { note(); };
  }
  for (const Node& on : {here, there}) timer(on, 2ms, 1, 10).on_each = [&](Nanoseconds) { note(); };
  at(5ms, [&] {
    for (std::uint64_t i = 0; i < 20; ++i) {
      EXPECT_TRUE(send(to_a, kSmall, i));
      EXPECT_TRUE(send(to_b, kSmall, i));
    }
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] { return a.count() == 20 && b.count() == 20; }));
  runtime().stop();
  const std::lock_guard lock(mutex);
  EXPECT_LE(threads.size(), GetParam().kind == ExecutorKind::kMultiThreaded ? 2u : 1u);
  for (const auto& [tid, name] : threads) EXPECT_TRUE(name.starts_with("executor_0")) << name;
}

TEST_P(Threads, RunWhereTheyWereAskedToRun) {
  const int cpu = this_thread().cpus.back();
  const realtime::ThreadSettings asked{.policy = std::nullopt, .priority = 0, .cpus = {cpu}};
  const Node on = node_on(executor(GetParam().kind, 2, "pinned", asked));
  Ticks& ticks = timer(on, 2ms, 1, 10);
  ticks.on_each = [&](Nanoseconds) { EXPECT_EQ(realtime::difference(asked, this_thread()), ""); };
  start();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  EXPECT_GE(ticks.count(), 1u);
}

TEST_P(Threads, HaveTheirPolicyOrNothingRuns) {
  const realtime::ThreadSettings asked{.policy = realtime::Policy::kRoundRobin, .priority = 3, .cpus = {}};
  bool permitted = true;
  try {
    const realtime::Inherited inherited(asked);
  } catch (const realtime::SchedulingError&) {
    permitted = false;
  }
  const Node on = node_on(executor(GetParam().kind, 2, "urgent", asked));
  Ticks& ticks = timer(on, 2ms, 1, 10);
  ticks.on_each = [&](Nanoseconds) { EXPECT_EQ(realtime::difference(asked, this_thread()), ""); };
  if (!permitted) {
    expect_error([&] { start(); }, Error::Kind::kUnsupported, {"urgent"});
    runtime().stop();
    EXPECT_EQ(ticks.count(), 0u);
    return;
  }
  start();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  EXPECT_GE(ticks.count(), 1u);
}

TEST_P(Threads, ThatCannotHaveTheirSettingsKeepEverythingFromRunning) {
  const Node possible = node();
  const Node impossible = node_on(
      executor(GetParam().kind, 2, "executor_x", {.policy = std::nullopt, .priority = 0, .cpus = {1'000}}));
  Ticks& some = timer(possible, 1ms, 1, 1'000);
  Ticks& none = timer(impossible, 1ms, 1, 1'000);
  Inbox& inbox = subscribe(possible, "/a", kSmall);
  Publisher& writer = publisher("/a", kSmall);
  ASSERT_TRUE(matched());
  expect_error([&] { start(); }, Error::Kind::kUnsupported, {"executor_x", "1000"});
  EXPECT_TRUE(send(writer, kSmall, 0));
  std::this_thread::sleep_for(20ms);  // so that what runs all the same is seen
  runtime().stop();
  EXPECT_EQ(some.count() + none.count() + inbox.entered(), 0u);
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Threads);
INSTANTIATE_TEST_SUITE_P(, Threads, testing::ValuesIn(executors_with_threads()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
