#include "base/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../rows.h"

namespace perflab {
namespace {

struct Line {
  const char* name;
  std::string text;
  std::string expected;
};
class OneLine : public testing::TestWithParam<Line> {};

TEST_P(OneLine, EscapesWhatBreaksOrDisguisesALine) {
  EXPECT_EQ(one_line(GetParam().text), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(, OneLine,
                         rows::of<Line>({{"Letters", "grüße, 日本", "grüße, 日本"},
                                         {"Signs", "µ – → €", "µ – → €"},
                                         {"ControlCharacters", "a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f"},
                                         {"TheZero", std::string(1, '\0'), "\\x00"},
                                         {"BytesThatAreNoUtf8", "\xff\xc3", "\\xff\\xc3"},
                                         {"ALineSeparator", "\xe2\x80\xa8", "\\xe2\\x80\\xa8"},
                                         {"ANextLine", "\xc2\x85", "\\xc2\\x85"},
                                         {"RightToLeft", "a\xe2\x80\xae", "a\\xe2\\x80\\xae"},
                                         {"AnIsolate", "\xe2\x81\xa6", "\\xe2\\x81\\xa6"},
                                         {"InvisibleOnes", "\xd8\x9c\xc2\xad\xef\xbb\xbf",
                                          "\\xd8\\x9c\\xc2\\xad\\xef\\xbb\\xbf"}}),
                         rows::by_name);

TEST(Utf8, OfTheUnicodeTableIsValid) {
  EXPECT_EQ(find_invalid_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), std::string_view::npos);
}

class NoUtf8 : public testing::TestWithParam<std::string> {};

TEST_P(NoUtf8, IsFoundWhereItBegins) { EXPECT_EQ(find_invalid_utf8("ab" + GetParam()), 2U); }

INSTANTIATE_TEST_SUITE_P(, NoUtf8,
                         rows::of<std::string>({"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80",
                                                "\xf4\x90\x80\x80", "\xf5"}),
                         rows::by_itself);

TEST(Quote, ShortensBetweenCharacters) {
  EXPECT_EQ(quote("a"), "'a'");
  const std::string quoted = quote(std::string(60, 'a') + std::string("\xc3\xa9") + std::string(60, 'b'));
  EXPECT_EQ(quoted, "'" + std::string(60, 'a') + "...'");
}

struct Meant {
  std::string text;
  std::string expected;
};
class Closest : public testing::TestWithParam<Meant> {};

TEST_P(Closest, OffersWhatWasProbablyMeant) {
  const std::vector<std::string_view> words{"topic",       "type",          "size", "frequency",
                                            "reliability", "subscriptions", "FIFO", "RR"};
  EXPECT_EQ(closest(GetParam().text, words), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(, Closest,
                         rows::of<Meant>({{"topci", "topic"},
                                          {"Topic", "topic"},
                                          {"rr", "RR"},
                                          {"sched_fifo", "FIFO"},
                                          {"topic_name", "topic"},
                                          {"msg_type", "type"},
                                          {"freq", "frequency"},
                                          {"reliable", "reliability"},
                                          {"subscribers", "subscriptions"},
                                          {"colour", ""},
                                          {"", ""},
                                          {std::string(100'000, 't'), ""}}),
                         rows::by_text);

TEST(ListOf, ReadsAsASentence) {
  EXPECT_EQ(list_of({"a"}), "a");
  EXPECT_EQ(list_of({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace perflab
