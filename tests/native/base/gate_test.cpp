// The promises of base/gate.h: one at a time, no mark lost, nobody inside after close().
#include "base/gate.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <latch>
#include <semaphore>
#include <thread>
#include <vector>

namespace perflab {
namespace {

constexpr Gate::Marks kFirst = 1;
constexpr Gate::Marks kSecond = 2;

TEST(Gate, RunsAtOnceWithTheMarksThatItWasGiven) {
  Gate gate;
  std::vector<Gate::Marks> seen;
  const auto run = [&](Gate::Marks marks) { seen.push_back(marks); };
  gate.pass(kFirst, run);
  gate.pass(kSecond, run);
  EXPECT_EQ(seen, (std::vector<Gate::Marks>{kFirst, kSecond}));
}

TEST(Gate, WhatACallbackCausesIsRunAfterItAndNotWithinIt) {
  Gate gate;
  std::vector<Gate::Marks> seen;
  bool inside = false;
  const auto run = [&](Gate::Marks marks) {
    EXPECT_FALSE(std::exchange(inside, true));
    seen.push_back(marks);
    if (seen.size() == 1) {
      gate.pass(kSecond, [](Gate::Marks) { ADD_FAILURE() << "two at a time"; });
      gate.pass(kFirst, [](Gate::Marks) { ADD_FAILURE() << "two at a time"; });
    }
    inside = false;
  };
  gate.pass(kFirst, run);
  EXPECT_EQ(seen, (std::vector<Gate::Marks>{kFirst, kFirst | kSecond}));
}

TEST(Gate, WhatWasLeftMeanwhileIsRunByTheOneWhoEntered) {
  Gate gate;
  gate.enter();
  gate.pass(kFirst, [](Gate::Marks) { ADD_FAILURE() << "somebody is inside"; });
  gate.pass(kSecond, [](Gate::Marks) { ADD_FAILURE() << "somebody is inside"; });
  std::vector<Gate::Marks> seen;
  gate.leave([&](Gate::Marks marks) { seen.push_back(marks); });
  EXPECT_EQ(seen, (std::vector<Gate::Marks>{kFirst | kSecond}));
  gate.enter();
  gate.leave([](Gate::Marks) { ADD_FAILURE() << "nothing was left"; });
}

// Each thread records its work before it leaves its mark, as a reader's queue is filled before the reader is
// called. All recorded work is found, by one thread at a time; plain integers make overlaps visible to a race
// detector.
TEST(Gate, LosesNoMarkAndNeverRunsTwiceAtATime) {
  constexpr std::size_t kThreads = 4;
  constexpr std::uint64_t kTurns = 20'000;
  Gate gate;
  std::array<std::atomic<std::uint64_t>, kThreads> announced{};
  std::array<std::uint64_t, kThreads> found{};
  std::uint64_t runs = 0;
  bool inside = false;
  std::latch ready(kThreads);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      ready.arrive_and_wait();
      for (std::uint64_t turn = 1; turn <= kTurns; ++turn) {
        announced[i].store(turn, std::memory_order_relaxed);
        gate.pass(Gate::Marks{1} << i, [&](Gate::Marks marks) {
          EXPECT_FALSE(std::exchange(inside, true));
          ++runs;
          for (std::size_t k = 0; k < kThreads; ++k) {
            if ((marks >> k & 1) != 0) found[k] = announced[k].load(std::memory_order_relaxed);
          }
          inside = false;
        });
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::uint64_t last : found) EXPECT_EQ(last, kTurns);
  // How many marks one run handles depends on the scheduler; no run is without a mark.
  EXPECT_GE(runs, 1u);
  EXPECT_LE(runs, kThreads * kTurns);
}

TEST(Gate, CloseWaitsForTheOneInsideAndLetsNobodyIn) {
  Gate gate;
  std::binary_semaphore entered(0);
  std::binary_semaphore may_leave(0);
  bool inside = false;
  std::thread passes([&] {
    gate.pass(kFirst, [&](Gate::Marks) {
      inside = true;
      entered.release();
      may_leave.acquire();
      inside = false;
    });
  });
  entered.acquire();
  std::thread closes([&] {
    gate.close();
    EXPECT_FALSE(inside);
    gate.close();
  });
  may_leave.release();
  closes.join();
  passes.join();
  gate.pass(kFirst, [](Gate::Marks) { ADD_FAILURE() << "closed"; });
}

}  // namespace
}  // namespace perflab
