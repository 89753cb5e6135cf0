#include "middleware/support/remembered.h"

#include <gtest/gtest.h>

namespace perflab::middleware::support {
namespace {

using Names = Remembered<int, int>;

TEST(Remembered, FindsThoseWhoAreHereAndThoseWhoHaveJustLeft) {
  Names names;
  names.add(1, 10);
  names.add(2, 20);
  names.left(1);
  names.left(1);  // once is enough
  names.left(7);  // never known
  ASSERT_NE(names.find(1), nullptr);
  EXPECT_EQ(*names.find(1), 10);
  EXPECT_EQ(*names.find(2), 20);
  EXPECT_EQ(names.find(3), nullptr);
}

TEST(Remembered, PeersThatComeAndGoCostNoMemory) {
  constexpr int kMany = 10 * static_cast<int>(Names::kGone);
  Names names;
  names.add(-1, 0);
  for (int i = 0; i < kMany; ++i) {
    names.add(i, i);
    names.left(i);
  }
  EXPECT_EQ(names.size(), Names::kGone + 1);
  EXPECT_NE(names.find(-1), nullptr) << "who stays is known, however many others leave";
  EXPECT_EQ(names.find(0), nullptr);
  EXPECT_NE(names.find(kMany - 1), nullptr);
}

}  // namespace
}  // namespace perflab::middleware::support
