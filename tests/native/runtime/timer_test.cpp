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

TimerSettings ticks(Nanoseconds period_ns, std::int64_t first, std::int64_t last) {
  return {
      .name = "t", .period_ns = period_ns, .from_ns = (first - 1) * period_ns, .until_ns = last * period_ns};
}

// A timer with a period of 10, run at certain instants until nothing is due.
struct Schedule {
  const char* name;
  Nanoseconds base;
  std::int64_t first, last;
  bool skips;
  Nanoseconds made_up_for;
  std::vector<Nanoseconds> looks;
  std::vector<Nanoseconds> ticks;
  std::vector<std::pair<Nanoseconds, std::uint64_t>> skipped;  // since when, and how many
  Nanoseconds next;                                            // next due time; 0: the last tick has passed
};
class TimerTable : public testing::TestWithParam<Schedule> {};

TEST_P(TimerTable, GivesEachTickOrCountsIt) {
  const Schedule& row = GetParam();
  Recorder recorder;
  TimerSettings settings = ticks(10, row.first, row.last);
  settings.skip_missed = row.skips;
  settings.made_up_for_ns = row.made_up_for;
  TimerSchedule timer(settings, recorder);
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
         // 52 is the earliest that still runs at 77.
         {"AndSkipsTheRest", 0, 1, 9, true, 25, {30, 77}, {10, 20, 30, 60, 70}, {{40, 2}}, 80}}),
    rows::by_name);

// All ticks of a timer, each fired when it is due.
std::vector<Nanoseconds> all_of(const TimerSettings& settings) {
  Recorder recorder;
  TimerSchedule timer(settings, recorder);
  while (!timer.done()) timer.fire(timer.next_due());
  return recorder.ticks;
}

TEST(Arrivals, ABurstIsDueTogetherAndTheMeanFrequencyStays) {
  TimerSettings settings = ticks(10, 1, 10);
  settings.burst = 3;
  EXPECT_EQ(all_of(settings), (std::vector<Nanoseconds>{30, 30, 30, 60, 60, 60, 90, 90, 90}));
  settings.from_ns = -65;
  settings.until_ns = 30;
  EXPECT_EQ(all_of(settings), (std::vector<Nanoseconds>{-30, -30, -30, 0, 0, 0, 30, 30, 30}));
}

TEST(Arrivals, OfALateBurstOneTickIsLeftWhereTicksAreSkipped) {
  TimerSettings settings = ticks(10, 1, 100);
  settings.burst = 2;
  settings.skip_missed = true;
  Recorder recorder;
  TimerSchedule timer(settings, recorder);
  timer.fire(65);  // 20, 20, 40, 40, 60 were missed
  EXPECT_EQ(recorder.ticks, (std::vector<Nanoseconds>{60}));
  EXPECT_EQ(recorder.skipped, (std::vector<std::pair<Nanoseconds, std::uint64_t>>{{20, 5}}));
  EXPECT_EQ(timer.next_due(), 80);
}

// Skipping does not depend on how many ticks are skipped at once.
TEST(Arrivals, AfterALongStallWhatIsSkippedIsCountedToTheLastTick) {
  for (const Nanoseconds made_up_for : {0, 1, 25, 40}) {
    for (const std::int64_t burst : {1, 3}) {
      for (const Nanoseconds now : {9, 10, 35, 99'995, 100'000, 100'001, 999'990, 1'000'000, 5'000'000}) {
        SCOPED_TRACE(testing::Message() << made_up_for << ", " << burst << ", " << now);
        TimerSettings settings = ticks(10, 1, 100'000);
        settings.burst = burst;
        settings.skip_missed = true;
        settings.made_up_for_ns = made_up_for;
        // By the rule itself: the latest due tick, or the first that is not too late; never beyond the last.
        const std::int64_t gap = 10 * burst, last = settings.until_ns / gap * burst;
        const auto due = [&](std::int64_t k) { return (k + burst - 1) / burst * gap; };
        std::int64_t chosen = 1;
        while (chosen < last && (made_up_for == 0 ? due(chosen + 1) <= now : now - due(chosen) > made_up_for)) ++chosen;
        Recorder recorder;
        TimerSchedule timer(settings, recorder);
        if (timer.next_due() > now) continue;
        timer.fire(now);
        ASSERT_EQ(recorder.ticks, std::vector<Nanoseconds>{due(chosen)});
        ASSERT_EQ(recorder.skipped.empty() ? 0u : recorder.skipped[0].second, static_cast<std::uint64_t>(chosen - 1));
      }
    }
  }
}

// Gaps of a Poisson process are exponential: mean and standard deviation are the period, and a share of 1/e
// is longer. With 100,000 of them the mean is within 1.3 % in all but one of 10,000 seeds; the seed is one of
// these.
TEST(Arrivals, PoissonGapsAreExponentialAndThoseOfASeed) {
  constexpr double kMean = 1'000'000;
  TimerSettings settings = ticks(1'000'000, 1, 100'000);
  settings.arrivals = Arrivals::kPoisson;
  settings.seed = 7;
  const std::vector<Nanoseconds> ticks = all_of(settings);
  EXPECT_NEAR(static_cast<double>(ticks.size()), 100'000, 1'300);
  EXPECT_LE(ticks.back(), settings.until_ns);
  double sum = 0.0, squares = 0.0, products = 0.0, before = 0.0;
  std::size_t longer = 0;
  for (std::size_t i = 1; i < ticks.size(); ++i) {
    const double gap = static_cast<double>(ticks[i] - ticks[i - 1]) / kMean;
    ASSERT_GE(gap, 0.0);
    sum += gap;
    squares += gap * gap;
    products += (gap - 1.0) * (before - 1.0);
    before = gap;
    if (gap > 1.0) ++longer;
  }
  const auto gaps = static_cast<double>(ticks.size() - 1);
  const double mean = sum / gaps;
  EXPECT_NEAR(mean, 1.0, 0.013);
  EXPECT_NEAR(squares / gaps - mean * mean, 1.0, 0.04);
  EXPECT_NEAR(static_cast<double>(longer) / gaps, 0.3679, 0.006);
  EXPECT_NEAR(products / gaps, 0.0, 0.013);  // gaps are uncorrelated
  EXPECT_EQ(all_of(settings), ticks);
  settings.seed = 8;
  EXPECT_NE(all_of(settings), ticks);
}

TEST(Arrivals, AnUnthrottledTickIsDueWhenTheOneBeforeHasBeenServed) {
  TimerSettings settings{.name = "t", .arrivals = Arrivals::kUnthrottled, .from_ns = -10, .until_ns = 100};
  Recorder recorder;
  TimerSchedule timer(settings, recorder);
  timer.set_base(1'000);
  EXPECT_EQ(timer.next_due(), 990);
  for (const Nanoseconds now : {991, 1'040, 1'041, 1'100, 1'101}) {
    ASSERT_FALSE(timer.done());
    ASSERT_LE(timer.next_due(), now);
    timer.fire(now);
  }
  EXPECT_EQ(recorder.ticks, (std::vector<Nanoseconds>{991, 1'040, 1'041, 1'100}));
  EXPECT_TRUE(timer.done());
  settings.until_ns = settings.from_ns;
  EXPECT_TRUE(TimerSchedule(settings, recorder).done());
}

// At 1'045 each learns that nothing ticks after 1'050.
TEST(TimerEnd, WhatIsDueByThenIsServedAndNothingAfterIt) {
  struct Row {
    const char* name;
    TimerSettings settings;
    std::vector<Nanoseconds> ticks;
    bool sleeps;  // beyond the end, without waking up for it
  };
  for (const Row& row : {
           Row{"periodic", {.name = "t", .period_ns = 10}, {1'010, 1'020, 1'030, 1'040, 1'050}, false},
           Row{"slow", {.name = "t", .period_ns = 5'000}, {}, true},
           Row{"skips", {.name = "t", .period_ns = 10, .skip_missed = true}, {1'010, 1'020, 1'030, 1'040, 1'050}, false},
           Row{"bursts", {.name = "t", .period_ns = 10, .burst = 2}, {1'020, 1'020, 1'040, 1'040}, true},
           Row{"unthrottled",
               {.name = "t", .arrivals = Arrivals::kUnthrottled},
               {1'005, 1'015, 1'025, 1'035, 1'045},
               false},
       }) {
    TimerEnd end;
    TimerSettings settings = row.settings;
    settings.until_ns = 1'000'000;
    settings.end = &end;
    Recorder recorder;
    TimerSchedule timer(settings, recorder);
    timer.set_base(1'000);
    for (Nanoseconds now = 1'005; now <= 1'055; now += 10) {
      const auto served = [&] { return !recorder.ticks.empty() && recorder.ticks.back() == now; };  // unthrottled
      while (!timer.done() && timer.next_due() <= now && !served()) timer.fire(now);
      EXPECT_FALSE(end.passed() && now < 1'045) << row.name << " at " << now;
      if (now == 1'045) end.until_ns = 50;
    }
    EXPECT_EQ(recorder.ticks, row.ticks) << row.name;
    EXPECT_TRUE(end.passed()) << row.name;
    EXPECT_NE(timer.done(), row.sleeps) << row.name;
    if (!row.sleeps) continue;
    timer.fire(timer.next_due());  // it wakes at last
    EXPECT_EQ(recorder.ticks, row.ticks) << row.name;
    EXPECT_TRUE(timer.done()) << row.name;
  }
}

TEST(TimerQueue, FiresEachDueTimerOnceInTheOrderOfDueTimes) {
  std::vector<std::pair<int, Nanoseconds>> order;
  Recorder a(&order, 1), b(&order, 2), c(&order, 3);
  TimerQueue queue;
  queue.add(ticks(7, 1, 100), a);
  queue.add(ticks(5, 1, 100), b);
  queue.add(ticks(50, 1, 100), c);
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
    queue.add(ticks(3 + i % 17, 1, 50 + i), recorders[static_cast<std::size_t>(i)]);
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
  queue.add(ticks(10, 1, 0), recorder);
  queue.set_base(0);
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.earliest(), TimerQueue::kNever);
}

}  // namespace
}  // namespace perflab::runtime
