// The scheduler model on a recording that only has what concerns process trees.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include "support.h"
#include "tracing/scheduler/process_tree.h"

namespace perflab::traceview {
namespace {

constexpr auto kPreempted = EndState::preempted;
constexpr auto kSleeping = EndState::sleeping;

struct Filtered : test::Recording {
  Filtered() { scheduler.filtered(host); }
  void kept(std::int64_t time, std::int32_t tid) {
    SchedulerEvent event;
    event.kind = Kind::kept;
    event.time_ns = time;
    event.host = host;
    event.tid = tid;
    scheduler.add(event);
  }
};

TEST(FilteredRecording, ThreadsOfTheTreeHaveAllTheirStates) {
  Filtered r;
  r.kept(1, 7);
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 8);
  r.wakeup(40, 1, 7, 0);
  r.switched(50, 0, 9, kSleeping, 7);
  r.switched(60, 0, 7, kPreempted, 8);
  r.switched(70, 0, 8, kSleeping, 7);
  r.switched(80, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(
      r.states_of(7),
      "running@0 10-20, blocked 20-40, woken@0 40-50, running@0 50-60, preempted@0 60-70, running@0 70-80");
  EXPECT_EQ(r.scheduler.coverage().contradictions, 0U);
}

TEST(FilteredRecording, WhoHeldTheCpuSinceTheWakeUpIsWhoLeavesItFirst) {
  Filtered r;
  r.kept(1, 7);
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kSleeping, 8);  // what comes after 8 is not recorded
  r.wakeup(40, 1, 7, 0);
  r.switched(50, 0, 9, kSleeping, 10);
  r.switched(55, 0, 10, kSleeping, 7);
  r.scheduler.finish();
  EXPECT_EQ(r.holds_of(7), "woken@0 40-50 by 9, woken@0 50-55 by 10");
  EXPECT_EQ(r.states_of(8), "");
  EXPECT_EQ(r.states_of(9), "running@0 40-50");
}

TEST(FilteredRecording, OfOthersNothingIsClaimedButThatTheyRanWhereSomebodyWaited) {
  Filtered r;
  r.kept(1, 7);
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kPreempted, 8);
  r.switched(30, 0, 8, kPreempted, 7);  // 8 could continue: what it does from here on is not recorded
  r.switched(40, 0, 7, kPreempted, 9);
  r.switched(45, 0, 9, kSleeping, 8);
  r.switched(50, 0, 8, kSleeping, 7);
  r.switched(60, 0, 7, kSleeping, 8);
  r.switched(90, 0, 10, kPreempted, 7);
  r.switched(95, 0, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(8), "running@0 20-30, running@0 45-50");
  EXPECT_EQ(r.states_of(9), "running@0 40-45");
  EXPECT_EQ(r.states_of(10), "");
  EXPECT_EQ(r.scheduler.coverage().contradictions, 0U);
  EXPECT_EQ(r.migrations_of(8), "");
}

TEST(FilteredRecording, AThreadThatIsMovedAwayLeavesItsCpuUncovered) {
  Filtered r;
  r.kept(1, 7);
  r.switched(10, 0, 0, kPreempted, 7);
  r.switched(20, 0, 7, kPreempted, 8);
  r.migrate(30, 1, 7, 0, 1);
  r.switched(40, 1, 11, kSleeping, 7);
  r.switched(50, 1, 7, kSleeping, 0);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(8), "running@0 20-30");
  EXPECT_EQ(r.states_of(7), "running@0 10-20, preempted@0 20-30, preempted@1 30-40, running@1 40-50");
  EXPECT_EQ(r.holds_of(7), "preempted@0 20-30 by 8, preempted@1 30-40 by 11");
}

TEST(FilteredRecording, ChildrenOfTheTreeAreOfIt) {
  Filtered r;
  r.kept(1, 7);
  r.switched(10, 0, 0, kPreempted, 7);
  r.fork(12, 0, 17, 17, "child");
  r.wakeup_new(13, 0, 17, 1);
  r.switched(20, 1, 0, kPreempted, 17);
  r.switched(30, 1, 17, kSleeping, 0);
  r.wakeup(40, 0, 17, 1);
  r.switched(42, 1, 0, kPreempted, 17);
  r.scheduler.finish();
  EXPECT_EQ(r.states_of(17), "woken@1 13-20, running@1 20-30, blocked 30-40, woken@1 40-42");
}

// Two CPUs and some threads, of which 1 and 2 are the tree; everything is recorded both in full and through
// the filter.
class Machine {
 public:
  explicit Machine(unsigned seed) : random_(seed) {
    tree_.add({.pid = 1, .tid = 1});
    tree_.add({.pid = 2, .tid = 2});
    filtered.kept(1, 1);
    filtered.kept(1, 2);
    for (int cpu = 0; cpu < 2; ++cpu) {
      switch_to(cpu, 1, 9);
      switch_to(cpu, 1, 0);
    }
  }

  void step() {
    const int cpu = below(2), tid = 1 + below(8);
    switch (below(5)) {
      case 0:
        if (current_[cpu] != 0) switch_to(cpu, 1, pick(cpu));
        break;
      case 1:
        if (current_[cpu] == 0 && !queue_[cpu].empty()) switch_to(cpu, 0, pick(cpu));
        break;
      case 2:
        if (current_[cpu] != 0 && !queue_[cpu].empty()) {
          const int next = pick(cpu);
          queue_[cpu].push_back(current_[cpu]);
          switch_to(cpu, 256, next);
        }
        break;
      case 3:
        if (!is_awake(tid)) wake(cpu, tid, below(2));
        break;
      default:
        if (!queue_[cpu].empty()) migrate(cpu, pick(cpu));
    }
  }

  // Continues until the tree sleeps; the last event belongs to the tree.
  void end() {
    for (int cpu = 0; cpu < 2; ++cpu) {
      while (current_[cpu] != 0 || !queue_[cpu].empty()) switch_to(cpu, 1, pick(cpu));
    }
    say(tracing::EventKind::waking, 0, 1, 0);
    full.scheduler.finish();
    filtered.scheduler.finish();
  }

  test::Recording full;
  Filtered filtered;
  std::size_t events = 0, kept = 0;

 private:
  int below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  bool is_awake(int tid) const {
    for (int cpu = 0; cpu < 2; ++cpu) {
      if (current_[cpu] == tid || std::ranges::find(queue_[cpu], tid) != queue_[cpu].end()) return true;
    }
    return false;
  }
  int pick(int cpu) {
    if (queue_[cpu].empty()) return 0;
    const auto at = queue_[cpu].begin() + below(static_cast<int>(queue_[cpu].size()));
    const int tid = *at;
    queue_[cpu].erase(at);
    return tid;
  }
  bool keeps(const tracing::SchedulerEvent& event, int cpu) {
    ++events;
    const bool yes = tree_.keep(static_cast<unsigned>(cpu), event);
    kept += yes ? 1 : 0;
    return yes;
  }
  void switch_to(int cpu, int state, int next) {
    time_ += 1 + below(20);
    tracing::SchedulerEvent event;
    event.subject = current_[cpu];
    event.other = next;
    event.state = event.subject == 0 ? 0 : state;
    const EndState end = event.state == 1 ? kSleeping : kPreempted;
    full.switched(time_, cpu, current_[cpu], end, next);
    if (keeps(event, cpu)) filtered.switched(time_, cpu, current_[cpu], end, next);
    current_[cpu] = next;
  }
  void say(tracing::EventKind kind, int cpu, int tid, int target) {
    time_ += 1 + below(20);
    tracing::SchedulerEvent event;
    event.kind = kind;
    event.subject = tid;
    event.target_cpu = target;
    const bool yes = keeps(event, cpu);
    for (test::Recording* const to : {&full, static_cast<test::Recording*>(yes ? &filtered : nullptr)}) {
      if (to == nullptr) continue;
      if (kind == tracing::EventKind::waking) to->waking(time_, cpu, tid, target);
      if (kind == tracing::EventKind::wakeup) to->wakeup(time_, cpu, tid, target);
      if (kind == tracing::EventKind::migrate) to->migrate(time_, cpu, tid, 1 - target, target);
    }
  }
  void wake(int cpu, int tid, int target) {
    say(tracing::EventKind::waking, cpu, tid, target);
    say(tracing::EventKind::wakeup, cpu, tid, target);
    queue_[target].push_back(tid);
  }
  void migrate(int from, int tid) {
    say(tracing::EventKind::migrate, from, tid, 1 - from);
    queue_[1 - from].push_back(tid);
  }

  std::mt19937 random_;
  tracing::ProcessTree tree_;
  std::int64_t time_ = 10;
  std::array<int, 2> current_{};
  std::array<std::vector<int>, 2> queue_;
};

std::vector<std::string> parts_of(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(", ", at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 2;
  }
  return parts;
}

// The filtered recording cannot know the holder of a CPU that had no switch before the thread was migrated.
void expect_same_holds(const std::string& filtered, const std::string& full, const std::string& migrations) {
  const auto ours = parts_of(filtered), all = parts_of(full);
  ASSERT_EQ(ours.size(), all.size()) << filtered << "\n" << full;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    if (ours[i] == all[i]) continue;
    const auto by = all[i].find(" by "), dash = all[i].rfind('-', by);
    EXPECT_EQ(ours[i], all[i].substr(0, by) + " by -");
    const std::string moved = all[i].substr(dash + 1, by - dash - 1) + ": ";
    const auto moves = parts_of(migrations);
    EXPECT_TRUE(std::ranges::any_of(moves, [&](const std::string& move) { return move.starts_with(moved); }))
        << all[i];
  }
}

TEST(FilteredRecording, SaysOfTheTreeWhatTheFullOneSays) {
  for (unsigned seed = 0; seed < 200; ++seed) {
    Machine machine(seed);
    for (int i = 0; i < 400; ++i) machine.step();
    machine.end();
    for (const int tid : {1, 2}) {
      ASSERT_EQ(machine.filtered.states_of(tid), machine.full.states_of(tid)) << "seed " << seed;
      expect_same_holds(machine.filtered.holds_of(tid), machine.full.holds_of(tid),
                        machine.full.migrations_of(tid));
      ASSERT_EQ(machine.filtered.migrations_of(tid), machine.full.migrations_of(tid)) << "seed " << seed;
    }
    EXPECT_EQ(machine.filtered.scheduler.coverage().contradictions, 0U) << "seed " << seed;
    EXPECT_LT(machine.kept, machine.events);
  }
}

}  // namespace
}  // namespace perflab::traceview
