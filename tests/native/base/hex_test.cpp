#include "base/hex.h"

#include <gtest/gtest.h>

#include <array>

#include "../rows.h"

namespace perflab {
namespace {

using Bytes = std::array<std::uint8_t, 3>;

TEST(Hex, IsTwoLowerCaseDigitsPerByte) {
  EXPECT_EQ(to_hex(Bytes{0x00, 0x0a, 0xff}), "000aff");
  EXPECT_EQ(to_hex({}), "");
}

TEST(Hex, IsReadBackAsItWasWritten) {
  Bytes bytes{};
  EXPECT_TRUE(from_hex("000aff", bytes));
  EXPECT_EQ(bytes, (Bytes{0x00, 0x0a, 0xff}));
}

class NoHex : public testing::TestWithParam<const char*> {};

TEST_P(NoHex, IsRefused) {
  Bytes bytes{};
  EXPECT_FALSE(from_hex(GetParam(), bytes));
}

INSTANTIATE_TEST_SUITE_P(, NoHex,
                         testing::Values("", "000af", "000aff0", "000aFF", "000ag0", "0x0aff", "-10aff",
                                         " 00aff"),
                         rows::by_itself);

}  // namespace
}  // namespace perflab
