// The arm's state, and waiting for updates, with a clock set by the tests.
#include "manipulation/move_group/state_monitor.h"

#include <gtest/gtest.h>

#include <thread>

#include "support.h"

namespace perflab::manipulation {
namespace {

TEST(StateMonitor, KnowsTheArmOnceEachJointWasHeardInAnyOrder) {
  const auto model = panda();
  const SimClock clock(true);
  StateMonitor monitor(model, clock);
  EXPECT_FALSE(monitor.current());
  messages::sensor_msgs::msg::JointState half = joint_state(*model, model->named_state("ready"), 5);
  half.name.resize(3);
  half.position.resize(3);
  half.velocity.resize(3);
  monitor.take(half, 1);
  EXPECT_FALSE(monitor.current());
  messages::sensor_msgs::msg::JointState all = joint_state(*model, model->named_state("ready"), 6);
  std::reverse(all.name.begin(), all.name.end());
  std::reverse(all.position.begin(), all.position.end());
  monitor.take(all, 2);
  ASSERT_TRUE(monitor.current());
  EXPECT_EQ(monitor.current()->positions, model->named_state("ready"));
  EXPECT_EQ(monitor.current()->stamp, 6 * kNanosecondsPerSecond);
  EXPECT_EQ(monitor.current()->published_ns, 2);
}

TEST(StateMonitor, LeavesOutWhatDoesNotGoTogetherAndWhoIsNotOfTheArm) {
  const auto model = panda();
  const SimClock clock(true);
  StateMonitor monitor(model, clock);
  monitor.take(joint_state(*model, model->named_state("ready"), 1), 1);
  auto wrong = joint_state(*model, Positions(7, 0.1), 2);
  wrong.position.resize(6);
  monitor.take(wrong, 2);
  EXPECT_EQ(monitor.current()->stamp, kNanosecondsPerSecond);
  auto other = joint_state(*model, Positions(7, 0.1), 3);
  for (auto& name : other.name) name = "left_" + name.string();
  monitor.take(other, 3);
  EXPECT_EQ(monitor.current()->positions, model->named_state("ready"));
}

TEST(StateMonitor, WaitsForAStateThatIsAsNewAsAsked) {
  const auto model = panda();
  SimClock clock(true);
  StateMonitor monitor(model, clock);
  monitor.take(joint_state(*model, model->named_state("ready"), 3), 1);
  EXPECT_TRUE(monitor.wait_for(3 * kNanosecondsPerSecond, kStateWait));
  std::jthread publisher([&] { monitor.take(joint_state(*model, model->named_state("ready"), 4), 1); });
  EXPECT_TRUE(monitor.wait_for(4 * kNanosecondsPerSecond, kStateWait));
}

TEST(StateMonitor, GivesUpByTheClockOfTheSimulationOnly) {
  const auto model = panda();
  SimClock clock(true);
  StateMonitor monitor(model, clock);
  clock.set(10 * kNanosecondsPerSecond, 0);
  std::atomic<bool> ended{false};
  bool came = true;
  std::jthread waiting([&] {
    came = monitor.wait_for(clock.now(), kStateWait);
    ended.store(true);
  });
  // It stands still for longer than the limit of one second by any other clock.
  std::this_thread::sleep_for(std::chrono::milliseconds(1200));
  EXPECT_FALSE(ended.load());
  clock.set(11 * kNanosecondsPerSecond + 1, 0);
  waiting.join();
  EXPECT_FALSE(came);
}

TEST(StateMonitor, EndsItsWaits) {
  const auto model = panda();
  SimClock clock(true);
  StateMonitor monitor(model, clock);
  std::jthread waiting([&] { EXPECT_FALSE(monitor.wait_for(1, kStateWait)); });
  monitor.stop();
}

}  // namespace
}  // namespace perflab::manipulation
