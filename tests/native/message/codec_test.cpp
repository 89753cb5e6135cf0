#include "message/codec.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "message/definitions.h"
#include "message/object.h"
#include "plain_cdr.h"

namespace perflab::message {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Types defined by a test.
struct Defined {
  Library library;
  Types types{library};

  void add(const std::string& name, const std::string& text) { library.add_text("test/msg/" + name, text, name + ".msg"); }
  const Type& find(const std::string& name) { return types.find("test/msg/" + name); }
};

Bytes encode(const Codec& codec, const Object& object) {
  Bytes bytes(codec.encoded_size(object.data()), 0xEE);
  EXPECT_EQ(codec.encode(object.data(), bytes), bytes.size());
  return bytes;
}

template <typename Number>
Number& number(Object& object, const char* member) {
  return *reinterpret_cast<Number*>(static_cast<std::byte*>(object.data()) + object.type().member(member)->offset);
}

void set_text(Object& object, const char* member, std::string_view value) {
  auto& text = number<Sequence>(object, member);
  ASSERT_TRUE(resize_text(text, value.size(), Primitive::kString));
  std::memcpy(text.data, value.data(), value.size());
}

// Everything that must hold for a filled message of a type.
void check(const Type& type, std::size_t size, std::uint64_t seed) {
  SCOPED_TRACE(type.name + ", seed " + std::to_string(seed));
  const Codec codec(type);
  Object object(type);
  fill(object, size, seed);
  const Bytes bytes = encode(codec, object);
  ASSERT_EQ(bytes, PlainCdr::encode(type, object.data(), true));
  ASSERT_EQ(codec.fixed_size(), type.plain ? bytes.size() : 0);

  for (const bool little_endian : {true, false}) {
    Object copy(type);
    fill(copy, seed % 5, seed + 1);  // its memory is reused
    ASSERT_TRUE(codec.decode(PlainCdr::encode(type, object.data(), little_endian), copy.data()));
    ASSERT_TRUE(copy == object) << (little_endian ? "little endian" : "big endian");
    ASSERT_EQ(encode(codec, copy), bytes);
  }
}

TEST(ResizedTexts, HaveTheCapacityThatRosidlGivesThem) {
  Sequence text{};
  for (const std::size_t count : {0U, 40U, 3U, 41U, 0U}) {
    ASSERT_TRUE(resize_text(text, count, Primitive::kWstring));
    EXPECT_EQ(text.size, count);
    EXPECT_EQ(text.capacity, count + 1);
  }
  std::free(text.data);
}

// ---- golden bytes, written out by hand ----

TEST(Codec, AlignsNumbersToTheirSizeAndCountsTheZeroOfTexts) {
  Defined defined;
  defined.add("Mixed", "string name\nfloat64 value\nuint8 flag\nuint16 number\n");
  Object object(defined.find("Mixed"));
  set_text(object, "name", "ab");
  number<double>(object, "value") = 1.0;
  number<std::uint8_t>(object, "flag") = 7;
  number<std::uint16_t>(object, "number") = 0x0102;
  const Bytes expected{0, 1, 0, 0,                                      // CDR_LE
                       3, 0, 0, 0, 'a', 'b', 0,    0,                   // length, text, one of padding
                       0, 0, 0, 0, 0,   0,   0xF0, 0x3F, 7, 0, 2, 1};   // 1.0, flag, padding, number
  EXPECT_EQ(encode(Codec(object.type()), object), expected);
}

TEST(Codec, PutsNoPaddingBehindAnEmptySequence) {
  Defined defined;
  defined.add("Empty", "float64[] values\nuint32 number\n");
  Object object(defined.find("Empty"));
  number<std::uint32_t>(object, "number") = 5;
  const Bytes expected{0, 1, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0};
  EXPECT_EQ(encode(Codec(object.type()), object), expected);
}

TEST(Codec, SendsACharacterOfAWideTextInFourOctets) {
  Defined defined;
  defined.add("Wide", "wstring text\nuint8 flag\n");
  Object object(defined.find("Wide"));
  auto& text = number<Sequence>(object, "text");
  ASSERT_TRUE(resize_text(text, 2, Primitive::kWstring));
  static_cast<char16_t*>(text.data)[0] = u'\u03b1';
  static_cast<char16_t*>(text.data)[1] = u'b';
  number<std::uint8_t>(object, "flag") = 9;
  const Bytes expected{0, 1, 0, 0, 2, 0, 0, 0, 0xB1, 3, 0, 0, 'b', 0, 0, 0, 9};
  EXPECT_EQ(encode(Codec(object.type()), object), expected);
}

// ---- what is copied in one step ----

struct Shape {
  const char* name;
  const char* inner;  // test/msg/Inner
  const char* outer;
};

const Shape kShapes[] = {
    {"one_block", "uint32 a\nuint8 b\n", "Inner one\nInner[5] five\nuint8 last\n"},
    {"padding_between_elements", "uint8 a\nuint32 b\nuint8 c\n", "uint8 first\nInner[7] seven\nfloat64 last\n"},
    {"structs_that_begin_small", "uint32 a\nfloat64 b\n", "uint32 x\nInner one\nInner[3] three\nInner[] more\n"},
    {"structs_that_begin_small_behind_a_text", "uint32 a\nfloat64 b\n", "string x\nInner one\nInner[3] three\nInner[] more\n"},
    {"twelve_bytes", "float32 x\nfloat32 y\nfloat32 z\n", "uint16 id\nInner[64] shape\nfloat64 speed\nInner[] more\nuint8 last\n"},
    {"odd_bytes", "uint8[3] rgb\n", "string x\nInner[] colours\nuint64 last\nInner[2] two\nuint16 end\n"},
    {"numbers_behind_texts", "string s\nuint64 n\n", "Inner one\nInner[2] two\nInner[] more\nuint8 b\nuint64 last\n"},
    {"sequences_within_sequences", "uint8[] a\nfloat64[] b\n", "Inner[] more\nInner[3] three\nuint16 last\n"},
    {"bounded", "uint16[<=4] a\nstring<=5 s\n", "Inner[<=2] more\nwstring<=3 w\nwstring[] ws\nuint8 b\nfloat32 last\n"},
    {"booleans", "bool a\nbool[3] b\n", "Inner one\nbool[] more\nbool[<=9] bounded\nfloat64 last\n"},
    {"trailing_alignment", "float64 a\nuint8 b\n", "Inner[2] two\nuint8 c\nInner[] more\nuint8 d\n"},
};

class Shapes : public testing::TestWithParam<Shape> {};

TEST_P(Shapes, AreOnTheWireAsTheRulesSay) {
  Defined defined;
  defined.add("Inner", GetParam().inner);
  defined.add("Outer", GetParam().outer);
  for (std::size_t size = 0; size < 12; ++size) check(defined.find("Outer"), size, size + 1);
}

INSTANTIATE_TEST_SUITE_P(Codec, Shapes, testing::ValuesIn(kShapes), [](const auto& info) { return info.param.name; });

TEST(Codec, RandomTypesAreOnTheWireAsTheRulesSay) {
  static constexpr const char* kElements[] = {"bool",   "byte",   "char",   "int8",    "uint8",   "int16",  "uint16",
                                              "int32",  "uint32", "int64",  "uint64",  "float32", "float64", "string",
                                              "wstring", "string<=4"};
  static constexpr const char* kPlural[] = {"", "", "", "[2]", "[3]", "[]", "[<=5]"};
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    std::mt19937_64 random(seed);
    Defined defined;
    for (int level = 0; level < 4; ++level) {
      std::string text;
      const std::size_t fields = 1 + random() % 5;
      for (std::size_t i = 0; i < fields; ++i) {
        const std::size_t kind = random() % (std::size(kElements) + (level > 0 ? 10 : 0));
        text += kind < std::size(kElements) ? kElements[kind] : "T" + std::to_string(level - 1);
        text += kPlural[random() % std::size(kPlural)];
        text += " f" + std::to_string(i) + "\n";
      }
      defined.add("T" + std::to_string(level), text);
    }
    check(defined.find("T3"), seed % 7, seed);
    if (HasFailure()) return;
  }
}

// Every built-in message, request, response, goal, ...
TEST(Codec, AllThatPerflabBringsIsOnTheWireAsTheRulesSay) {
  Library library(brought());
  Types types(library);
  std::size_t checked = 0;
  for (const std::string& name : library.names()) {
    std::vector<std::string> parts{""};
    if (name.find("/srv/") != std::string::npos) parts = {"_Request", "_Response"};
    if (name.find("/action/") != std::string::npos)
      parts = {"_Goal", "_Result", "_Feedback", "_SendGoal_Request", "_SendGoal_Response", "_GetResult_Request",
               "_GetResult_Response", "_FeedbackMessage"};
    for (const std::string& part : parts) {
      const Type& type = types.find(name + part);
      if (type.size > 100'000) continue;  // for larger types the small ones of their family suffice
      check(type, 5, ++checked);
    }
  }
  EXPECT_GT(checked, 400U);
}

// ---- invalid messages ----

TEST(Codec, RefusesEveryMessageThatIsCutShort) {
  for (const Shape& shape : kShapes) {
    Defined defined;
    defined.add("Inner", shape.inner);
    defined.add("Outer", shape.outer);
    const Codec codec(defined.find("Outer"));
    Object object(codec.type()), copy(codec.type());
    fill(object, 3);
    for (const bool little_endian : {true, false}) {
      const Bytes bytes = PlainCdr::encode(codec.type(), object.data(), little_endian);
      for (std::size_t size = 0; size < bytes.size(); ++size)
        EXPECT_FALSE(codec.decode(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size)), copy.data()))
            << shape.name << ", " << size << " of " << bytes.size() << " bytes";
    }
  }
}

TEST(Codec, RefusesLengthsBeyondTheEnd) {
  Defined defined;
  defined.add("Inner", "string s\n");
  for (const char* const type : {"uint8[]", "float64[]", "string", "wstring", "string[]", "Inner[]"}) {
    defined.add("Outer", std::string(type) + " data\n");
    Defined other;
    other.add("Inner", "string s\n");
    other.add("Outer", std::string(type) + " data\n");
    const Codec codec(other.find("Outer"));
    Object object(codec.type());
    for (const std::uint8_t length : {std::uint8_t{0x80}, std::uint8_t{0xFF}})
      EXPECT_FALSE(codec.decode(Bytes{0, 1, 0, 0, length, length, length, length, 1, 0, 0, 0, 'x', 0, 0, 0}, object.data()))
          << type;
  }
}

TEST(Codec, RefusesMoreThanABoundAllows) {
  Defined defined;
  defined.add("Free", "uint8[] a\nstring s\nwstring w\n");
  defined.add("Bounded", "uint8[<=2] a\nstring<=2 s\nwstring<=2 w\n");
  const Codec free(defined.find("Free")), bounded(defined.find("Bounded"));
  for (std::size_t length = 0; length < 5; ++length) {
    Object sent(free.type()), received(bounded.type());
    auto& data = number<Sequence>(sent, "a");
    ASSERT_TRUE(resize(data, length, free.type().member("a")->element));
    if (length > 0) std::memset(data.data, 1, length);
    EXPECT_EQ(bounded.decode(encode(free, sent), received.data()), length <= 2) << length;
  }
}

// Code that only searches the end of a message must accept the same messages as decoding.
TEST(Codec, RefusesTextsBeyondTheirBoundAlsoWhereTheyAreOnlyPassed) {
  Defined defined;
  defined.add("Free", "string s\nwstring w\nint64 last\n");
  defined.add("Bounded", "string<=2 s\nwstring<=2 w\nint64 last\n");
  const Codec free(defined.find("Free")), bounded(defined.find("Bounded"));
  const std::size_t last = bounded.type().member("last")->offset;
  for (const std::size_t length : {0, 2, 3}) {
    for (const char* const member : {"s", "w"}) {
      Object sent(free.type()), received(bounded.type());
      const bool wide = *member == 'w';
      ASSERT_TRUE(resize_text(number<Sequence>(sent, member), length, wide ? Primitive::kWstring : Primitive::kString));
      const Bytes bytes = encode(free, sent);
      const bool fits = length <= 2;
      EXPECT_EQ(bounded.decode(bytes, received.data()), fits) << member << length;
      EXPECT_EQ(bounded.extent(bytes), fits ? bytes.size() : 0) << member << length;
      EXPECT_EQ(bounded.position_in(bytes, last) > 0, fits) << member << length;
    }
  }
}

TEST(Codec, RefusesOtherEncapsulations) {
  Defined defined;
  defined.add("One", "uint8 a\n");
  const Codec codec(defined.find("One"));
  Object object(codec.type());
  EXPECT_FALSE(codec.decode(Bytes{}, object.data()));
  EXPECT_FALSE(codec.decode(Bytes{0, 2, 0, 0, 1}, object.data()));  // a parameter list
  EXPECT_FALSE(codec.decode(Bytes{0, 7, 0, 0, 1}, object.data()));  // XCDR2
  EXPECT_FALSE(codec.decode(Bytes{1, 1, 0, 0, 1}, object.data()));
  EXPECT_TRUE(codec.decode(Bytes{0, 1, 0, 0, 1}, object.data()));
  EXPECT_TRUE(codec.decode(Bytes{0, 1, 0, 3, 1, 0, 0, 0}, object.data())) << "RTPS pads to four bytes";
}

TEST(Codec, WritesNothingWhereThereIsTooLittleRoom) {
  Defined defined;
  defined.add("One", "uint8[] a\n");
  const Codec codec(defined.find("One"));
  Object object(codec.type());
  fill(object, 10);
  Bytes bytes(codec.encoded_size(object.data()) - 1, 0xEE);
  EXPECT_EQ(codec.encode(object.data(), bytes), 0U);
  EXPECT_EQ(bytes, Bytes(bytes.size(), 0xEE));
}

// ---- positions of numbers ----

TEST(Codec, TellsWhereANumberStandsInTheMessage) {
  Defined defined;
  defined.add("Late", "uint8[] data\nint64 time\nuint64 id\n");
  const Codec codec(defined.find("Late"));
  for (std::size_t length = 0; length < 20; ++length) {
    Object object(codec.type());
    fill(object, length);
    number<std::uint64_t>(object, "id") = 0x0102030405060708;
    const std::size_t position = codec.position_of(object.data(), codec.type().member("id")->offset);
    const Bytes bytes = encode(codec, object);
    ASSERT_LE(position + 8, bytes.size());
    EXPECT_EQ(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(position), bytes.begin() + static_cast<std::ptrdiff_t>(position) + 8),
              (Bytes{8, 7, 6, 5, 4, 3, 2, 1}));
  }
  Object object(codec.type());
  EXPECT_EQ(codec.position_of(object.data(), codec.type().member("data")->offset), 0U) << "a sequence is no number";
}

// ---- objects ----

TEST(Object, HasTheDefaultsOfItsDefinition) {
  Defined defined;
  defined.add("Inner", "int32 n -5\nstring s \"in\"\n");
  defined.add("Outer", "bool yes true\nfloat32 f 1.5\nuint8[3] three [1, 2, 3]\nint16[] many [-1, 300]\nstring text 'ab'\n"
                       "string[] texts ['a', 'bcd']\nInner inner\nInner[2] two\nuint64 none\n");
  Object object(defined.find("Outer"));
  EXPECT_EQ(number<std::uint8_t>(object, "yes"), 1);
  EXPECT_EQ(number<float>(object, "f"), 1.5F);
  EXPECT_EQ(std::memcmp(&number<std::uint8_t>(object, "three"), "\1\2\3", 3), 0);
  const auto& many = number<Sequence>(object, "many");
  ASSERT_EQ(many.size, 2U);
  EXPECT_EQ(static_cast<const std::int16_t*>(many.data)[0], -1);
  EXPECT_EQ(static_cast<const std::int16_t*>(many.data)[1], 300);
  EXPECT_STREQ(static_cast<const char*>(number<Sequence>(object, "text").data), "ab");
  const auto& texts = number<Sequence>(object, "texts");
  ASSERT_EQ(texts.size, 2U);
  EXPECT_STREQ(static_cast<const char*>(static_cast<const Sequence*>(texts.data)[1].data), "bcd");
  const Type& inner = defined.find("Inner");
  for (int i = 0; i < 2; ++i) {
    const std::byte* const element = &number<std::byte>(object, "two") + static_cast<std::size_t>(i) * inner.size;
    std::int32_t n = 0;
    std::memcpy(&n, element, sizeof n);
    EXPECT_EQ(n, -5);
  }
  EXPECT_EQ(number<std::uint64_t>(object, "none"), 0U);
}

TEST(Object, IsEqualFieldByField) {
  Defined defined;
  defined.add("Inner", "string s\nuint8 n\n");
  defined.add("Outer", "Inner[] many\nwstring w\nfloat64 f\n");
  const Type& type = defined.find("Outer");
  Object a(type), b(type);
  fill(a, 4, 1);
  fill(b, 4, 1);
  EXPECT_TRUE(a == b);
  fill(b, 4, 2);
  EXPECT_FALSE(a == b);
  fill(b, 5, 1);
  EXPECT_FALSE(a == b);
}

TEST(Fill, GivesTheBulkItsSizeAndAllElseALittle) {
  Defined defined;
  defined.add("Header", "string frame\nuint32[] words\n");
  defined.add("Cloud", "Header header\nHeader[] fields\nuint8[] data\nstring format\n");
  defined.add("Text", "string data\nuint16[] numbers\n");
  defined.add("Joints", "Header header\nstring[] name\nfloat64[] position\nfloat64[<=6] effort\n");
  defined.add("Plain", "uint8[10] data\n");
  const auto size = [](Object& object, const char* member) { return number<Sequence>(object, member).size; };

  Object cloud(defined.find("Cloud"));
  fill(cloud, 1000);
  EXPECT_EQ(size(cloud, "data"), 1000U);
  EXPECT_EQ(size(cloud, "fields"), kFewElements);
  EXPECT_EQ(size(cloud, "format"), kFewElements);
  Object text(defined.find("Text"));
  fill(text, 1000);
  EXPECT_EQ(size(text, "data"), 1000U);
  EXPECT_EQ(size(text, "numbers"), kFewElements);
  Object joints(defined.find("Joints"));
  fill(joints, 7);
  EXPECT_EQ(size(joints, "name"), 7U);
  EXPECT_EQ(size(joints, "position"), 7U);
  EXPECT_EQ(size(joints, "effort"), 6U) << "its bound";
  EXPECT_FALSE(has_bulk(defined.find("Plain")));
}

}  // namespace
}  // namespace perflab::message
