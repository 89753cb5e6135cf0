#include "traceview/folded.h"

#include <gtest/gtest.h>

#include <random>
#include <stdexcept>

#include "support.h"

namespace perflab::traceview {
namespace {

std::string folded(const MadeTables& made) {
  std::string out;
  write_folded(made.tables(), made.options, [&out](std::string_view line) { out += line; });
  return out;
}

TEST(Folded, AnExecutorWithinACallbackStandsBelowIt) {
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  const auto outer = made.callback("outer"), inner = made.callback("inner");
  made.phase(main, PhaseKind::execute, 0, 100);
  made.instance(outer, main, 10, 90);
  made.phase(main, PhaseKind::wait_for_work, 20, 60);
  made.phase(main, PhaseKind::execute, 60, 80);
  made.instance(inner, main, 65, 75);
  made.state(main, ThreadState::running, 0, 100, 0, EndState::sleeping);
  EXPECT_EQ(folded(made),
            "demo (7);demo (7);execute;[executor] 20\n"
            "demo (7);demo (7);execute;outer 20\n"
            "demo (7);demo (7);execute;outer;execute 10\n"
            "demo (7);demo (7);execute;outer;execute;inner 10\n"
            "demo (7);demo (7);execute;outer;wait_for_work 40\n");
}

TEST(Folded, FunctionsThatEndAfterTheCallbackTheyCallAreNotShownInIt) {
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  const auto callback = made.callback("callback");
  made.options.functions = {"main()", "plan(int; int)\n"};
  made.call(main, 0, 0, 100);
  made.call(main, 1, 30, 40);
  made.instance(callback, main, 20, 60);
  made.state(main, ThreadState::running, 10, 70, 0, EndState::sleeping);
  EXPECT_EQ(folded(made),
            "demo (7);demo (7);[other];main() 20\n"
            "demo (7);demo (7);callback 30\n"
            "demo (7);demo (7);callback;plan(int, int)  10\n");
}

TEST(Folded, NeedsTheSchedulerUnlessWallTimeIsAskedFor) {
  MadeTables made;
  made.thread(made.process(7, "demo"), 7, "demo");
  EXPECT_THROW(folded(made), std::invalid_argument);
  made.options.wall = true;
  EXPECT_EQ(folded(made), "");
}

TEST(Folded, NoNanosecondIsLostOrCountedTwice) {
  std::mt19937_64 random(7);
  const auto up_to = [&random](std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(0, most)(random);
  };
  for (int round = 0; round < 200; ++round) {
    MadeTables made;
    const auto main = made.thread(made.process(7, "demo"), 7, "demo");
    const auto callback = made.callback("callback");
    made.options.functions = {"f", "g"};
    for (int i = 0; i < 20; ++i) {
      const std::int64_t start = up_to(1'000);
      switch (up_to(2)) {
        case 0:
          made.instance(callback, main, start, start + up_to(200));
          break;
        case 1:
          made.phase(main, PhaseKind::execute, start, start + up_to(200));
          break;
        default:
          made.call(main, static_cast<std::int32_t>(up_to(1)), start, start + up_to(200));
      }
    }
    std::uint64_t ran = 0;
    for (std::int64_t time = up_to(100); time < 1'200;) {
      const std::int64_t end = time + 1 + up_to(150);
      made.state(main, ThreadState::running, time, end, 0, EndState::sleeping);
      ran += static_cast<std::uint64_t>(end - time);
      time = end + up_to(80);
    }
    std::uint64_t found = 0;
    const ExportCounts counts = write_folded(made.tables(), made.options, [&found](std::string_view line) {
      found += std::stoull(std::string(line.substr(line.rfind(' '))));
    });
    ASSERT_EQ(found, ran);
    ASSERT_EQ(counts[2], (std::pair<std::string, std::uint64_t>{"total_ns", ran}));
  }
}

}  // namespace
}  // namespace perflab::traceview
