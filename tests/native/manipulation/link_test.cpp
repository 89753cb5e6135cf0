// The memory shared by hardware and controller manager: passed on, and never seen half-written.
#include "manipulation/hardware/link.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <thread>

#include "base/error.h"

namespace perflab::manipulation {
namespace {

std::string unique_name() { return "perflab-test-" + std::to_string(getpid()); }
const std::function<bool()> kNever = [] { return false; };

TEST(HardwareLink, WhatOneSideWritesTheOtherOneReadsWhole) {
  constexpr int kWrites = 20'000;
  std::thread hardware([] {
    HardwareLink link = HardwareLink::offer(unique_name(), kNever);
    HardwareLink::Sample sample{};
    for (int each = 1; each <= kWrites; ++each) {
      sample.time_ns = each;
      sample.positions.fill(each);
      sample.hand = each;
      link.write(sample);
    }
    HardwareLink::Command command{};
    while (!link.read(command) || command.hand != 0.5) std::this_thread::yield();
  });
  HardwareLink link = HardwareLink::expect(unique_name(), kNever);
  HardwareLink::Sample sample{};
  while (sample.time_ns < kWrites) {
    if (!link.read(sample)) continue;
    for (const double each : sample.positions) ASSERT_EQ(each, static_cast<double>(sample.time_ns));
    ASSERT_EQ(sample.hand, static_cast<double>(sample.time_ns));
  }
  HardwareLink::Command command{};
  command.hand = 0.5;
  link.write(command);
  hardware.join();
}

TEST(HardwareLink, NobodyWaitsForOneThatNeverComes) {
  int left = 3;
  const auto soon = [&left] { return --left < 0; };
  EXPECT_THROW(static_cast<void>(HardwareLink::offer(unique_name(), soon)), Failed);
  left = 3;
  EXPECT_THROW(static_cast<void>(HardwareLink::expect(unique_name(), soon)), Failed);
}

}  // namespace
}  // namespace perflab::manipulation
