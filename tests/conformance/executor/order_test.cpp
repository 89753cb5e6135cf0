// priority: what is next among equals.
#include "../runtime/lab.h"

namespace perflab::runtime::conformance {
namespace {

class Equals : public Lab {
 protected:
  Equals() { open(); }
};

// Ticks among them: the one that was due before the first trigger, and the one that became due after the last.
TEST_F(Equals, RunInTheOrderInWhichTheyBecameReady) {
  const Node on = node(ExecutorKind::kPriority);
  std::vector<std::string> course;  // of one thread
  const auto named = [&](const char* name) {
    const Guarded made = waitable(on);
    made.answers->on_each = [&course, name](Nanoseconds) { course.emplace_back(name); };
    return made;
  };
  const auto tick = [&](const char* name, std::chrono::nanoseconds at) {
    timer(on, 1h, 1, 1, false, {}, at - 1h).on_each = [&course, name](Nanoseconds) { course.emplace_back(name); };
  };
  tick("late tick", 40ms);
  const Guarded one = named("one");
  const Guarded two = named("two");
  const Guarded three = named("three");
  tick("early tick", 20ms);
  timer(on, 1h, 1, 1, false, {}, 10ms - 1h).on_each = [&](Nanoseconds) {
    const auto until = [&](std::chrono::nanoseconds at) {
      EXPECT_TRUE(eventually([&] { return now() >= base() + at.count(); }));
    };
    until(20ms);
    for (const Guarded& next : {three, one, two}) next.endpoint->trigger(1);
    // The machine may have been busy for so long.
    if (now() >= base() + 40'000'000) course.emplace_back("too late");
    until(40ms);
  };
  start();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] { return two.answers->executed() == 1; }));
  runtime().stop();
  if (course.front() == "too late") GTEST_SKIP() << "the machine was busy for too long";
  EXPECT_EQ(course, (std::vector<std::string>{"early tick", "three", "one", "two", "late tick"}));
}

}  // namespace
}  // namespace perflab::runtime::conformance
