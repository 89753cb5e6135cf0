// Timers: exactly the ticks that are due, at their times, whatever else runs.
#include "fixture.h"

namespace perflab::runtime::conformance {
namespace {

class Timers : public AnyExecutor {};

TEST_P(Timers, TickExactlyAsOftenAsAskedWithTheirDueTimes) {
  const std::size_t on = executor();
  struct Asked {
    Nanoseconds period;
    std::int64_t first, last;
    Ticks* ticks;
  };
  std::vector<Asked> asked{{700'000, -3, 40, nullptr},
                           {1'000'000, 1, 30, nullptr},
                           {3'300'000, 1, 9, nullptr},
                           {5'000'000, 1, 0, nullptr}};
  for (std::size_t i = 0; i < asked.size(); ++i) {
    asked[i].ticks = &timer(on, asked[i].period, asked[i].first, asked[i].last, false, i % 2);
  }
  const Nanoseconds base = clock_.now() + 5'000'000;
  runtime().start(base);
  EXPECT_TRUE(eventually([&] { return runtime().timers_done(); }));
  runtime().stop();
  for (const Asked& one : asked) {
    std::vector<Nanoseconds> dues;
    for (std::int64_t k = one.first; k <= one.last; ++k) dues.push_back(base + k * one.period);
    EXPECT_EQ(one.ticks->dues(), dues);
    EXPECT_EQ(one.ticks->skipped(), 0u);
  }
}

TEST_P(Timers, MakeUpForTicksThatWereMissedOrCountThem) {
  const std::size_t on = executor();
  Ticks& made_up = timer(on, 1'000'000, 1, 200);
  Ticks& skipped = timer(on, 1'000'000, 1, 200, true);
  runtime().start(clock_.now() - 500'000'000);  // all are due
  EXPECT_TRUE(eventually([&] { return runtime().timers_done(); }));
  runtime().stop();
  EXPECT_EQ(made_up.count(), 200u);
  EXPECT_EQ(skipped.count(), 1u);
  EXPECT_EQ(skipped.skipped(), 199u);
}

TEST_P(Timers, GoOnWhileMessagesAreHandled) {
  const std::size_t on = executor();
  Inbox& inbox = subscribe(on, "/a", lossless(1'000));
  Publisher& writer = publisher("/a", lossless(1'000));
  Ticks& ticks = timer(on, 500'000, 1, 100);
  // Publishes from a timer, as graphs do.
  std::uint64_t number = 0;
  ticks.on_each = [&] { EXPECT_TRUE(send(writer, number++)); };
  ASSERT_TRUE(all_matched(1));
  runtime().start(clock_.now());
  EXPECT_TRUE(eventually([&] { return runtime().timers_done() && inbox.count() == 100; })) << inbox.count();
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), perflab::conformance::range(0, 100));
}

// After a stall of the machine: ticks that are made up for must not send faster than the messages are
// handled, for the histories are short. Within the process, where nothing else takes part.
TEST_P(Timers, ThatAreLateTakeTurnsWithTheMessagesTheySend) {
  if (!GetParam().intra_process) GTEST_SKIP() << "the middleware may deliver later than the next tick";
  const std::size_t on = executor();
  std::vector<Inbox*> inboxes;
  for (const char* topic : {"/a", "/b", "/c", "/d"}) {
    for (int i = 0; i < 3; ++i) inboxes.push_back(&subscribe(on, topic, keep_last(10)));
    Publisher& writer = publisher(topic, keep_last(10));
    timer(on, 1'000'000, 1, 200).on_each = [this, &writer, number = std::uint64_t{0}]() mutable {
      EXPECT_TRUE(send(writer, number++));
    };
  }
  runtime().start(clock_.now() - 500'000'000);  // all are due
  EXPECT_TRUE(eventually([&] {
    return runtime().timers_done() &&
           std::ranges::all_of(inboxes, [](const Inbox* inbox) { return inbox->count() == 200; });
  }));
  runtime().stop();
  for (const Inbox* inbox : inboxes) EXPECT_EQ(inbox->numbers(), perflab::conformance::range(0, 200));
}

TEST_P(Timers, AreDoneAtOnceWhereThereAreNone) {
  subscribe(executor(), "/a", keep_last(10));
  runtime().start(clock_.now());
  EXPECT_TRUE(runtime().timers_done());
  runtime().stop();
}

INSTANTIATE_TEST_SUITE_P(, Timers, testing::ValuesIn(all_executors()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
