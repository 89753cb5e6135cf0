// Numbers over time, from the thread that records to the records of a process.
#include <gtest/gtest.h>

#include "program/host.h"

namespace perflab::program {
namespace {

using nlohmann::json;

TEST(Series, IsTakenInTheOrderInWhichItWasRecordedAndOnce) {
  Series::State state("joints", {"a", "b"});
  Series series(state);
  series.record(10, std::vector<double>{0.1, -2.0});
  series.record(20, std::vector<double>{0.123456789, 1e-9});
  EXPECT_EQ(state.take(), (json{{"name", "joints"},
                                {"columns", {"a", "b"}},
                                {"at_ns", {10, 20}},
                                {"rows", {{0.1, -2.0}, {0.123457, 0.0}}},
                                {"left_out", 0}}));
  EXPECT_TRUE(state.take().is_null());
}

TEST(Series, LeavesOutAndCountsWhatHasNoRoomUntilItIsTaken) {
  Series::State state("joints", {"a"});
  Series series(state);
  for (int n = 0; n < 5000; ++n) series.record(n, std::vector<double>{static_cast<double>(n)});
  const json first = state.take();
  EXPECT_EQ(first["rows"].size(), 4096);
  EXPECT_EQ(first["left_out"], 904);
  series.record(5000, std::vector<double>{7.0});
  const json second = state.take();
  EXPECT_EQ(second["at_ns"], json{5000});
  EXPECT_EQ(second["rows"], json::array({json{7.0}}));
}

TEST(Series, LeavesOutARowOfAnotherLength) {
  Series::State state("joints", {"a", "b"});
  Series series(state);
  series.record(1, std::vector<double>{1.0});
  const json taken = state.take();
  EXPECT_EQ(taken["rows"], json::array());
  EXPECT_EQ(taken["left_out"], 1);
  EXPECT_TRUE(state.take().is_null());
}

}  // namespace
}  // namespace perflab::program
