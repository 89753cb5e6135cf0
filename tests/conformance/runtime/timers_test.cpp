// Timers: every tick is given or counted, in order, never before its time.
#include "lab.h"

namespace perflab::runtime::conformance {
namespace {

class Timers : public AnyExecutor {
 protected:
  struct Schedule {
    std::chrono::nanoseconds period;
    std::int64_t first, last;
  };

  // That the timer told each tick from first to last, each once and in order; and what holds for due times.
  void expect_complete(const Ticks& ticks, const Schedule& schedule) {
    std::int64_t k = schedule.first;
    Nanoseconds last_due = std::numeric_limits<Nanoseconds>::min();
    for (const Ticks::Tick& tick : ticks.all()) {
      EXPECT_GT(tick.due_ns, last_due) << "tick " << k;
      last_due = tick.due_ns;
      if (abilities().makes_up_for_ticks) {
        EXPECT_EQ(tick.due_ns, base() + k * schedule.period.count()) << "tick " << k;
      } else if (k >= 1) {
        EXPECT_GE(tick.due_ns, base()) << "tick " << k;
      } else {
        EXPECT_LE(tick.due_ns, base()) << "tick " << k;
      }
      k += static_cast<std::int64_t>(std::max<std::uint64_t>(tick.skipped, 1));
    }
    EXPECT_EQ(k, schedule.last + 1);
    const auto wanted =
        static_cast<std::uint64_t>(std::max<std::int64_t>(schedule.last + 1 - schedule.first, 0));
    EXPECT_EQ(ticks.count() + ticks.skipped(), wanted);
  }
};

TEST_P(Timers, TickExactlyAsOftenAsAskedAtTheirDueTimes) {
  const Node on = node();
  const Node other = node_on(on.executor);
  const std::array<Schedule, 5> asked{
      {{700us, -3, 40}, {1ms, 1, 30}, {3300us, 1, 9}, {4ms, -5, 0}, {5ms, 1, 0}}};
  std::vector<Ticks*> ticks;
  for (std::size_t i = 0; i < asked.size(); ++i)
    ticks.push_back(&timer(i % 2 == 0 ? on : other, asked[i].period, asked[i].first, asked[i].last));
  start();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    SCOPED_TRACE("timer " + std::to_string(i));
    expect_complete(*ticks[i], asked[i]);
    if (abilities().makes_up_for_ticks) {
      EXPECT_EQ(ticks[i]->skipped(), 0u);
    }
  }
}

// Also where the place in the period is nearer to the start than a period.
TEST_P(Timers, TickAtTheirPlaceInThePeriod) {
  const Node on = node();
  struct Asked {
    Schedule schedule;
    std::chrono::nanoseconds shift;
  };
  const std::array<Asked, 3> asked{
      {{{2ms, -3, 20}, -1'300us}, {{2ms, 1, 20}, 0us}, {{1h, 1, 1}, 5ms - std::chrono::nanoseconds(1h)}}};
  std::vector<Ticks*> ticks;
  for (const auto& [schedule, shift] : asked)
    ticks.push_back(&timer(on, schedule.period, schedule.first, schedule.last, false, {}, shift));
  start();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  for (std::size_t i = 0; i < asked.size(); ++i) {
    SCOPED_TRACE("timer " + std::to_string(i));
    const auto& [schedule, shift] = asked[i];
    std::int64_t k = schedule.first;
    for (const Ticks::Tick& tick : ticks[i]->all()) {
      const Nanoseconds due = base() + shift.count() + k * schedule.period.count();
      // Of rclcpp the grid may be behind by what the reset took.
      EXPECT_GE(tick.due_ns, due) << "tick " << k;
      EXPECT_LT(tick.due_ns, due + (abilities().makes_up_for_ticks ? 1 : std::int64_t{500'000}))
          << "tick " << k;
      k += static_cast<std::int64_t>(std::max<std::uint64_t>(tick.skipped, 1));
    }
    EXPECT_EQ(k, schedule.last + 1);
  }
}

TEST_P(Timers, SkipWhatTheyMissedWhereTheyShallAndCountIt) {
  const Node on = node();
  const Schedule schedule{5ms, 1, 40};
  Ticks& ticks = timer(on, schedule.period, schedule.first, schedule.last, true);
  ticks.on_each = [&, given = 0](Nanoseconds) mutable {
    if (++given == 3) runtime().work(32'000'000);
  };
  start();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  expect_complete(ticks, schedule);
  EXPECT_GE(ticks.skipped(), 4u);
}

class PunctualTimers : public Timers {};

TEST_P(PunctualTimers, MakeUpForWhatTheyMissed) {
  const Node on = node();
  const Schedule schedule{2ms, 1, 40};
  const auto block_once = [this](Ticks& ticks) {
    ticks.on_each = [this, given = 0](Nanoseconds) mutable {
      if (++given == 3) runtime().work(20'000'000);
    };
  };
  Ticks& by_default = timer(on, schedule.period, schedule.first, schedule.last);
  Ticks& as_far_as_asked = timer(on, schedule.period, schedule.first, schedule.last, true, 1h);
  block_once(by_default);
  block_once(as_far_as_asked);
  start();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  for (const Ticks* ticks : {&by_default, &as_far_as_asked}) {
    expect_complete(*ticks, schedule);
    EXPECT_EQ(ticks->skipped(), 0u);
    EXPECT_EQ(ticks->count(), 40u);
  }
}

TEST_P(Timers, PublishAndGoOnWhileMessagesAreHandled) {
  const Node on = node();
  Inbox& inbox = subscribe(on, "/a", kSmall);
  Publisher& writer = publisher_of(on, "/a", kSmall);
  const Schedule schedule{1ms, 1, 60};
  Ticks& ticks = timer(on, schedule.period, schedule.first, schedule.last);
  std::uint64_t number = 0;
  ticks.on_each = [&](Nanoseconds) { EXPECT_TRUE(send(writer, kSmall, number++)); };
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] { return inbox.count() >= ticks.count(); })) << inbox.count();
  runtime().stop();
  expect_complete(ticks, schedule);
  EXPECT_EQ(inbox.numbers(), range(0, ticks.count()));
  EXPECT_TRUE(inbox.all_intact());
}

TEST_P(Timers, AreDoneWhenTheLastOneIsAndNotBefore) {
  const Node on = node();
  Ticks& quick = timer(on, 1ms, 1, 2);
  Ticks& slow = timer(Lab::node(ExecutorKind::kSingleThreaded), 30ms, 1, 3);
  std::atomic<bool> too_early{false};
  for (Ticks* ticks : {&quick, &slow}) {
    ticks->on_each = [&](Nanoseconds) {
      if (runtime().timers_done()) too_early = true;
    };
  }
  start();
  EXPECT_TRUE(timers_done());
  runtime().stop();
  EXPECT_FALSE(too_early);
  EXPECT_EQ(quick.count() + quick.skipped(), 2u);
  EXPECT_EQ(slow.count() + slow.skipped(), 3u);
}

TEST_P(Timers, AreDoneWhereThereAreNone) {
  subscribe(node(), "/a", kSmall);
  start();
  if (real_time()) {
    EXPECT_TRUE(runtime().timers_done());
  } else {  // which says so when nothing else happens either
    EXPECT_TRUE(timers_done());
  }
  runtime().stop();
}

INSTANTIATE_TEST_SUITE_P(, Timers, testing::ValuesIn(all_executors()), case_name);

// Others always skip.
std::vector<Case> executors_that_make_up_for_ticks() {
  return subject().abilities().makes_up_for_ticks ? all_executors() : std::vector<Case>{};
}
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(PunctualTimers);
INSTANTIATE_TEST_SUITE_P(, PunctualTimers, testing::ValuesIn(executors_that_make_up_for_ticks()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
