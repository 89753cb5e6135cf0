// Timers that are late from the beginning.
#include "../runtime/lab.h"

namespace perflab::runtime::conformance {
namespace {

// On each executor once: how messages pass is nothing to a timer.
std::vector<Case> executors(bool intra_process) {
  std::vector<Case> cases = all_executors();
  std::erase_if(cases, [&](const Case& one) { return one.intra_process != intra_process; });
  return cases;
}

class LateTimers : public AnyExecutor {};

TEST_P(LateTimers, MakeUpForTicksThatWereMissedOrCountThem) {
  const Node on = node();
  Ticks& made_up = timer(on, 1ms, 1, 200);
  Ticks& skipped = timer(on, 1ms, 1, 200, true);
  start(-500ms);  // all are due
  EXPECT_TRUE(timers_done());
  runtime().stop();
  EXPECT_EQ(made_up.count(), 200u);
  EXPECT_EQ(skipped.count(), 1u);
  EXPECT_EQ(skipped.skipped(), 199u);
}

INSTANTIATE_TEST_SUITE_P(, LateTimers, testing::ValuesIn(executors(false)), case_name);

class LateTimersWithinTheProcess : public AnyExecutor {};

// After a stall of the machine: ticks that are made up for must not send faster than the messages are
// handled, for the histories are short. The middleware might deliver later than the next tick.
TEST_P(LateTimersWithinTheProcess, TakeTurnsWithTheMessagesTheySend) {
  const Node on = node();
  std::vector<Inbox*> inboxes;
  for (const char* topic : {"/a", "/b", "/c", "/d"}) {
    for (int i = 0; i < 3; ++i) inboxes.push_back(&subscribe(on, topic, kSmall, keep_last(10)));
    Publisher& writer = publisher_of(on, topic, kSmall, keep_last(10));
    timer(on, 1ms, 1, 200).on_each = [&writer, number = std::uint64_t{0}](Nanoseconds) mutable {
      EXPECT_TRUE(send(writer, kSmall, number++));
    };
  }
  start(-500ms);  // all are due
  EXPECT_TRUE(eventually([&] {
    return runtime().timers_done() &&
           std::ranges::all_of(inboxes, [](const Inbox* inbox) { return inbox->count() == 200; });
  }));
  runtime().stop();
  for (const Inbox* inbox : inboxes) EXPECT_EQ(inbox->numbers(), range(0, 200));
}

INSTANTIATE_TEST_SUITE_P(, LateTimersWithinTheProcess, testing::ValuesIn(executors(true)), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
