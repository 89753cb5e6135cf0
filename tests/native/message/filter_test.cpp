// Content filters: the meaning of expressions, errors for bad ones, and safe reading of messages in any form.
#include "message/filter.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "message/format.h"
#include "message/object.h"
#include "plain_cdr.h"

namespace perflab::message {
namespace {

using Piece = std::span<const std::uint8_t>;
using Match = Filter::Match;

class Filters : public testing::Test {
 protected:
  Filters()
      : formats_({{"test/msg/Point", "string frame\nfloat64 x\nfloat32 y\n"},
                  {"test/msg/Type",
                   "uint8[] blob\nbool on\nint8 small\nuint64 large\nPoint[2] corners\nPoint at\nint64 low\nstring name\n"
                   "uint16 end\nwstring wide\n"}}),
        type_(*formats_.find("test/msg/Type")->type),
        object_(type_) {
    put("on", std::uint8_t{1});
    put("small", std::int8_t{-3});
    put("large", UINT64_MAX);
    put("low", INT64_MIN);
    put("end", std::uint16_t{500});
    const Type& point = *type_.member("at")->element.type;
    put_at(type_.member("at")->offset + point.member("x")->offset, 1.5);
    put_at(type_.member("at")->offset + point.member("y")->offset, 0.1F);
    text(type_.member("at")->offset + point.member("frame")->offset, "map");
    text(type_.member("name")->offset, "it's");
    text(type_.member("corners")->offset + point.member("frame")->offset, "some corner");
    Sequence blob;
    std::memcpy(&blob, address(type_.member("blob")->offset), sizeof blob);
    EXPECT_TRUE(resize(blob, 5, type_.member("blob")->element));
    put_at(type_.member("blob")->offset, blob);
  }

  std::byte* address(std::size_t offset) { return static_cast<std::byte*>(object_.data()) + offset; }
  template <typename Value>
  void put_at(std::size_t offset, Value value) {
    std::memcpy(address(offset), &value, sizeof value);
  }
  template <typename Value>
  void put(const char* name, Value value) {
    put_at(type_.member(name)->offset, value);
  }
  void text(std::size_t offset, std::string_view characters) {
    Sequence text;
    std::memcpy(&text, address(offset), sizeof text);
    ASSERT_TRUE(resize_text(text, characters.size(), Primitive::kString));
    std::memcpy(text.data, characters.data(), characters.size());
    put_at(offset, text);
  }

  // In every form: both byte orders, whole and in two pieces, and as a struct.
  bool wants(const std::string& expression) {
    const Filter filter(type_, expression);
    const bool wanted = filter.match_object(object_.data());
    for (const bool little_endian : {true, false}) {
      const std::vector<std::uint8_t> bytes = PlainCdr::encode(type_, object_.data(), little_endian);
      for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        const Piece pieces[] = {Piece(bytes).first(cut), Piece(bytes).subspan(cut)};
        EXPECT_EQ(filter.match(pieces), wanted ? Match::kYes : Match::kNo) << expression << " cut at " << cut;
      }
    }
    return wanted;
  }

  std::string problem(const std::string& expression) {
    try {
      const Filter filter(type_, expression);
    } catch (const BadInput& error) {
      return error.what();
    }
    return "none";
  }

  Formats formats_;
  const Type& type_;
  Object object_;
};

TEST_F(Filters, CompareFieldsWithValues) {
  for (const char* const yes :
       {"end = 500", "end <> 501", "end != 501", "end < 500.5", "end <= 500", "end > 499", "end >= 0x1F4", "500 = end", "499 < end",
        "small < 0", "small = -3", "small < end", "at.x = 1.5", "at.x >= small", "on = TRUE", "on = true", "on <> FALSE", "TRUE = on",
        "name = 'it''s'", "name > 'isa'", "name <> at.frame", "at.frame = 'map'", "at.frame < 'mapp'", "at.frame > ''", "at.frame > 'ma'", "name <= at.frame"})
    EXPECT_TRUE(wants(yes)) << yes;
  for (const char* const no : {"end = 501", "end < 500", "on = FALSE", "at.frame = 'Map'", "at.frame = 'map '", "name = ''", "name > at.frame"})
    EXPECT_FALSE(wants(no)) << no;
}

TEST_F(Filters, AreExactWithNumbersOf64BitsAndWithFloats) {
  EXPECT_TRUE(wants("large = 18446744073709551615"));
  EXPECT_FALSE(wants("large = 18446744073709551614"));
  EXPECT_TRUE(wants("low = -9223372036854775808"));
  EXPECT_FALSE(wants("low = -9223372036854775807"));
  EXPECT_TRUE(wants("low < large"));
  // A float32 is not the 64-bit 0.1.
  EXPECT_FALSE(wants("at.y = 0.1"));
  EXPECT_TRUE(wants("at.y BETWEEN 0.0999 AND 0.1001"));
  put_at(type_.member("at")->offset + type_.member("at")->element.type->member("x")->offset, std::nan(""));
  for (const char* const no : {"at.x = 1", "at.x < 1", "at.x >= 1", "at.x BETWEEN -1e300 AND 1e300"}) EXPECT_FALSE(wants(no)) << no;
  EXPECT_TRUE(wants("at.x <> 1"));
}

TEST_F(Filters, BindNotBeforeAndBeforeOr) {
  EXPECT_TRUE(wants("end = 500 OR end = 1 AND end = 2"));
  EXPECT_FALSE(wants("(end = 500 OR end = 1) AND end = 2"));
  EXPECT_FALSE(wants("NOT end = 500 AND end = 500"));
  EXPECT_FALSE(wants("not (end = 500 and end = 500)"));
  EXPECT_TRUE(wants("NOT NOT end = 500"));
  EXPECT_TRUE(wants("end BETWEEN 500 AND 500 AND end NOT BETWEEN 1 AND 499 AND NOT end BETWEEN 501 AND 600"));
}

TEST_F(Filters, SayWhereAnExpressionIsWrongAndWhatWouldBeRight) {
  const std::vector<std::pair<std::string, std::string>> bad = {
      {"", "the expression is empty"},
      {"ende = 1", "character 1, 'ende': test/msg/Type has no field 'ende'; did you mean end?"},
      {"at.z = 1", "character 1, 'at.z': test/msg/Point has no field 'z'"},
      {"end.x = 1", "'end' of test/msg/Type is not a struct"},
      {"at = 1", "is a struct; name one of its fields: frame, x or y"},
      {"blob = 1", "'blob' is an array or a sequence"},
      {"blob[0] = 1", "'blob' is an array or a sequence"},
      {"end[0] = 1", "character 4, '[': elements of arrays"},
      {"corners.x = 1", "'corners' is an array or a sequence"},
      {"wide = 'a'", "is a wstring, which is not supported"},
      {"end", "character 4, at its end: a comparison is expected after 'end'"},
      {"on", "a bool alone is written as = TRUE"},
      {"end =", "character 6, at its end: a field or a value is expected"},
      {"end = 'a'", "'end' is a number and ''a'' is a text; compare like with like"},
      {"on > TRUE", "character 4, '>': TRUE and FALSE have no order"},
      {"on = 1", "'on' is TRUE or FALSE and '1' is a number"},
      {"1 = 1", "two values are compared; one must be a field"},
      {"end = 1 end = 2", "character 9, 'end': AND, OR or the end is expected"},
      {"(end = 1", "a closing parenthesis is expected"},
      {"end = %0", "character 7, '%': parameters are not supported"},
      {"name LIKE 'a%'", "character 6, 'LIKE': is not supported"},
      {"name = \"a\"", "write texts in single quotes"},
      {"name = 'a", "the text is not closed"},
      {"end = 12x", "character 7, '12x': is not a number"},
      {"end BETWEEN 1", "AND and the upper limit are expected"},
      {"end BETWEEN small AND 2", "the limits of BETWEEN must be values"},
      {"end ~ 1", "character 5, '~': is not part of a filter"},
  };
  for (const auto& [expression, part] : bad) {
    const std::string said = problem(expression);
    EXPECT_NE(said.find(part), std::string::npos) << expression << "\n  said " << said << "\n  not  " << part;
    EXPECT_TRUE(said.starts_with("filter: ")) << said;
  }
}

TEST_F(Filters, AreBounded) {
  EXPECT_NE(problem(std::string(1001, ' ')).find("at most 1000"), std::string::npos);
  EXPECT_NE(problem(std::string(65, '(') + "end = 1" + std::string(65, ')')).find("more than 64"), std::string::npos);
  EXPECT_EQ(problem(std::string(64, '(') + "end = 1" + std::string(64, ')')), "none");
  EXPECT_NE(problem("end = " + std::string(400, '9')).find("too large"), std::string::npos);
}

TEST_F(Filters, NeverReadBehindTheBytesAndTellWhatIsNoMessage) {
  const Filter filter(type_, "end = 500 AND name <> '' AND at.frame = 'map' AND on = TRUE");
  const std::vector<std::uint8_t> bytes = PlainCdr::encode(type_, object_.data(), true);
  std::size_t whole = 0;
  for (std::size_t size = 0; size <= bytes.size(); ++size) {
    const auto exact = std::make_unique<std::uint8_t[]>(size);
    std::ranges::copy(Piece(bytes).first(size), exact.get());
    const Piece pieces[] = {{exact.get(), size}};
    const Match match = filter.match(pieces);
    EXPECT_TRUE(match == Match::kYes || (match == Match::kMalformed && whole == 0)) << size;
    whole += match == Match::kYes ? 1 : 0;
  }
  // Nothing after the last field is needed.
  EXPECT_GT(whole, 1u);
  std::vector<std::uint8_t> other = bytes;
  other[1] = 6;  // XCDR2
  const Piece pieces[] = {other};
  EXPECT_EQ(filter.match(pieces), Match::kMalformed);
}

TEST_F(Filters, TellWhatTheyDependOn) {
  const Filter filter(type_, "end = 1 OR at.x = 2");
  const std::size_t end = type_.member("end")->offset;
  EXPECT_TRUE(filter.reads(end, 2));
  EXPECT_TRUE(filter.reads(end + 1, 1));
  EXPECT_FALSE(filter.reads(end + 2, 8));
  EXPECT_FALSE(filter.reads(type_.member("large")->offset, 8));
  EXPECT_TRUE(filter.reads(type_.member("at")->offset, type_.member("at")->element.type->size));
  EXPECT_EQ(filter.expression(), "end = 1 OR at.x = 2");
}

}  // namespace
}  // namespace perflab::message
