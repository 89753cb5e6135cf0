// Running controllers and the statistics of their loop, with ros2_control's names and texts.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "manipulation/control/controller_set.h"
#include "manipulation/control/loop_statistics.h"

namespace perflab::manipulation {
namespace {

ControllerSet two() { return ControllerSet({{"broadcaster", "t", {}, {"j/position"}}, {"arm", "t", {"j/position"}, {}}}); }

TEST(ControllerSet, WhatIsAskedForIsDoneByTheNextCycle) {
  ControllerSet set = two();
  EXPECT_TRUE(set.active(0) && set.active(1));
  const Switch change = set.plan({}, {"arm"}, Strictness::kStrict);
  ASSERT_TRUE(change.ok) << change.message;
  EXPECT_EQ(change.message, "Successfully switched controllers!");
  set.ask(change);
  EXPECT_TRUE(set.active(1)) << "no cycle has passed";
  EXPECT_FALSE(set.done());
  EXPECT_EQ(set.running(), 0b01U);
  EXPECT_TRUE(set.done());
  EXPECT_FALSE(set.active(1));
  set.ask(set.plan({"arm"}, {}, Strictness::kStrict));
  EXPECT_EQ(set.running(), 0b11U);
}

TEST(ControllerSet, StrictRefusesAllOfItWhereOneCannotBe) {
  const ControllerSet set = two();
  const Switch unknown = set.plan({}, {"broadcaster", "leg"}, Strictness::kStrict);
  EXPECT_FALSE(unknown.ok);
  EXPECT_EQ(unknown.message, "Could not deactivate controller with name 'leg' because no controller with this name exists");
  EXPECT_TRUE(unknown.deactivate.empty());
  const Switch active = set.plan({"arm"}, {"broadcaster"}, Strictness::kStrict);
  EXPECT_FALSE(active.ok);
  EXPECT_EQ(active.message, "Controller with name 'arm' is already active.");
  EXPECT_TRUE(active.deactivate.empty());
}

TEST(ControllerSet, BestEffortDoesWhatCanBe) {
  ControllerSet set = two();
  const Switch change = set.plan({"arm"}, {"broadcaster", "leg"}, Strictness::kBestEffort);
  ASSERT_TRUE(change.ok) << change.message;
  EXPECT_TRUE(change.activate.empty());
  EXPECT_EQ(change.deactivate, std::vector<std::size_t>{0});
  EXPECT_FALSE(set.plan({"leg"}, {}, Strictness::kBestEffort).ok) << "there is nothing else";
  const Switch nothing = set.plan({"arm"}, {}, Strictness::kBestEffort);
  EXPECT_TRUE(nothing.ok);
  EXPECT_EQ(nothing.message, "After checking the controllers, no controllers need to be activated or deactivated.");
}

TEST(ControllerSet, OneThatIsInBothListsBeginsAnew) {
  ControllerSet set = two();
  const Switch change = set.plan({"arm"}, {"arm"}, Strictness::kStrict);
  ASSERT_TRUE(change.ok) << change.message;
  EXPECT_EQ(change.deactivate, std::vector<std::size_t>{1});
  set.ask(change);
  EXPECT_EQ(set.running(), 0b11U);
}

TEST(RunningStatistics, KnownAnswers) {
  RunningStatistics of;
  for (const double none : {of.max(), of.min(), of.average(), of.standard_deviation(), of.last()}) EXPECT_TRUE(std::isnan(none));
  for (const double value : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) of.add(value);
  EXPECT_EQ(of.count(), 8U);
  EXPECT_EQ(of.max(), 9.0);
  EXPECT_EQ(of.min(), 2.0);
  EXPECT_DOUBLE_EQ(of.average(), 5.0);
  EXPECT_DOUBLE_EQ(of.standard_deviation(), 2.0);
  EXPECT_EQ(of.last(), 9.0);
}

TEST(LoopStatistics, HasRos2ControlsNamesInMicrosecondsAndHertz) {
  LoopStatistics loop("controller_manager", "panda", {"broadcaster", "arm"});
  const auto value = [&loop](const std::string& name) {
    const auto found = std::find(loop.names().begin(), loop.names().end(), name);
    EXPECT_NE(found, loop.names().end()) << name;
    return found == loop.names().end() ? 0.0 : loop.values()[static_cast<std::size_t>(found - loop.names().begin())];
  };
  EXPECT_EQ(loop.names().size(), loop.values().size());
  EXPECT_TRUE(std::isnan(value("controller_manager.total_time")));
  for (const Nanoseconds at : {0, 2'000'000}) {
    loop.hardware_read(at, at + 1'000);
    loop.controller_updated(1, at + 1'000, at + 5'000);
    if (at > 0) loop.controller_updated(0, at + 5'000, at + 7'000);
    loop.hardware_written(at + 7'000, at + 10'000);
  }
  EXPECT_DOUBLE_EQ(value("controller_manager.read_time"), 1.0);
  EXPECT_DOUBLE_EQ(value("controller_manager.update_time"), 6.0);
  EXPECT_DOUBLE_EQ(value("controller_manager.write_time"), 3.0);
  EXPECT_DOUBLE_EQ(value("controller_manager.total_time"), 10.0);
  EXPECT_DOUBLE_EQ(value("controller_manager.switch_time"), 0.0);
  EXPECT_DOUBLE_EQ(value("arm.stats/execution_time/average"), 4.0);
  EXPECT_DOUBLE_EQ(value("arm.stats/execution_time/sample_count"), 2.0);
  EXPECT_DOUBLE_EQ(value("arm.stats/periodicity/current_value"), 500.0);
  EXPECT_DOUBLE_EQ(value("broadcaster.stats/execution_time/max"), 2.0);
  EXPECT_TRUE(std::isnan(value("broadcaster.stats/periodicity/average"))) << "it ran once";
  EXPECT_DOUBLE_EQ(value("panda.stats/read_cycle/periodicity/min"), 500.0);
  EXPECT_DOUBLE_EQ(value("panda.stats/write_cycle/execution_time/max"), 3.0);
}

}  // namespace
}  // namespace perflab::manipulation
