#include "measure/resources.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <latch>
#include <mutex>
#include <string>
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

// Threads that have run once, and now wait.
class Waiting {
 public:
  explicit Waiting(std::ptrdiff_t count) : ready_(count + 1) {
    for (std::ptrdiff_t i = 0; i < count; ++i) {
      threads_.emplace_back([this, i] {
        realtime::name_this_thread("waits " + std::to_string(i));
        ready_.arrive_and_wait();
        leave_.wait();
      });
    }
    ready_.arrive_and_wait();
  }
  ~Waiting() {
    leave_.count_down();
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::latch ready_;
  std::latch leave_{1};
  std::vector<std::thread> threads_;
};

// State of a thread of this process in /proc: 'R' runs or waits for a CPU, 'S' sleeps; 0 if it does not
// exist.
char state_of(pid_t tid) {
  std::ifstream file("/proc/self/task/" + std::to_string(tid) + "/stat");
  const std::string line{std::istreambuf_iterator<char>(file), {}};
  const std::size_t name_ends = line.rfind(") ");
  return name_ends == std::string::npos ? '\0' : line.at(name_ends + 2);
}

std::ptrdiff_t open_files() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
}

TEST(ResourceSampler, AThreadThatDoesNotRunKeepsItsFigures) {
  const MonotonicClock clock;
  ResourceSampler sampler(clock);
  const Waiting waiting(1);
  const auto found = [&] {
    const std::vector<ThreadSample> threads = sampler.sample().threads;
    const auto at = std::ranges::find(threads, "waits 0", &ThreadSample::name);
    return at == threads.end() ? ThreadSample{} : *at;
  };
  // Waits until it sleeps: a thread that is preempted does not run either, but continues later.
  ThreadSample before = found();
  while (state_of(before.tid) != 'S') before = found();
  before = found();
  const ThreadSample after = found();
  EXPECT_GT(after.tid, 0);
  EXPECT_EQ(after.tid, before.tid);
  EXPECT_EQ(after.cpu_interval_ns, 0);
  EXPECT_EQ(after.cpu_ns, before.cpu_ns);
  EXPECT_GT(after.cpu_ns, 0);
  EXPECT_EQ(after.cpu, before.cpu);
  EXPECT_TRUE(after.cpu);
  EXPECT_EQ(after.voluntary_switches, before.voluntary_switches);
  EXPECT_TRUE(after.voluntary_switches);
}

TEST(ResourceSampler, FindsAnyNumberOfThreadsWithABoundedNumberOfOpenFiles) {
  constexpr std::ptrdiff_t kThreads = 200;
  const MonotonicClock clock;
  ResourceSampler sampler(clock);
  const std::ptrdiff_t before = open_files();
  {
    const Waiting waiting(kThreads);
    // No more files are open during a sample, either.
    rlimit limit{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const rlimit few{static_cast<rlim_t>(before + 210), limit.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
    for (int i = 0; i < 2; ++i) {
      const std::vector<ThreadSample> threads = sampler.sample().threads;
      EXPECT_EQ(std::ranges::count_if(threads, [](const auto& t) { return t.name.starts_with("waits "); }),
                kThreads);
      for (const ThreadSample& thread : threads) EXPECT_TRUE(thread.voluntary_switches) << thread.name;
    }
    EXPECT_LE(open_files() - before, 200);
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  const std::vector<ThreadSample> threads = sampler.sample().threads;
  EXPECT_TRUE(std::ranges::none_of(threads, [](const auto& t) { return t.name.starts_with("waits "); }));
  EXPECT_LE(open_files() - before, 3 * static_cast<std::ptrdiff_t>(threads.size()));
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
