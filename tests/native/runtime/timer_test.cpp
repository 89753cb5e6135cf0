#include "runtime/timer.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

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

TEST(TimerSchedule, TickKIsDueAtBasePlusKPeriods) {
  Recorder recorder;
  TimerSchedule timer({"t", 0, 10, 1, 3, false}, recorder);
  timer.set_base(100);
  EXPECT_EQ(timer.next_due(), 110);
  for (const Nanoseconds now : {110, 125, 130}) timer.fire(now);
  EXPECT_TRUE(timer.done());
  EXPECT_EQ(recorder.ticks, (std::vector<Nanoseconds>{110, 120, 130}));
}

TEST(TimerSchedule, WarmUpTicksStandBeforeTheBaseInTheSameGrid) {
  Recorder recorder;
  TimerSchedule timer({"t", 0, 10, -1, 1, false}, recorder);
  timer.set_base(100);
  for (const Nanoseconds now : {90, 100, 110}) timer.fire(now);
  EXPECT_EQ(recorder.ticks, (std::vector<Nanoseconds>{90, 100, 110}));
}

TEST(TimerSchedule, CatchesUpTickByTick) {
  Recorder recorder;
  TimerSchedule timer({"t", 0, 10, 1, 5, false}, recorder);
  timer.set_base(0);
  while (!timer.done() && timer.next_due() <= 47) timer.fire(47);
  EXPECT_EQ(recorder.ticks, (std::vector<Nanoseconds>{10, 20, 30, 40}));
  EXPECT_TRUE(recorder.skipped.empty());
}

TEST(TimerSchedule, SkipsToTheLatestDueTickAndReportsTheRest) {
  Recorder recorder;
  TimerSchedule timer({"t", 0, 10, 1, 9, true}, recorder);
  timer.set_base(0);
  timer.fire(10);
  timer.fire(47);
  EXPECT_EQ(recorder.ticks, (std::vector<Nanoseconds>{10, 40}));
  EXPECT_EQ(recorder.skipped, (std::vector<std::pair<Nanoseconds, std::uint64_t>>{{20, 2}}));
  timer.fire(1'000);  // the last tick is the last, however late
  EXPECT_EQ(recorder.ticks.back(), 90);
  EXPECT_TRUE(timer.done());
  EXPECT_EQ(recorder.ticks.size() + 2 + 4, 9u);
}

TEST(TimerSchedule, MakesUpForWhatIsNotTooLateAndSkipsTheRest) {
  Recorder recorder;
  TimerSchedule timer({"t", 0, 10, 1, 9, true, 25}, recorder);
  timer.set_base(0);
  while (!timer.done() && timer.next_due() <= 30) timer.fire(30);
  EXPECT_EQ(recorder.ticks, (std::vector<Nanoseconds>{10, 20, 30}));  // 20 late: made up for
  EXPECT_TRUE(recorder.skipped.empty());
  while (!timer.done() && timer.next_due() <= 77) timer.fire(77);
  EXPECT_EQ(recorder.ticks, (std::vector<Nanoseconds>{10, 20, 30, 60, 70}));  // 52 is the earliest wanted
  EXPECT_EQ(recorder.skipped, (std::vector<std::pair<Nanoseconds, std::uint64_t>>{{40, 2}}));
}

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
