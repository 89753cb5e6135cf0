// Waitables in virtual time: every trigger is executed or coalesced, exactly as the times require.
#include "virtual_lab.h"

namespace perflab::graph {
namespace {

WaitableCounts counts_of(const VirtualLab& lab, const std::string& name) {
  for (const WaitableView& view : lab.live().waitables()) {
    if (view.waitable->name == name) return view.counts;
  }
  throw std::out_of_range("no waitable " + name);
}

void expect_conservation(const WaitableCounts& counts) {
  EXPECT_EQ(counts.triggers, counts.executed + counts.coalesced);
}

TEST(Waitables, RunAsOftenAsTheirTimersSay) {
  const VirtualLab lab(R"(
name: one
nodes:
  - name: a
    waitables:
      - {name: idle, number: 3}
      - {name: own, period: 10ms, work: 1ms}
      - {name: shared}
    timers:
      - {period: 40ms, trigger: [shared, idle_2], work: 1us}
      - {name: other, period: 25ms, trigger: shared, phase: staggered}
)",
                       kNanosecondsPerSecond);
  EXPECT_EQ(counts_of(lab, "own").executed, 100u);
  EXPECT_EQ(counts_of(lab, "own").coalesced, 0u);
  EXPECT_EQ(counts_of(lab, "idle_2").executed, 25u);
  const WaitableCounts shared = counts_of(lab, "shared");
  EXPECT_EQ(shared.triggers, 65u) << "of both timers";
  expect_conservation(shared);
  for (const char* idle : {"idle_1", "idle_3"}) {
    EXPECT_EQ(counts_of(lab, idle).triggers, 0u);
    EXPECT_EQ(counts_of(lab, idle).executed, 0u);
  }
  EXPECT_FALSE(lab.live().triggered());
}

// A callback of 35 ms, triggered every 10 ms by another thread: while it runs three or four triggers come,
// and coalesce.
TEST(Waitables, TriggersThatFindOneUnansweredCoalesce) {
  const char* graph = R"(
name: slow
executors: [{id: 0, kind: inline}]
nodes:
  - name: a
    waitables: [{name: slow, period: 10ms, work: 35ms}]
)";
  const VirtualLab lab(graph, kNanosecondsPerSecond);
  const WaitableCounts counts = counts_of(lab, "slow");
  EXPECT_EQ(counts.triggers, 100u);
  expect_conservation(counts);
  // At 10 ms, and then one after the other until the last trigger at 1 s is answered: at 10 + 35 k.
  EXPECT_EQ(counts.executed, 30u);
  EXPECT_EQ(counts.coalesced, 70u);
}

TEST(Waitables, OfAThreadThatIsLateGetTheTriggersThatItMakesUpFor) {
  for (const std::string kind : {"single_threaded", "events"}) {
    const VirtualLab lab("name: late\nexecutors: [{id: 0, kind: " + kind + R"(}]
nodes:
  - name: a
    waitables: [{name: made_up}, {name: left_out}]
    timers:
      - {period: 10ms, work: 15ms, trigger: made_up}
      - {name: skips, period: 10ms, trigger: left_out, overrun: skip}
)",
                         kNanosecondsPerSecond);
    const WaitableCounts made_up = counts_of(lab, "made_up");
    EXPECT_EQ(made_up.triggers, 100u) << kind;
    EXPECT_EQ(made_up.not_triggered, 0u) << kind;
    const WaitableCounts left_out = counts_of(lab, "left_out");
    EXPECT_EQ(left_out.triggers + left_out.not_triggered, 100u) << kind;
    EXPECT_GT(left_out.not_triggered, 30u) << kind;
    for (const WaitableCounts& counts : {made_up, left_out}) expect_conservation(counts);
  }
}

TEST(Waitables, WarmUpIsCountedApart) {
  const VirtualLab lab(R"(
name: warm
nodes:
  - name: a
    waitables: [{name: w, period: 10ms, work: 1ms}]
)",
                       kNanosecondsPerSecond, {}, 500 * kMs);
  const WaitableCounts counts = counts_of(lab, "w");
  EXPECT_EQ(counts.warmup_triggers, 50u);
  EXPECT_EQ(counts.triggers, 100u);
  EXPECT_EQ(counts.executed, 100u);
}

// Groups exclude each other even with enough threads.
TEST(Waitables, OfOneNodeTakeTurnsAndOfTwoRunAtTheSameTime) {
  const auto graph = [](const std::string& nodes) {
    return "name: groups\nexecutors: [{id: 0, kind: multi_threaded, threads: 2}]\nnodes:\n" + nodes;
  };
  const VirtualLab one(graph("  - {name: a, waitables: [{name: w, number: 2, period: 10ms, work: 9ms}]}\n"),
                       kNanosecondsPerSecond);
  EXPECT_LT(counts_of(one, "w_1").executed + counts_of(one, "w_2").executed, 120u) << "9 ms each";
  const VirtualLab two(graph("  - {name: a, number: 2, waitables: [{name: w, period: 10ms, work: 9ms}]}\n"),
                       kNanosecondsPerSecond);
  for (const WaitableView& view : two.live().waitables()) EXPECT_EQ(view.counts.executed, 100u);
  for (const WaitableView& view : one.live().waitables()) expect_conservation(view.counts);
}

TEST(Waitables, AreOnesOwnAlsoWhereSeveralNodesNameThemAlike) {
  const VirtualLab lab(R"(
name: alike
processes:
  - {name: p, nodes: [{name: a, number: 3, waitables: [{name: w, period: 100ms}]}]}
  - {name: q, nodes: [{name: b, waitables: [{name: w, period: 50ms}]}]}
)",
                       kNanosecondsPerSecond);
  std::vector<std::pair<std::string, std::uint64_t>> found;
  for (const WaitableView& view : lab.live().waitables())
    found.emplace_back(view.node->qualified_name(), view.counts.executed);
  EXPECT_EQ(found, (std::vector<std::pair<std::string, std::uint64_t>>{
                       {"/a_1", 10}, {"/a_2", 10}, {"/a_3", 10}, {"/b", 20}}));
}

}  // namespace
}  // namespace perflab::graph
