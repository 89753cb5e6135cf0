#include "runtime/guard.h"

#include <gtest/gtest.h>

namespace perflab::runtime {
namespace {

TEST(Guard, KeepsWhatTheFirstTriggerWasGivenUntilItIsTaken) {
  Guard guard;
  EXPECT_FALSE(guard.triggered());
  EXPECT_EQ(guard.take(), std::nullopt);
  EXPECT_TRUE(guard.trigger(7));
  EXPECT_FALSE(guard.trigger(8));
  EXPECT_FALSE(guard.trigger(7));
  EXPECT_TRUE(guard.triggered());
  EXPECT_EQ(guard.take(), 7);
  EXPECT_FALSE(guard.triggered());
  EXPECT_EQ(guard.take(), std::nullopt);
  EXPECT_TRUE(guard.trigger(0)) << "an instant like any other";
  EXPECT_EQ(guard.take(), 0);
}

}  // namespace
}  // namespace perflab::runtime
