// Random schedules with known truth: a small scheduler runs threads on CPUs, records what every thread does,
// and emits the events of a kernel.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <tuple>

#include "support.h"

namespace perflab::traceview {
namespace {

using test::Recording;

struct Recorded {
  bool waking, wakeups, migrations;
};

constexpr int kThreads = 12;
constexpr int kCpus = 3;
constexpr std::int64_t kSteps = 4'000;

// Events in (begin, end) of that CPU, or of all, are not recorded, as reported before or only at the end.
struct Gap {
  std::int64_t begin, end;
  std::optional<std::int32_t> cpu;
  bool said_late;
};

struct Truth {
  ThreadState state = ThreadState::blocked;
  int cpu = 0;       // on which it runs, waits or last ran
  int executes = 0;  // the CPU on which it last ran
};

class Machine {
 public:
  Machine(unsigned seed, Recorded recorded, std::optional<Gap> gap = std::nullopt)
      : random_(seed), recorded_(recorded), gap_(gap) {
    if (gap_ && !gap_->said_late) recording.scheduler.lost(recording.host, gap_->cpu, gap_->begin, gap_->end);
    for (int tid = 1; tid <= kThreads; ++tid)
      threads_[tid] = {ThreadState::blocked, tid % kCpus, tid % kCpus};
    run();
    if (gap_ && gap_->said_late) recording.scheduler.lost(recording.host, gap_->cpu, gap_->begin, gap_->end);
    recording.scheduler.finish();
  }

  Recording recording;
  // What every thread did in each step [i, i + 1), and which ran on each CPU.
  std::vector<std::map<int, Truth>> history;
  std::vector<std::array<int, kCpus>> running;
  std::map<int, std::vector<std::int64_t>> migrations;                // times, by thread
  std::vector<std::tuple<std::int64_t, int, std::int64_t>> wake_ups;  // wakeup, thread, switch

 private:
  [[nodiscard]] bool heard(int cpu) const {
    return !(gap_ && now_ > gap_->begin && now_ < gap_->end && (!gap_->cpu || *gap_->cpu == cpu));
  }
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }

  void run() {
    // Everything is known from the first events on: each thread runs once.
    for (int tid = 1; tid <= kThreads; ++tid) {
      recording.switched(0, tid % kCpus, 0, EndState::preempted, tid);
      recording.switched(0, tid % kCpus, tid, EndState::sleeping, 0);
    }
    for (now_ = 1; now_ <= kSteps; ++now_) {
      // Several events may have one time.
      for (int i = pick(3); i > 0; --i) step();
      history.push_back(threads_);
      running.push_back(current_);
    }
    recording.switched(kSteps + 1, 0, current_[0], EndState::preempted, kThreads + 1);
  }

  void step() {
    switch (pick(4)) {
      case 0:
        return wake(1 + pick(kThreads));
      case 1:
        return move(1 + pick(kThreads));
      default:
        return reschedule(pick(kCpus));
    }
  }

  void wake(int tid) {
    Truth& thread = threads_[tid];
    const int by = pick(kCpus);
    if (thread.state == ThreadState::blocked) {
      if (recorded_.waking && heard(by)) recording.waking(now_, by, tid, thread.cpu);
      if (recorded_.migrations && pick(3) == 0) {
        migrated(tid, pick(kCpus));
      }
      if (recorded_.wakeups && heard(by)) recording.wakeup(now_, by, tid, thread.cpu);
      thread.state = ThreadState::woken;
      woken_[tid] = now_;
    } else if (thread.state != ThreadState::preempted && recorded_.wakeups && heard(by)) {
      recording.wakeup(now_, by, tid, thread.cpu);  // a spurious wake-up
    }
  }

  void migrated(int tid, int to) {
    Truth& thread = threads_[tid];
    if (to == thread.cpu) return;
    if (heard(0)) recording.migrate(now_, 0, tid, thread.cpu, to);
    migrations[tid].push_back(now_);
    thread.cpu = to;
    thread.executes = to;
  }

  void move(int tid) {
    const Truth& thread = threads_[tid];
    const bool waits = thread.state == ThreadState::preempted || thread.state == ThreadState::woken;
    if (waits && recorded_.migrations) migrated(tid, pick(kCpus));
  }

  void reschedule(int cpu) {
    std::vector<int> ready;
    for (const auto& [tid, thread] : threads_) {
      // Without migration events a thread may be taken from any CPU.
      const bool waits = thread.state == ThreadState::preempted || thread.state == ThreadState::woken;
      if (waits && (thread.cpu == cpu || !recorded_.migrations)) ready.push_back(tid);
    }
    const int previous = current_[static_cast<std::size_t>(cpu)];
    const int next = ready.empty() || pick(4) == 0
                         ? 0
                         : ready[static_cast<std::size_t>(pick(static_cast<int>(ready.size())))];
    if (next == previous) return;
    const bool sleeps = previous != 0 && pick(2) == 0;
    if (heard(cpu))
      recording.switched(now_, cpu, previous, sleeps ? EndState::sleeping : EndState::preempted, next);
    if (previous != 0) threads_[previous].state = sleeps ? ThreadState::blocked : ThreadState::preempted;
    current_[static_cast<std::size_t>(cpu)] = next;
    if (next == 0) return;
    Truth& thread = threads_[next];
    if (thread.state == ThreadState::woken) wake_ups.emplace_back(woken_[next], next, now_);
    if (thread.executes != cpu) migrations[next].push_back(now_);
    thread = {ThreadState::running, cpu, cpu};
  }

  std::mt19937 random_;
  Recorded recorded_;
  std::optional<Gap> gap_;
  std::int64_t now_ = 0;
  std::map<int, Truth> threads_;
  std::array<int, kCpus> current_{};
  std::map<int, std::int64_t> woken_;
};

struct Case {
  unsigned seed;
  Recorded recorded;
};

class RandomSchedule : public testing::TestWithParam<Case> {};

TEST_P(RandomSchedule, SplitsAgreeWithTheTruthAndAddUp) {
  const Machine machine(GetParam().seed, GetParam().recorded);
  const bool wakeups = GetParam().recorded.wakeups;
  std::mt19937 random(GetParam().seed + 1);
  for (int question = 0; question < 3'000; ++question) {
    const int tid = 1 + static_cast<int>(random() % kThreads);
    auto begin = static_cast<std::int64_t>(1 + random() % kSteps);
    auto end = static_cast<std::int64_t>(1 + random() % kSteps);
    if (begin > end) std::swap(begin, end);
    const auto split = machine.recording.scheduler.split(machine.recording.thread(tid), begin, end);
    ASSERT_TRUE(split) << tid << " " << begin << " " << end;
    std::array<std::int64_t, 4> truth{};
    for (std::int64_t step = begin; step < end; ++step) {
      auto state = machine.history[static_cast<std::size_t>(step - 1)].at(tid).state;
      if (!wakeups && state == ThreadState::woken) state = ThreadState::blocked;
      ++truth[static_cast<std::size_t>(state)];
    }
    ASSERT_EQ(split->on_cpu_ns, truth[0]);
    ASSERT_EQ(split->preempted_ns, truth[1]);
    ASSERT_EQ(split->blocked_ns, truth[2]);
    ASSERT_EQ(split->wake_up_ns, truth[3]);
    ASSERT_EQ(split->on_cpu_ns + split->preempted_ns + split->blocked_ns + split->wake_up_ns, end - begin);
    const auto found = machine.migrations.find(tid);
    const auto moved = found == machine.migrations.end()
                           ? 0
                           : std::count_if(found->second.begin(), found->second.end(),
                                           [&](auto time) { return time > begin && time <= end; });
    ASSERT_EQ(split->migrations, moved);
  }
}

TEST_P(RandomSchedule, HoldsAreWhatRanWhereTheThreadWaited) {
  const Machine machine(GetParam().seed, GetParam().recorded);
  const Scheduler& scheduler = machine.recording.scheduler;
  std::mt19937 random(GetParam().seed + 2);
  std::vector<std::int32_t> threads;
  std::vector<std::int64_t> begins, ends;
  std::vector<int> tids;
  for (int i = 0; i < 500; ++i) {
    tids.push_back(1 + static_cast<int>(random() % kThreads));
    threads.push_back(machine.recording.thread(tids.back()));
    const auto a = static_cast<std::int64_t>(1 + random() % kSteps),
               b = static_cast<std::int64_t>(1 + random() % kSteps);
    begins.push_back(std::min(a, b));
    ends.push_back(std::max(a, b));
  }
  const auto table = scheduler.holds_of(threads, begins, ends);
  using Key = std::tuple<ThreadState, int, std::int32_t>;
  std::vector<std::map<Key, std::int64_t>> found(threads.size());
  for (std::size_t row = 0; row < table.interval.size(); ++row) {
    found[table.interval[row]][{table.state[row], table.cpu[row], table.holder[row]}] = table.held_ns[row];
  }
  for (std::size_t i = 0; i < threads.size(); ++i) {
    std::map<Key, std::int64_t> truth;
    std::int64_t waited = 0, held = 0;
    for (std::int64_t step = begins[i]; step < ends[i]; ++step) {
      const Truth& thread = machine.history[static_cast<std::size_t>(step - 1)].at(tids[i]);
      if (thread.state == ThreadState::woken && !GetParam().recorded.wakeups) continue;
      if (thread.state != ThreadState::preempted && thread.state != ThreadState::woken) continue;
      ++waited;
      const int holder =
          machine.running[static_cast<std::size_t>(step - 1)][static_cast<std::size_t>(thread.cpu)];
      if (holder != 0) ++truth[{thread.state, thread.cpu, machine.recording.thread(holder)}];
    }
    ASSERT_EQ(found[i], truth) << "thread " << tids[i] << " in " << begins[i] << "-" << ends[i];
    for (const auto& [key, ns] : found[i]) held += ns;
    ASSERT_LE(held, waited);
  }
}

TEST_P(RandomSchedule, WakeUpLatenciesAreTheTrueOnes) {
  const Machine machine(GetParam().seed, GetParam().recorded);
  const WakeUps& table = machine.recording.scheduler.wake_ups();
  std::vector<std::tuple<std::int64_t, int, std::int64_t>> found;
  for (std::size_t row = 0; row < table.thread.size(); ++row) {
    if (!table.switch_ns.valid(row)) continue;
    const auto& thread = machine.recording.directory.threads()[static_cast<std::size_t>(table.thread[row])];
    found.emplace_back(table.wakeup_ns[row], thread.tid, table.switch_ns[row]);
    EXPECT_EQ(table.waking_ns.valid(row), GetParam().recorded.waking);
  }
  auto truth = machine.wake_ups;
  std::sort(truth.begin(), truth.end());
  std::sort(found.begin(), found.end());
  if (GetParam().recorded.wakeups) {
    EXPECT_EQ(found, truth);
    EXPECT_GT(found.size(), 100u);
  } else {
    EXPECT_EQ(table.thread.size(), 0u);
  }
}

TEST_P(RandomSchedule, WhatIsClaimedInSpiteOfALossIsTrue) {
  const bool wakeups = GetParam().recorded.wakeups;
  std::mt19937 random(GetParam().seed + 3);
  const auto length = static_cast<std::int64_t>(20 + random() % 500);
  for (const std::optional<std::int32_t> cpu :
       {std::optional<std::int32_t>(), std::optional(0), std::optional(1), std::optional(2)}) {
    const Gap gap{1'500, 1'500 + length, cpu, false};
    const Machine machine(GetParam().seed, GetParam().recorded, gap);
    int across = 0, after = 0;
    for (int question = 0; question < 3'000; ++question) {
      const int tid = 1 + static_cast<int>(random() % kThreads);
      const auto begin = static_cast<std::int64_t>(1 + random() % kSteps);
      const auto end = std::min<std::int64_t>(begin + 1 + static_cast<std::int64_t>(random() % 300), kSteps);
      const auto split = machine.recording.scheduler.split(machine.recording.thread(tid), begin, end);
      if (!split) {
        ASSERT_TRUE(end > gap.begin) << "before the loss everything is known: " << tid << " in " << begin
                                     << "-" << end;
        continue;
      }
      across += begin < gap.end && end > gap.begin;
      after += begin >= gap.end;
      std::array<std::int64_t, 4> truth{};
      for (std::int64_t step = begin; step < end; ++step) {
        auto state = machine.history[static_cast<std::size_t>(step - 1)].at(tid).state;
        if (!wakeups && state == ThreadState::woken) state = ThreadState::blocked;
        ++truth[static_cast<std::size_t>(state)];
      }
      const std::array<std::int64_t, 4> found{split->on_cpu_ns, split->preempted_ns, split->blocked_ns,
                                              split->wake_up_ns};
      ASSERT_EQ(found, truth) << tid << " in " << begin << "-" << end;
    }
    EXPECT_GT(after, 1'000);
    if (!cpu) {
      EXPECT_EQ(across, 0);
    }
  }
}

TEST_P(RandomSchedule, ALossThatIsSaidLateLeavesNothingClaimedInIt) {
  const Gap gap{1'500, 1'800, 1, true};
  const Machine machine(GetParam().seed, GetParam().recorded, gap);
  const ThreadStates& states = machine.recording.scheduler.states();
  for (std::size_t row = 0; row < states.thread.size(); ++row) {
    if (states.end_ns[row] <= gap.begin || states.start_ns[row] >= gap.end) continue;
    ASSERT_EQ(states.state[row], ThreadState::running);
    ASSERT_NE(states.cpu[row], 1);
  }
}

TEST_P(RandomSchedule, RowsOfAThreadDoNotOverlap) {
  const Machine machine(GetParam().seed, GetParam().recorded);
  const Scheduler& scheduler = machine.recording.scheduler;
  // The rows of a thread are consecutive without overlap, and none is empty.
  const ThreadStates& states = scheduler.states();
  for (std::size_t row = 0; row < states.thread.size(); ++row) {
    ASSERT_LT(states.start_ns[row], states.end_ns[row]);
    if (row > 0 && states.thread[row - 1] == states.thread[row]) {
      ASSERT_LE(states.end_ns[row - 1], states.start_ns[row]);
    }
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (unsigned seed = 1; seed <= 5; ++seed) {
    all.push_back({seed, {true, true, true}});
    all.push_back({seed, {false, true, false}});
    all.push_back({seed, {false, false, false}});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomSchedule, testing::ValuesIn(cases()), [](const auto& test) {
  const Recorded& recorded = test.param.recorded;
  return std::string(recorded.migrations ? "All"
                     : recorded.wakeups  ? "SwitchesAndWakeUps"
                                         : "SwitchesOnly") +
         std::to_string(test.param.seed);
});

}  // namespace
}  // namespace perflab::traceview
