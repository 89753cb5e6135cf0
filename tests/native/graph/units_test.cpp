#include "graph/units.h"

#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "../rows.h"

namespace perflab::graph {
namespace {

// A text and its value; empty if it is refused.
template <typename Value>
struct Reading {
  std::string text;
  std::optional<Value> value;
};

template <typename Value>
auto refused(std::initializer_list<const char*> texts) {
  std::vector<Reading<Value>> rows;
  for (const char* const text : texts) rows.push_back({text, std::nullopt});
  return testing::ValuesIn(rows);
}

template <typename Value>
void expect_reading(Value (*parse)(std::string_view), const Reading<Value>& row) {
  if (row.value) {
    EXPECT_EQ(parse(row.text), *row.value);
  } else {
    EXPECT_THROW(parse(row.text), UnitError);
  }
}

class Duration : public testing::TestWithParam<Reading<Nanoseconds>> {};

TEST_P(Duration, IsReadExactlyOrRefused) { expect_reading(parse_duration, GetParam()); }

INSTANTIATE_TEST_SUITE_P(Right, Duration,
                         rows::of<Reading<Nanoseconds>>({{"250ns", 250},
                                                         {"0us", 0},
                                                         {"66666us", 66'666'000},
                                                         {"10ms", 10'000'000},
                                                         {"1.5s", 1'500'000'000},
                                                         {"0.000000001s", 1},
                                                         {"15.625ms", 15'625'000},
                                                         {"007ms", 7'000'000},
                                                         // Zeros at the end do not count as digits.
                                                         {"1.500000000000s", 1'500'000'000},
                                                         // One day and no more.
                                                         {"86400s", kLongestDuration},
                                                         {"86400000000000ns", kLongestDuration}}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(Wrong, Duration,
                         refused<Nanoseconds>({"86400.000000001s",
                                               "9223372036854775808ns",
                                               "99999999999999999999999999s",
                                               "",
                                               "ms",
                                               ".5s",
                                               "1.s",
                                               "1.5.5s",
                                               "-1s",
                                               "+1s",
                                               "1 s",
                                               "1e3s",
                                               "1,5s",
                                               "10 ",
                                               "10min",
                                               "0.5ns",
                                               "1.0000000001s",
                                               "0x10ms",
                                               "infs",
                                               "nans"}),
                         rows::by_text);

TEST(DurationWithoutUnit, IsAnsweredByAGuess) {
  try {
    parse_duration("10");
    FAIL();
  } catch (const UnitError& error) {
    EXPECT_STREQ(error.what(), "'10' has no unit; write 10ms if milliseconds are meant (ns, us, ms or s)");
  }
}

struct DurationAsText {
  std::string text;
  Nanoseconds ns;
};
class DurationText : public testing::TestWithParam<DurationAsText> {};

TEST_P(DurationText, IsTheShortestExactForm) {
  EXPECT_EQ(duration_text(GetParam().ns), GetParam().text);
  if (GetParam().ns >= 0) {
    EXPECT_EQ(parse_duration(GetParam().text), GetParam().ns);
  }
}

INSTANTIATE_TEST_SUITE_P(, DurationText,
                         rows::of<DurationAsText>({{"0ns", 0},
                                                   {"1ns", 1},
                                                   {"999ns", 999},
                                                   {"1us", 1'000},
                                                   {"1001ns", 1'001},
                                                   {"1500us", 1'500'000},
                                                   {"10ms", 10'000'000},
                                                   {"66666us", 66'666'000},
                                                   {"86400s", kLongestDuration},
                                                   {"-5us", -5'000}}),
                         rows::by_text);

class Frequency : public testing::TestWithParam<Reading<double>> {};

TEST_P(Frequency, IsReadInHertzOrRefused) { expect_reading(parse_frequency, GetParam()); }

INSTANTIATE_TEST_SUITE_P(Right, Frequency, rows::of<Reading<double>>({{"64Hz", 64.0}, {"1.5kHz", 1500.0}}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(Wrong, Frequency,
                         refused<double>({"", "64", "Hz", "64hz", "-1Hz", "1e3Hz", "64 Hz"}), rows::by_text);

// The text is the name of the row.
struct PeriodOf {
  std::string text;
  double frequency_hz;
  std::optional<Nanoseconds> ns;
};
class FrequencyPeriod : public testing::TestWithParam<PeriodOf> {};

TEST_P(FrequencyPeriod, IsRoundedToNanosecondsOrRefused) {
  const PeriodOf& row = GetParam();
  if (row.ns) {
    EXPECT_EQ(period_of(row.frequency_hz), *row.ns);
  } else {
    EXPECT_THROW(period_of(row.frequency_hz), UnitError);
  }
}

INSTANTIATE_TEST_SUITE_P(, FrequencyPeriod,
                         rows::of<PeriodOf>({{"64", 64.0, 15'625'000},
                                             {"15", 15.0, 66'666'667},
                                             {"3", 3.0, 333'333'333},
                                             {"1e6", 1e6, 1'000},
                                             {"1000001", 1e6 + 1, std::nullopt},
                                             {"0", 0.0, std::nullopt},
                                             {"-1", -1.0, std::nullopt},
                                             {"1e-5", 1e-5, std::nullopt},
                                             {"1e300", 1e300, std::nullopt}}),
                         rows::by_text);

class Size : public testing::TestWithParam<Reading<std::uint32_t>> {};

TEST_P(Size, DistinguishesDecimalAndBinaryPrefixes) { expect_reading(parse_size, GetParam()); }

INSTANTIATE_TEST_SUITE_P(Right, Size,
                         rows::of<Reading<std::uint32_t>>({{"1024", 1024U},
                                                           {"10B", 10U},
                                                           {"10kB", 10'000U},
                                                           {"10KiB", 10'240U},
                                                           {"1MB", 1'000'000U},
                                                           {"64MiB", 67'108'864U},
                                                           {"0B", 0U}}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(Wrong, Size,
                         refused<std::uint32_t>({"", "kB", "-1", "1.5kB", "1.0kB", "10kb", "10 kB",
                                                 "99999999999", "5000MB", "4294967296"}),
                         rows::by_text);

class Cpus : public testing::TestWithParam<Reading<std::vector<int>>> {};

TEST_P(Cpus, AreNumbersAndRangesInAscendingOrder) { expect_reading(parse_cpus, GetParam()); }

INSTANTIATE_TEST_SUITE_P(Right, Cpus,
                         rows::of<Reading<std::vector<int>>>({{"0", std::vector{0}},
                                                              {"0-2,5", std::vector{0, 1, 2, 5}},
                                                              {"7,3-4,0", std::vector{0, 3, 4, 7}}}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(Wrong, Cpus, refused<std::vector<int>>({"",       ",",
                                                                 "0,",     ",0",
                                                                 "-",      "-1",
                                                                 "1-",     "0--1",
                                                                 "0-1-2",  "a",
                                                                 "0x1",    "0 1",
                                                                 " 0",     "+1",
                                                                 "1.0",    "0-8:2",
                                                                 "1-0",    "1,1",
                                                                 "0-2,2",  "1024",
                                                                 "0-1024", "99999999999999999999"}),
                         rows::by_text);

TEST(AllCpus, AreOneRange) { EXPECT_EQ(parse_cpus("0-1023").size(), 1024U); }

TEST(ManyCpus, AreBounded) {
  std::string text = "0-1023";
  for (int i = 0; i < 100'000; ++i) text += ",0-1023";
  EXPECT_THROW(parse_cpus(text), UnitError);
}

}  // namespace
}  // namespace perflab::graph
