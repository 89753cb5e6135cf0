#include <gtest/gtest.h>

#include "ctf/metadata.h"
#include "ctf/tsdl_lexer.h"

namespace perflab::ctf::tsdl {
namespace {

std::vector<Token> tokens(std::string_view text) {
  const std::string name = "text";
  Lexer lexer(text, name);
  std::vector<Token> result;
  for (Token token = lexer.next(); token.kind != TokenKind::end; token = lexer.next())
    result.push_back(token);
  return result;
}

TEST(Lexer, SaysWhereTokensStand) {
  const auto all = tokens("a\n  b /* x\n */ c");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].where.line, 2U);
  EXPECT_EQ(all[1].where.column, 3U);
  EXPECT_EQ(all[2].where.line, 3U);
  EXPECT_EQ(all[2].where.column, 5U);
}

TEST(Lexer, TakesTheLongestMark) {
  const auto all = tokens("x:=y->z...");
  ASSERT_EQ(all.size(), 6U);
  EXPECT_EQ(all[1].spelling, ":=");
  EXPECT_EQ(all[3].spelling, "->");
  EXPECT_EQ(all[5].spelling, "...");
}

TEST(Lexer, NumbersInAllBasesUpTo64Bits) {
  const auto all = tokens("0 010 0x1F 0b11 18446744073709551615 0xffffffffffffffffULL 7u");
  const std::vector<std::uint64_t> expected = {0, 8, 31, 3, UINT64_MAX, UINT64_MAX, 7};
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(all[i].value, expected[i]) << all[i].spelling;
}

TEST(Lexer, ReplacesEscapes) {
  const auto all = tokens(R"("\a\b\f\n\r\t\v\\\'\"\?\x41\101\x1z" 'c' L"wide")");
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].text, "\a\b\f\n\r\t\v\\'\"?AA\x01z");
  EXPECT_EQ(all[1].text, "c");
  EXPECT_EQ(all[2].text, "wide");
}

TEST(Lexer, ALineGoesOnAfterABackslash) {
  const auto all = tokens("a\\\nb \"c\\\nd\" \\\r\n e");
  ASSERT_EQ(all.size(), 4U);
  EXPECT_EQ(all[2].text, "cd");
  EXPECT_EQ(all[3].where.line, 4U);
}

TEST(Lexer, QuotesNothingThatATerminalWouldObey) {
  EXPECT_EQ(in_quotes("a\x1b[1m\xff"), "'a\\x1b[1m\\xff'");
  EXPECT_EQ(in_quotes(std::string(100, 'x')), "'" + std::string(60, 'x') + "...'");
}

}  // namespace
}  // namespace perflab::ctf::tsdl
