// libperflab_allocations.so counts every call of the allocator exactly, by thread and for the process.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "measure/allocation_counts.h"
#include "measure/resources.h"
#include "program/symbols.h"

namespace perflab::measure {
namespace {

const auto g_process = reinterpret_cast<ProcessAllocations>(dlsym(RTLD_DEFAULT, kProcessAllocations));
const auto g_thread = reinterpret_cast<ThreadAllocations>(dlsym(RTLD_DEFAULT, kThreadAllocations));

AllocationCounts of_process() {
  AllocationCounts counts;
  g_process(&counts);
  return counts;
}

std::uint64_t of_thread(int tid) {
  std::uint64_t count = 0;
  EXPECT_TRUE(g_thread(tid, &count));
  return count;
}

// Hides from the compiler that the memory is unused.
void* kept(void* memory) {
  asm volatile("" : "+r"(memory) : : "memory");
  return memory;
}

struct Change {
  AllocationCounts process;
  std::uint64_t thread = 0;
};

// The change of the counters by `action` while no other thread runs.
template <typename Action>
Change change_of(const Action& action) {
  const AllocationCounts before = of_process();
  const std::uint64_t thread_before = of_thread(gettid());
  action();
  const AllocationCounts after = of_process();
  return {{after.count - before.count, after.bytes - before.bytes, after.frees - before.frees},
          of_thread(gettid()) - thread_before};
}

void expect_change(const Change& change, std::uint64_t count, std::uint64_t bytes, std::uint64_t frees) {
  EXPECT_EQ(change.process.count, count);
  EXPECT_EQ(change.process.bytes, bytes);
  EXPECT_EQ(change.process.frees, frees);
  EXPECT_EQ(change.thread, count);
}

// Planted allocations: their function is not inlined, and does something after the call, so that it is on the
// stack.
[[gnu::noinline]] void planted_allocation(std::size_t size) {
  std::free(kept(std::malloc(size)));
  asm volatile("");
}
[[gnu::noinline]] void caller_of_the_planted(int times) {
  for (int i = 0; i < times; ++i) planted_allocation(40);
  asm volatile("");
}
[[gnu::noinline]] void planted_new() {
  delete static_cast<int*>(kept(new int(1)));
  asm volatile("");
}

struct Found {
  int tid = 0;
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> functions;
};

std::vector<Found> sites_with(const std::string& function) {
  static const auto sites = reinterpret_cast<AllocationSites>(dlsym(RTLD_DEFAULT, kAllocationSites));
  std::vector<AllocationSite> all;
  all.reserve(5'000);
  EXPECT_EQ(sites([](void* to, const AllocationSite* site) { static_cast<std::vector<AllocationSite>*>(to)->push_back(*site); },
                  &all),
            0u);
  node::Symbols symbols;
  std::vector<Found> found;
  for (const AllocationSite& site : all) {
    Found one{site.tid, site.count, site.bytes, {}};
    for (std::size_t i = 0; i < site.depth; ++i) one.functions.push_back(symbols.at(site.frames[i]).function);
    for (const std::string& name : one.functions) {
      if (name.find(function) == std::string::npos) continue;
      found.push_back(one);
      break;
    }
  }
  return found;
}

bool watch(bool on) {
  static const auto watching = reinterpret_cast<WatchAllocations>(dlsym(RTLD_DEFAULT, kWatchAllocations));
  return watching(on);
}

TEST(Sites, APlantedAllocationIsFoundByThreadAndFunction) {
  caller_of_the_planted(5);  // not being watched
  ASSERT_TRUE(watch(true));
  caller_of_the_planted(7);
  int other = 0;
  std::thread([&other] {
    other = gettid();
    caller_of_the_planted(2);
  }).join();
  planted_new();
  watch(false);
  caller_of_the_planted(11);

  std::vector<Found> found = sites_with("planted_allocation");
  ASSERT_EQ(found.size(), 2u);
  if (found[0].tid == other) std::swap(found[0], found[1]);
  EXPECT_EQ(found[0].tid, gettid());
  EXPECT_EQ(found[0].count, 7u);
  EXPECT_EQ(found[0].bytes, 7u * 40u);
  EXPECT_EQ(found[1].tid, other);
  EXPECT_EQ(found[1].count, 2u);
  for (const Found& one : found) {
    // The innermost function is the caller of the allocator; no function of the counting library is included.
    ASSERT_GE(one.functions.size(), 2u);
    EXPECT_NE(one.functions[0].find("planted_allocation"), std::string::npos) << one.functions[0];
    EXPECT_NE(one.functions[1].find("caller_of_the_planted"), std::string::npos) << one.functions[1];
  }
  const std::vector<Found> by_new = sites_with("planted_new");
  ASSERT_EQ(by_new.size(), 1u);
  EXPECT_EQ(by_new[0].count, 1u);
  EXPECT_NE(by_new[0].functions[0].find("operator new"), std::string::npos) << by_new[0].functions[0];
}

TEST(Preload, ThoseOfSomeThreadsAreLeftOut) {
  const auto beside = reinterpret_cast<AllocationsBeside>(dlsym(RTLD_DEFAULT, kAllocationsBeside));
  const auto count_beside = [&](std::vector<int> tids) {
    std::uint64_t count = 0;
    EXPECT_TRUE(beside(tids.data(), tids.size(), &count));
    return count;
  };
  std::uint64_t before = 0, after_own = 0, after_other = 0;
  const std::vector<int> own{gettid()};
  const auto counted = [&](std::uint64_t& into) { EXPECT_TRUE(beside(own.data(), own.size(), &into)); };
  counted(before);
  caller_of_the_planted(5);
  counted(after_own);
  EXPECT_EQ(after_own, before);
  int tid = 0;
  std::uint64_t without_both = 0;
  std::thread([&] {
    tid = gettid();
    caller_of_the_planted(3);
    const std::array both{own[0], tid};
    EXPECT_TRUE(beside(both.data(), both.size(), &without_both));
  }).join();
  counted(after_other);
  // Allocations of an ended thread are not lost.
  EXPECT_GE(after_other - before, 3u);
  EXPECT_LE(after_other - before, 3u + 2u);  // glibc's own for the thread
  EXPECT_EQ(without_both, before);
  EXPECT_EQ(count_beside({}), of_process().count);
}

TEST(Sites, ThreadsThatAllocateAtOnceLoseNoCount) {
  const auto planted = [] {
    std::uint64_t count = 0;
    for (const Found& one : sites_with("caller_of_the_planted")) count += one.count;
    return count;
  };
  const std::uint64_t before = planted();
  ASSERT_TRUE(watch(true));
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([] { caller_of_the_planted(1'000); });
  for (std::thread& one : threads) one.join();
  watch(false);
  EXPECT_EQ(planted() - before, 8'000u);
}

TEST(Preload, EveryKindOfAllocationCountsOnceWithTheBytesAskedFor) {
  expect_change(change_of([] { std::free(kept(std::malloc(10))); }), 1, 10, 1);
  expect_change(change_of([] { std::free(kept(std::calloc(3, 7))); }), 1, 21, 1);
  expect_change(change_of([] { std::free(kept(std::aligned_alloc(64, 128))); }), 1, 128, 1);
  expect_change(change_of([] { std::free(kept(memalign(64, 100))); }), 1, 100, 1);
  expect_change(change_of([] {
                  void* memory = nullptr;
                  EXPECT_EQ(posix_memalign(&memory, 256, 33), 0);
                  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(kept(memory)) % 256, 0u);
                  std::free(memory);
                }),
                1, 33, 1);
  expect_change(change_of([] { delete static_cast<long*>(kept(new long(1))); }), 1, sizeof(long), 1);
  expect_change(change_of([] { std::free(kept(strdup("1234567"))); }), 1, 8, 1);
}

TEST(Preload, ReallocEndsTheOldBlockAndBeginsANewOne) {
  expect_change(change_of([] {
                  void* memory = kept(std::realloc(nullptr, 5));
                  memory = kept(std::realloc(memory, 5'000));
                  std::free(memory);
                }),
                2, 5'005, 2);
}

TEST(Preload, WhatFailsIsNotCounted) {
  expect_change(change_of([] {
                  void* memory = nullptr;
                  std::size_t enormous = SIZE_MAX / 2;
                  asm volatile("" : "+r"(enormous));
                  EXPECT_EQ(kept(std::malloc(enormous)), nullptr);
                  EXPECT_EQ(kept(std::calloc(enormous, 4)), nullptr);
                  EXPECT_EQ(posix_memalign(&memory, 64, enormous), ENOMEM);
                  std::size_t alignment = 24;
                  asm volatile("" : "+r"(alignment));
                  EXPECT_EQ(posix_memalign(&memory, alignment, 8), EINVAL);
                  EXPECT_EQ(kept(std::aligned_alloc(alignment, 24)), nullptr);
                  std::free(nullptr);
                }),
                0, 0, 0);
}

TEST(Preload, AKnownNumberIsCountedExactlyInEachThread) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<int> tids(4);
  std::size_t ready = 0;
  bool leave = false;
  std::vector<std::uint64_t> before(tids.size());
  const AllocationCounts process_before = of_process();
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < tids.size(); ++i) {
    threads.emplace_back([&, i] {
      before[i] = of_thread(gettid());
      for (std::size_t n = 0; n < 1'000 * (i + 1); ++n) std::free(kept(std::malloc(16)));
      std::unique_lock lock(mutex);
      tids[i] = gettid();
      ++ready;
      changed.notify_all();
      changed.wait(lock, [&] { return leave; });
    });
  }
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return ready == tids.size(); });
  }
  const AllocationCounts process_after = of_process();
  for (std::size_t i = 0; i < tids.size(); ++i) EXPECT_EQ(of_thread(tids[i]) - before[i], 1'000 * (i + 1));
  EXPECT_GE(process_after.count - process_before.count, 10'000u);
  EXPECT_LT(process_after.count - process_before.count, 10'100u);  // including what starting four threads
                                                                   // takes
  {
    const std::lock_guard lock(mutex);
    leave = true;
  }
  changed.notify_all();
  for (std::thread& thread : threads) thread.join();
}

// More threads than the library has counters for, one after the other: each is counted from 0, and the totals
// include ended ones.
TEST(Preload, ThreadsThatCameAndWentStayInTheTotals) {
  constexpr std::uint64_t kThreads = 3'000;
  constexpr std::uint64_t kEach = 5;
  std::uint64_t wrong = 0;
  const std::uint64_t own = of_thread(gettid());
  const AllocationCounts before = of_process();
  for (std::uint64_t i = 0; i < kThreads; ++i) {
    std::thread([&wrong] {
      for (std::uint64_t n = 0; n < kEach; ++n) std::free(kept(std::malloc(24)));
      std::uint64_t count = 0;
      // At most a few more than its own: the C library allocates when a thread starts.
      if (!g_thread(gettid(), &count) || count < kEach || count > kEach + 10) ++wrong;
    }).join();
  }
  const AllocationCounts after = of_process();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GE(after.count - before.count, kThreads * kEach);
  EXPECT_GE(of_thread(gettid()), own);
  EXPECT_GE(after.count - before.count, of_thread(gettid()) - own + kThreads * kEach);
}

TEST(Preload, ThreadsAreCountedBesideEachOther) {
  const AllocationCounts before = of_process();
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([] {
      for (int n = 0; n < 20'000; ++n) std::free(kept(std::malloc(32)));
    });
  }
  for (std::thread& thread : threads) thread.join();
  const AllocationCounts after = of_process();
  EXPECT_GE(after.count - before.count, 160'000u);
  EXPECT_LT(after.count - before.count, 160'200u);
  EXPECT_GE(after.bytes - before.bytes, 160'000u * 32);
}

TEST(Preload, ResourceSamplesHaveTheNumbers) {
  const MonotonicClock clock;
  ResourceSampler sampler(clock);
  const ResourceSample first = sampler.sample();
  for (int i = 0; i < 100; ++i) std::free(kept(std::malloc(50)));
  const ResourceSample second = sampler.sample();
  ASSERT_TRUE(first.allocations && second.allocations);
  EXPECT_GE(second.allocations->count, first.allocations->count + 100);
  EXPECT_GE(second.allocations->bytes, first.allocations->bytes + 5'000);
  EXPECT_GE(second.allocations->frees, first.allocations->frees + 100);
  ASSERT_EQ(second.threads.size(), 1u);
  ASSERT_TRUE(first.threads[0].allocations && second.threads[0].allocations);
  EXPECT_GE(*second.threads[0].allocations, *first.threads[0].allocations + 100);
}

}  // namespace
}  // namespace perflab::measure

// The program preloads the library into itself, so that it can be started like any other.
int main(int argc, char** argv) {
  if (perflab::measure::g_process == nullptr) {
    if (std::getenv("PERFLAB_PRELOADED") != nullptr) {
      std::fprintf(stderr, "%s was preloaded but does not count\n", PERFLAB_PRELOAD);
      return 1;
    }
    setenv("LD_PRELOAD", PERFLAB_PRELOAD, 1);
    setenv("PERFLAB_PRELOADED", "1", 1);
    execv("/proc/self/exe", argv);
    std::perror("execv");
    return 1;
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
