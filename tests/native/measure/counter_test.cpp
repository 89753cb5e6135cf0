#include "measure/counter.h"

#include <gtest/gtest.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <thread>

#include "measure/resources.h"
#include "realtime/thread.h"

namespace perflab::measure {
namespace {

// A software counter, available on every machine: CPU time, in nanoseconds.
constexpr ProcessCounter::Event kTaskClock{PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK};
constexpr ProcessCounter::Event kNoSuchEvent{PERF_TYPE_SOFTWARE, 9999};

TEST(ProcessCounter, CountsInThreadsThatAreStartedAfterItAndThatHaveEnded) {
  const ProcessCounter counter(kTaskClock);
  if (!counter.reason().empty()) GTEST_SKIP() << "perf_event_open: " << counter.reason();
  const auto before = counter.read();
  ASSERT_TRUE(before);
  std::thread([] { realtime::spend_cpu_time(20'000'000); }).join();
  std::thread outer([] { std::thread([] { realtime::spend_cpu_time(20'000'000); }).join(); });
  outer.join();
  realtime::spend_cpu_time(20'000'000);
  const auto after = counter.read();
  ASSERT_TRUE(after);
  EXPECT_GE(after->count - before->count, 58'000'000u);
  EXPECT_GT(after->enabled_ns, before->enabled_ns);
  EXPECT_EQ(after->running_ns, after->enabled_ns);  // software counters are never multiplexed
}

TEST(ProcessCounter, WhatIsNotThereIsNoCountAndSaysWhy) {
  const ProcessCounter counter(kNoSuchEvent);
  EXPECT_FALSE(counter.read());
  EXPECT_FALSE(counter.reason().empty());
}

TEST(ProcessCounter, CyclesAreCountedOrItSaysWhyNot) {
  const ProcessCounter cycles(ProcessCounter::kCycles);
  realtime::spend_cpu_time(5'000'000);
  const auto count = cycles.read();
  EXPECT_EQ(count.has_value(), cycles.reason().empty()) << cycles.reason();
}

TEST(CpuTimes, HaveTheProcessAndItsThreadsByName) {
  const MonotonicClock clock;
  realtime::spend_cpu_time(5'000'000);
  CpuTimes times;
  std::thread([&] {
    realtime::name_this_thread("busy (worker)");
    realtime::spend_cpu_time(20'000'000);
    times = cpu_times(clock);
  }).join();
  const auto found = std::ranges::find(times.threads, "busy (worker)", &CpuTimes::Thread::name);
  ASSERT_NE(found, times.threads.end());
  EXPECT_GE(found->cpu_ns, 20'000'000);
  EXPECT_GE(times.cpu_ns, found->cpu_ns + 5'000'000);
  EXPECT_LE(times.at_ns, clock.now());
}

}  // namespace
}  // namespace perflab::measure
