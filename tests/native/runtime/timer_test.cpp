#include "runtime/timer.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "../rows.h"

namespace perflab::runtime {
namespace {

class Recorder final : public TimerHandler {
 public:
  explicit Recorder(std::vector<std::pair<int, Nanoseconds>>* order = nullptr, int id = 0)
      : order_(order), id_(id) {}
  void on_tick(Nanoseconds due_ns) noexcept override {
    ticks.push_back(due_ns);
    if (order_ != nullptr) order_->emplace_back(id_, due_ns);
  }
  void on_skipped(Nanoseconds first_due_ns, std::uint64_t count) noexcept override {
    skipped.emplace_back(first_due_ns, count);
  }
  std::vector<Nanoseconds> ticks;
  std::vector<std::pair<Nanoseconds, std::uint64_t>> skipped;

 private:
  std::vector<std::pair<int, Nanoseconds>>* order_;
  int id_;
};

// A timer with a period of 10, looked at at some instants, at each until nothing is due.
struct Schedule {
  const char* name;
  Nanoseconds base;
  std::int64_t first, last;
  bool skips;
  Nanoseconds made_up_for;
  std::vector<Nanoseconds> looks;
  std::vector<Nanoseconds> ticks;
  std::vector<std::pair<Nanoseconds, std::uint64_t>> skipped;  // from when, how many
  Nanoseconds next;                                            // due; 0: the last tick has been
};
class TimerTable : public testing::TestWithParam<Schedule> {};

TEST_P(TimerTable, GivesEachTickOrCountsIt) {
  const Schedule& row = GetParam();
  Recorder recorder;
  TimerSchedule timer({"t", 0, 10, row.first, row.last, row.skips, row.made_up_for}, recorder);
  timer.set_base(row.base);
  EXPECT_EQ(timer.next_due(), row.base + 10 * row.first);
  for (const Nanoseconds now : row.looks) {
    while (!timer.done() && timer.next_due() <= now) timer.fire(now);
  }
  EXPECT_EQ(recorder.ticks, row.ticks);
  EXPECT_EQ(recorder.skipped, row.skipped);
  EXPECT_EQ(timer.done(), row.next == 0);
  if (row.next != 0) {
    EXPECT_EQ(timer.next_due(), row.next);
  }
}

INSTANTIATE_TEST_SUITE_P(
    , TimerTable,
    rows::of<Schedule>(
        {{"TickKIsDueAtBasePlusKPeriods", 100, 1, 3, false, 0, {110, 125, 130}, {110, 120, 130}, {}, 0},
         {"WarmUpStandsBeforeTheBaseInTheSameGrid",
          100,
          -1,
          1,
          false,
          0,
          {90, 100, 110},
          {90, 100, 110},
          {},
          0},
         {"CatchesUpTickByTick", 0, 1, 5, false, 0, {47}, {10, 20, 30, 40}, {}, 50},
         {"SkipsToTheLatestDueTick", 0, 1, 9, true, 0, {10, 47}, {10, 40}, {{20, 2}}, 50},
         {"TheLastTickIsTheLastHoweverLate",
          0,
          1,
          9,
          true,
          0,
          {10, 47, 1'000},
          {10, 40, 90},
          {{20, 2}, {50, 4}},
          0},
         {"MakesUpForWhatIsNotTooLate", 0, 1, 9, true, 25, {30}, {10, 20, 30}, {}, 40},
         // 52 is the earliest that is wanted at 77.
         {"AndSkipsTheRest", 0, 1, 9, true, 25, {30, 77}, {10, 20, 30, 60, 70}, {{40, 2}}, 80}}),
    rows::by_name);

TEST(TimerQueue, FiresEachDueTimerOnceInTheOrderOfDueTimes) {
  std::vector<std::pair<int, Nanoseconds>> order;
  Recorder a(&order, 1), b(&order, 2), c(&order, 3);
  TimerQueue queue;
  queue.add({"a", 0, 7, 1, 100, false}, a);
  queue.add({"b", 0, 5, 1, 100, false}, b);
  queue.add({"c", 0, 50, 1, 100, false}, c);
  queue.set_base(0);
  EXPECT_EQ(queue.earliest(), 5);
  queue.run_due(20);
  EXPECT_EQ(order, (std::vector<std::pair<int, Nanoseconds>>{{2, 5}, {1, 7}}));
  EXPECT_EQ(queue.earliest(), 10);
  queue.run_due(20);
  EXPECT_EQ(order.size(), 4u);
}

TEST(TimerQueue, ManyTimersGetEveryTickExactlyOnce) {
  constexpr int kTimers = 100;
  std::vector<Recorder> recorders(kTimers);
  TimerQueue queue;
  for (int i = 0; i < kTimers; ++i) {
    queue.add({"t", 0, 3 + i % 17, 1, 50 + i, false}, recorders[static_cast<std::size_t>(i)]);
  }
  queue.set_base(1'000);
  for (Nanoseconds now = 1'000; !queue.empty(); now += 13) queue.run_due(now);
  for (int i = 0; i < kTimers; ++i) {
    const std::vector<Nanoseconds>& ticks = recorders[static_cast<std::size_t>(i)].ticks;
    ASSERT_EQ(ticks.size(), static_cast<std::size_t>(50 + i));
    for (std::size_t k = 0; k < ticks.size(); ++k) {
      ASSERT_EQ(ticks[k], 1'000 + static_cast<Nanoseconds>(k + 1) * (3 + i % 17));
    }
  }
}

TEST(TimerQueue, ATimerWithoutTicksIsDoneAtOnce) {
  Recorder recorder;
  TimerQueue queue;
  queue.add({"t", 0, 10, 1, 0, false}, recorder);
  queue.set_base(0);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.earliest(), TimerQueue::kNever);
}

}  // namespace
}  // namespace perflab::runtime
