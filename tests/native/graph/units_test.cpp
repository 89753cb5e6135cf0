#include "graph/units.h"

#include <gtest/gtest.h>

namespace perflab::graph {
namespace {

TEST(Duration, IsExactInEveryUnit) {
  EXPECT_EQ(parse_duration("250ns"), 250);
  EXPECT_EQ(parse_duration("0us"), 0);
  EXPECT_EQ(parse_duration("66666us"), 66'666'000);
  EXPECT_EQ(parse_duration("10ms"), 10'000'000);
  EXPECT_EQ(parse_duration("1.5s"), 1'500'000'000);
  EXPECT_EQ(parse_duration("0.000000001s"), 1);
  EXPECT_EQ(parse_duration("15.625ms"), 15'625'000);
  EXPECT_EQ(parse_duration("007ms"), 7'000'000);
  EXPECT_EQ(parse_duration("1.500000000000s"), 1'500'000'000) << "zeros at the end do not count as digits";
}

TEST(Duration, ReachesOneDayAndNoFurther) {
  EXPECT_EQ(parse_duration("86400s"), kLongestDuration);
  EXPECT_EQ(parse_duration("86400000000000ns"), kLongestDuration);
  EXPECT_THROW(parse_duration("86400.000000001s"), UnitError);
  EXPECT_THROW(parse_duration("9223372036854775808ns"), UnitError);
  EXPECT_THROW(parse_duration("99999999999999999999999999s"), UnitError);
}

TEST(Duration, SaysWhichUnitIsMissing) {
  try {
    parse_duration("10");
    FAIL();
  } catch (const UnitError& error) {
    EXPECT_STREQ(error.what(), "'10' has no unit; write 10ms if milliseconds are meant (ns, us, ms or s)");
  }
}

TEST(Duration, RefusesWhatItCannotRepresent) {
  for (const char* text : {"", "ms", ".5s", "1.s", "1.5.5s", "-1s", "+1s", "1 s", "1e3s", "1,5s", "10 ",
                           "10min", "0.5ns", "1.0000000001s", "0x10ms", "infs", "nans"}) {
    EXPECT_THROW(parse_duration(text), UnitError) << text;
  }
}

TEST(DurationText, IsTheShortestExactForm) {
  EXPECT_EQ(duration_text(0), "0ns");
  EXPECT_EQ(duration_text(999), "999ns");
  EXPECT_EQ(duration_text(1'500'000), "1500us");
  EXPECT_EQ(duration_text(10'000'000), "10ms");
  EXPECT_EQ(duration_text(kLongestDuration), "86400s");
  EXPECT_EQ(duration_text(-5'000), "-5us");
  for (const Nanoseconds ns : {1LL, 1'000LL, 1'001LL, 66'666'000LL, 86'400'000'000'000LL}) {
    EXPECT_EQ(parse_duration(duration_text(ns)), ns);
  }
}

TEST(Frequency, IsHertz) {
  EXPECT_DOUBLE_EQ(parse_frequency("64Hz"), 64.0);
  EXPECT_DOUBLE_EQ(parse_frequency("1.5kHz"), 1500.0);
  for (const char* text : {"", "64", "Hz", "64hz", "-1Hz", "1e3Hz", "64 Hz"}) {
    EXPECT_THROW(parse_frequency(text), UnitError) << text;
  }
}

TEST(Frequency, HasAPeriodRoundedToNanoseconds) {
  EXPECT_EQ(period_of(64.0), 15'625'000);
  EXPECT_EQ(period_of(15.0), 66'666'667);
  EXPECT_EQ(period_of(3.0), 333'333'333);
  EXPECT_EQ(period_of(1e6), 1'000);
  EXPECT_THROW(period_of(1e6 + 1), UnitError);
  EXPECT_THROW(period_of(0.0), UnitError);
  EXPECT_THROW(period_of(-1.0), UnitError);
  EXPECT_THROW(period_of(1e-5), UnitError);
  EXPECT_THROW(period_of(1e300), UnitError);
}

TEST(Size, DistinguishesDecimalAndBinaryPrefixes) {
  EXPECT_EQ(parse_size("1024"), 1024U);
  EXPECT_EQ(parse_size("10B"), 10U);
  EXPECT_EQ(parse_size("10kB"), 10'000U);
  EXPECT_EQ(parse_size("10KiB"), 10'240U);
  EXPECT_EQ(parse_size("1MB"), 1'000'000U);
  EXPECT_EQ(parse_size("64MiB"), 67'108'864U);
  EXPECT_EQ(parse_size("0B"), 0U);
  for (const char* text :
       {"", "kB", "-1", "1.5kB", "1.0kB", "10kb", "10 kB", "99999999999", "5000MB", "4294967296"}) {
    EXPECT_THROW(parse_size(text), UnitError) << text;
  }
}

TEST(Cpus, AreNumbersAndRanges) {
  EXPECT_EQ(parse_cpus("0"), std::vector<int>{0});
  EXPECT_EQ(parse_cpus("0-2,5"), (std::vector<int>{0, 1, 2, 5}));
  EXPECT_EQ(parse_cpus("7,3-4,0"), (std::vector<int>{0, 3, 4, 7})) << "in ascending order";
  EXPECT_EQ(parse_cpus("0-1023").size(), 1024U);
  for (const char* text : {"",       ",",
                           "0,",     ",0",
                           "-",      "-1",
                           "1-",     "0--1",
                           "0-1-2",  "a",
                           "0x1",    "0 1",
                           " 0",     "+1",
                           "1.0",    "0-8:2",
                           "1-0",    "1,1",
                           "0-2,2",  "1024",
                           "0-1024", "99999999999999999999"}) {
    EXPECT_THROW(parse_cpus(text), UnitError) << text;
  }
}

TEST(Cpus, OfManyRangesAreBounded) {
  std::string text = "0-1023";
  for (int i = 0; i < 100'000; ++i) text += ",0-1023";
  EXPECT_THROW(parse_cpus(text), UnitError);
}

}  // namespace
}  // namespace perflab::graph
