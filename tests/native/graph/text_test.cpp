#include "graph/text.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace perflab::graph {
namespace {

TEST(OneLine, EscapesWhatBreaksOrDisguisesALine) {
  EXPECT_EQ(one_line("grüße, 日本"), "grüße, 日本");
  EXPECT_EQ(one_line("a\nb\tc\x7f"), "a\\x0ab\\x09c\\x7f");
  EXPECT_EQ(one_line(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(one_line("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(one_line("\xe2\x80\xa8"), "\\xe2\\x80\\xa8") << "line separator";
  EXPECT_EQ(one_line("\xc2\x85"), "\\xc2\\x85") << "next line";
  EXPECT_EQ(one_line("a\xe2\x80\xae"), "a\\xe2\\x80\\xae") << "right to left from here";
  EXPECT_EQ(one_line("\xe2\x81\xa6"), "\\xe2\\x81\\xa6") << "an isolate";
  EXPECT_EQ(one_line("\xd8\x9c\xc2\xad\xef\xbb\xbf"), "\\xd8\\x9c\\xc2\\xad\\xef\\xbb\\xbf");
  EXPECT_EQ(one_line("µ – → €"), "µ – → €");
}

TEST(InputErrorText, IsOneLineWhateverIsQuoted) {
  EXPECT_STREQ(InputError("f\n:1:1: x").what(), "f\\x0a:1:1: x");
}

TEST(Utf8, IsCheckedByTheUnicodeTable) {
  EXPECT_EQ(find_invalid_utf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), std::string_view::npos);
  for (const char* bad :
       {"\x80", "\xc0\xaf", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5"}) {
    EXPECT_EQ(find_invalid_utf8(std::string("ab") + bad), 2U);
  }
}

TEST(Quote, ShortensBetweenCharacters) {
  EXPECT_EQ(quote("a"), "'a'");
  const std::string quoted = quote(std::string(60, 'a') + std::string("\xc3\xa9") + std::string(60, 'b'));
  EXPECT_EQ(quoted, "'" + std::string(60, 'a') + "...'");
}

TEST(Closest, OffersWhatWasProbablyMeant) {
  const std::vector<std::string_view> keys{"topic",     "type",        "size",
                                           "frequency", "reliability", "subscriptions"};
  EXPECT_EQ(closest("topci", keys), "topic");
  EXPECT_EQ(closest("Topic", keys), "topic");
  EXPECT_EQ(closest("rr", {"FIFO", "RR"}), "RR");
  EXPECT_EQ(closest("sched_fifo", {"FIFO", "RR"}), "FIFO");
  EXPECT_EQ(closest("topic_name", keys), "topic");
  EXPECT_EQ(closest("msg_type", keys), "type");
  EXPECT_EQ(closest("freq", keys), "frequency");
  EXPECT_EQ(closest("reliable", keys), "reliability");
  EXPECT_EQ(closest("subscribers", keys), "subscriptions");
  EXPECT_EQ(closest("colour", keys), "");
  EXPECT_EQ(closest("", keys), "");
  EXPECT_EQ(closest(std::string(100'000, 't'), keys), "");
}

TEST(ListOf, ReadsAsASentence) {
  EXPECT_EQ(list_of({"a"}), "a");
  EXPECT_EQ(list_of({"a", "b", "c"}), "a, b or c");
}

}  // namespace
}  // namespace perflab::graph
