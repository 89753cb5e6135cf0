// Tables of tests: what differs in values only is one test with a row for each case. A row is a test of its
// own, and its name says which.
//
// Example:
//   struct Duration { std::string text; Nanoseconds ns; };
//   class Durations : public testing::TestWithParam<Duration> {};
//   TEST_P(Durations, AreExact) { EXPECT_EQ(parse_duration(GetParam().text), GetParam().ns); }
//   INSTANTIATE_TEST_SUITE_P(, Durations, rows::of<Duration>({{"250ns", 250}, {"1.5s", 1'500'000'000}}),
//                            rows::by_text);  // Durations.AreExact/250ns, Durations.AreExact/1_2es
#pragma once

#include <gtest/gtest.h>

#include <cctype>
#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>

namespace perflab::rows {

template <typename Row>
auto of(std::initializer_list<Row> rows) {
  return testing::ValuesIn(rows);
}

// A text as a test name: letters and digits as they are, other characters as hexadecimal numbers; long ones
// are truncated.
inline std::string spelled(std::string_view text) {
  constexpr std::size_t kMost = 40;
  if (text.empty()) return "nothing";
  std::string name;
  for (const char c : text.substr(0, kMost)) {
    const auto byte = static_cast<unsigned char>(c);
    char digits[4];
    std::snprintf(digits, sizeof digits, "_%02x", static_cast<unsigned>(byte));
    name += byte < 0x80 && std::isalnum(byte) != 0 ? std::string(1, c) : digits;
  }
  return text.size() > kMost ? name + "_and_so_on" : name;
}

// Names of rows: their `name`, their `text`, or what they are themselves.
inline constexpr auto by_name = [](const auto& info) { return std::string(info.param.name); };
inline constexpr auto by_text = [](const auto& info) { return spelled(info.param.text); };
inline constexpr auto by_itself = [](const auto& info) { return spelled(info.param); };

}  // namespace perflab::rows
