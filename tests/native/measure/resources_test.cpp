#include "measure/resources.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>

#include "realtime/thread.h"

namespace perflab::measure {
namespace {

TEST(ResourceSampler, TheFirstSampleHasNoInterval) {
  const MonotonicClock clock;
  ResourceSampler sampler(clock);
  const ResourceSample sample = sampler.sample();
  EXPECT_FALSE(sample.interval_ns);
  EXPECT_FALSE(sample.cpu_interval_ns);
  EXPECT_GT(sample.cpu_ns, 0);
  ASSERT_TRUE(sample.rss_kb && sample.rss_peak_kb && sample.vsz_kb);
  EXPECT_GT(*sample.rss_kb, 0);
  EXPECT_GE(*sample.rss_peak_kb, *sample.rss_kb);
  EXPECT_GE(*sample.vsz_kb, *sample.rss_kb);
}

TEST(ResourceSampler, FindsTheCpuTimeOfANamedThread) {
  const MonotonicClock clock;
  ResourceSampler sampler(clock);
  std::mutex mutex;
  std::condition_variable changed;
  bool worked = false;
  bool leave = false;
  sampler.sample();
  std::thread worker([&] {
    realtime::name_this_thread("busy (worker)");
    realtime::spend_cpu_time(30'000'000);
    std::unique_lock lock(mutex);
    worked = true;
    changed.notify_all();
    changed.wait(lock, [&] { return leave; });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return worked; });
  }
  const ResourceSample sample = sampler.sample();
  {
    const std::lock_guard lock(mutex);
    leave = true;
  }
  changed.notify_all();
  worker.join();
  const auto found = std::ranges::find(sample.threads, "busy (worker)", &ThreadSample::name);
  ASSERT_NE(found, sample.threads.end());
  EXPECT_GE(found->cpu_interval_ns, 30'000'000);
  EXPECT_EQ(found->cpu_interval_ns, found->cpu_ns);
  EXPECT_TRUE(found->cpu);
  EXPECT_TRUE(found->voluntary_switches);
  ASSERT_TRUE(sample.cpu_interval_ns);
  EXPECT_GE(*sample.cpu_interval_ns, 30'000'000);
}

TEST(ResourceSampler, AllocationsThatNobodyCountsAreNotZero) {
  const MonotonicClock clock;
  const ResourceSample sample = ResourceSampler(clock).sample();
  EXPECT_FALSE(sample.allocations);
  ASSERT_FALSE(sample.threads.empty());
  for (const ThreadSample& thread : sample.threads) EXPECT_FALSE(thread.allocations);
}

TEST(ResourceSampler, MemoryThatIsTouchedShows) {
  const MonotonicClock clock;
  ResourceSampler sampler(clock);
  const ResourceSample before = sampler.sample();
  std::vector<char> block(64 << 20, 1);
  const ResourceSample after = sampler.sample();
  EXPECT_GE(*after.rss_peak_kb, *before.rss_kb + (60 << 10));
  EXPECT_EQ(block[block.size() / 2], 1);
}

TEST(SpendCpuTime, SpendsAtLeastThatMuch) {
  timespec before{}, after{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
  realtime::spend_cpu_time(5'000'000);
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
  EXPECT_GE((after.tv_sec - before.tv_sec) * 1'000'000'000 + after.tv_nsec - before.tv_nsec, 5'000'000);
}

}  // namespace
}  // namespace perflab::measure
