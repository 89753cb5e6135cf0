// Timers that are late from the beginning.
#include "fixture.h"

namespace perflab::runtime::conformance {
namespace {

class Timers : public AnyExecutor {};

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

INSTANTIATE_TEST_SUITE_P(, Timers, testing::ValuesIn(all_executors()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
