// The grammar: the meaning of texts, and errors for bad ones.
#include "message/parse.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "../rows.h"
#include "base/error.h"
#include "message/library.h"
#include "message/literal.h"

namespace perflab::message {
namespace {

using Path = std::filesystem::path;

Definition message(std::string_view text) {
  return parse_interface({"pkg", InterfaceKind::kMessage, "Name"}, text, "Name.msg").front();
}

Field field(std::string_view line) { return message(line).fields.at(0); }

std::vector<std::string> names_of(const std::vector<Definition>& structs) {
  std::vector<std::string> names;
  for (const Definition& part : structs) names.push_back(part.name);
  return names;
}

// ---- types

struct TypeText {
  std::string text;
  FieldType type;
};
class Types : public testing::TestWithParam<TypeText> {};

TEST_P(Types, AreReadAsRos2WritesThem) { EXPECT_EQ(field(GetParam().text + " a").type, GetParam().type); }

INSTANTIATE_TEST_SUITE_P(
    , Types,
    rows::of<TypeText>({{"bool", {Primitive::kBool, Plurality::kOne, 0, 0}},
                        {"byte", {Primitive::kByte, Plurality::kOne, 0, 0}},
                        {"char", {Primitive::kChar, Plurality::kOne, 0, 0}},
                        {"uint8[3]", {Primitive::kUint8, Plurality::kArray, 3, 0}},
                        {"float32[<=4]", {Primitive::kFloat32, Plurality::kBounded, 4, 0}},
                        {"int64[]", {Primitive::kInt64, Plurality::kSequence, 0, 0}},
                        {"string", {Primitive::kString, Plurality::kOne, 0, 0}},
                        {"string<=5", {Primitive::kString, Plurality::kOne, 0, 5}},
                        {"wstring<=5[3]", {Primitive::kWstring, Plurality::kArray, 3, 5}},
                        {"string<=5[<=7]", {Primitive::kString, Plurality::kBounded, 7, 5}},
                        {"wstring[]", {Primitive::kWstring, Plurality::kSequence, 0, 0}},
                        {"Point", {"Point", Plurality::kOne, 0, 0}},
                        {"Header", {"Header", Plurality::kOne, 0, 0}},
                        {"geometry_msgs/Point[2]", {"geometry_msgs/msg/Point", Plurality::kArray, 2, 0}},
                        {"a_msgs/msg/Point[]", {"a_msgs/msg/Point", Plurality::kSequence, 0, 0}},
                        {"pkg/Some_Request", {"pkg/msg/Some_Request", Plurality::kOne, 0, 0}},
                        {"uint8[4294967295]", {Primitive::kUint8, Plurality::kArray, 4294967295, 0}}}),
    rows::by_text);

// ---- values

struct ValueText {
  std::string text;  // of a constant: TYPE VALUE
  Value value;
};
class Values : public testing::TestWithParam<ValueText> {};

TEST_P(Values, AreThoseOfRosidlAdapter) {
  const std::string& text = GetParam().text;
  const std::size_t blank = text.find(' ');
  const Definition read = message(text.substr(0, blank) + " NAME=" + text.substr(blank + 1));
  EXPECT_EQ(read.constants.at(0).name, "NAME");
  EXPECT_EQ(read.constants.at(0).value, GetParam().value);
}

INSTANTIATE_TEST_SUITE_P(
    , Values,
    rows::of<ValueText>({{"bool true", true},
                         {"bool FaLsE", false},
                         {"bool 1", true},
                         {"bool 0", false},
                         {"byte 255", std::uint64_t{255}},
                         {"char 0x41", std::uint64_t{0x41}},
                         {"int8 -128", std::int64_t{-128}},
                         {"int8 +127", std::int64_t{127}},
                         {"int16 -0x8000", std::int64_t{-0x8000}},
                         {"uint16 0XfFfF", std::uint64_t{0xffff}},
                         {"int32 0o17", std::int64_t{15}},
                         {"int32 017", std::int64_t{17}},
                         {"int32 -0b101", std::int64_t{-5}},
                         {"int32 1_000_000", std::int64_t{1'000'000}},
                         {"uint32 0x_ff", std::uint64_t{255}},
                         {"uint8 -0", std::uint64_t{0}},
                         {"int64 -9223372036854775808", INT64_MIN},
                         {"int64 9223372036854775807", INT64_MAX},
                         {"uint64 18446744073709551615", UINT64_MAX},
                         {"float32 3.4028235e38", 3.4028235e38},
                         {"float32 -1.5", -1.5},
                         {"float64 .5", 0.5},
                         {"float64 5.", 5.0},
                         {"float64 +2E-3", 2e-3},
                         {"float64 1_0.5", 10.5},
                         {"string bare words ", "bare words"},
                         {"string ", ""},
                         {"string \"\"", ""},
                         {"string \" kept \"", " kept "},
                         {"string 'single \"inside\"'", "single \"inside\""},
                         {"string \"escaped \\\" quote\"", "escaped \" quote"},
                         {"string \"open", "\"open"},
                         {"string 'o'o", "'o'o"},
                         {"string \"a\\tb\\n\\\\\"", "a\tb\n\\"},
                         {"string \\x41\\101\\u00e9", "AA\xc3\xa9"},
                         {"string C:\\dir", "C:\\dir"},
                         {"string grüße", "grüße"},
                         {"wstring \"日本\"", "日本"},
                         {"string \"a#b\"", "\"a"}}),  // a comment starts at any #
    rows::by_text);

struct DefaultText {
  std::string text;
  std::vector<Value> values;
};
class Defaults : public testing::TestWithParam<DefaultText> {};

TEST_P(Defaults, StandBehindTheName) {
  const Field read = field(GetParam().text);
  EXPECT_TRUE(read.has_default);
  EXPECT_EQ(read.defaults, GetParam().values);
}

INSTANTIATE_TEST_SUITE_P(
    , Defaults,
    rows::of<DefaultText>({{"int32 a 5", {std::int64_t{5}}},
                           {"int32\ta\t\t5\t# five", {std::int64_t{5}}},
                           {"string<=3 a \"abc\"", {"abc"}},
                           {"wstring<=4 a \"ab😀\"", {"ab😀"}},
                           {"int32[] a []", {}},
                           {"int32[] a [ ]", {}},
                           {"bool[2] a [true, 0]", {true, false}},
                           {"float32[<=3] a [1.5, -2]", {1.5, -2.0}},
                           {"string[] a [\"x, y\", 'z']", {"x, y", "z"}},
                           {"string[] a [bare, \"it's\", ]", {"bare", "it's"}},
                           {"string[] a [\"a \\\" b\"]", {"a \" b"}}}),
    rows::by_text);

TEST(Field, WithoutAValueHasNoDefault) {
  EXPECT_FALSE(field("int32 a").has_default);
  EXPECT_FALSE(field("int32[] a  # none").has_default);
}

// ---- comments and keys

TEST(Key, StandsInACommentBehindAFieldOrDirectlyAbove) {
  const Definition read = message(
      "# @key\n"
      "int32 first\n"
      "int32 second  # @key, as the first\n"
      "# of the third: @key\n"
      "# and more\n"
      "int32 third\n"
      "int32 fourth\n"
      "    # goes on with the fourth: @key\n"
      "# @key\n"
      "\n"
      "int32 apart\n"
      "int32 word  # @keyword, a@key\n");
  std::vector<std::string> keys;
  for (const Field& one : read.fields) {
    if (one.key) keys.push_back(one.name);
  }
  EXPECT_EQ(keys, (std::vector<std::string>{"first", "second", "third", "fourth"}));
}

TEST(Places, AreThoseOfTypesInCharacters) {
  const Definition read = message("# grüße\r\nint32 A=1\r\n\r\nint32 a\r\nPoint b\r\n");
  ASSERT_EQ(read.places.size(), 2U);
  EXPECT_EQ(read.places[0].line, 4U);
  EXPECT_EQ(read.places[1].line, 5U);
  EXPECT_EQ(read.places[1].column, 1U);
  EXPECT_EQ(read.places[1].source, "Name.msg");
}

TEST(Struct, WithoutFieldsHasTheMemberOfRosidl) {
  for (const char* const text : {"", "# nothing\n", "int32 A=1\n"}) {
    const Definition read = message(text);
    ASSERT_EQ(read.fields.size(), 1U);
    EXPECT_EQ(read.fields[0].name, "structure_needs_at_least_one_member");
    EXPECT_EQ(read.fields[0].type, (FieldType{Primitive::kUint8, Plurality::kOne, 0, 0}));
    EXPECT_EQ(read.places.size(), 1U);
  }
}

// ---- services and actions

TEST(Service, HasRequestResponseEventAndItself) {
  const auto structs =
      parse_interface({"pkg", InterfaceKind::kService, "Do"}, "int32 a\n---\nbool b\n", "Do.srv");
  EXPECT_EQ(names_of(structs), (std::vector<std::string>{"pkg/srv/Do_Request", "pkg/srv/Do_Response",
                                                         "pkg/srv/Do_Event", "pkg/srv/Do"}));
  EXPECT_EQ(structs[1].fields.at(0).name, "b");
  const Definition& event = structs[2];
  ASSERT_EQ(event.fields.size(), 3U);
  EXPECT_EQ(event.fields[0].type, (FieldType{"service_msgs/msg/ServiceEventInfo", Plurality::kOne, 0, 0}));
  EXPECT_EQ(event.fields[2].type, (FieldType{"pkg/srv/Do_Response", Plurality::kBounded, 1, 0}));
}

TEST(Action, HasAllThatRos2Derives) {
  const auto structs = parse_interface({"pkg", InterfaceKind::kAction, "Go"},
                                       "int32 a\n---\nint32 b\n---\nint32 c\n", "Go.action");
  std::vector<std::string> names = names_of(structs);
  std::ranges::sort(names);
  EXPECT_EQ(names,
            (std::vector<std::string>{"pkg/action/Go", "pkg/action/Go_Feedback",
                                      "pkg/action/Go_FeedbackMessage", "pkg/action/Go_GetResult",
                                      "pkg/action/Go_GetResult_Event",
                                      "pkg/action/Go_GetResult_Request", "pkg/action/Go_GetResult_Response",
                                      "pkg/action/Go_Goal", "pkg/action/Go_Result", "pkg/action/Go_SendGoal",
                                      "pkg/action/Go_SendGoal_Event", "pkg/action/Go_SendGoal_Request",
                                      "pkg/action/Go_SendGoal_Response"}));
  for (const Definition& part : structs) {
    EXPECT_EQ(part.fields.size(), part.places.size()) << part.name;
    const auto owner = interface_of(part.name);
    ASSERT_TRUE(owner) << part.name;
    EXPECT_EQ(owner->full(), "pkg/action/Go");
  }
}

TEST(InterfaceOf, IsNothingForNamesOfNoStruct) {
  for (const char* const name :
       {"", "pkg", "pkg/Name", "pkg/idl/Name", "pkg/srv/Do_Goal", "pkg/action/Go_Request",
        "pkg/action/Go_SendGoal_Goal", "pkg/srv/Do_Request_Request"}) {
    EXPECT_FALSE(interface_of(name)) << name;
  }
  EXPECT_EQ(interface_of("pkg/msg/Some_Request")->name, "Some_Request");
}

TEST(IsAggregate, IsTrueOfServicesAndActionsAsAWhole) {
  EXPECT_TRUE(is_aggregate("pkg/srv/Do"));
  EXPECT_TRUE(is_aggregate("pkg/action/Go_SendGoal"));
  EXPECT_FALSE(is_aggregate("pkg/srv/Do_Event"));
  EXPECT_FALSE(is_aggregate("pkg/msg/Name"));
}

// ---- limits

TEST(Text, OfSeveralMegabytesIsRefused) {
  const std::string large(5 << 20, '#');
  try {
    message(large);
    FAIL() << "nothing was refused";
  } catch (const BadInput& error) {
    EXPECT_STREQ(error.what(), "Name.msg: 5242880 bytes; an interface file has at most 1048576");
  }
}

TEST(Text, OfTheLargestSizeIsReadInOnePass) {
  std::string text;
  for (int i = 0; text.size() < kMaxTextBytes - 20; ++i) text += "int8 a" + std::to_string(i) + "\n";
  EXPECT_GT(message(text).fields.size(), 70'000U);
}

// ---- bad files: <file>.expected has the error

std::vector<Path> bad_files() {
  std::vector<Path> files;
  const Path folder = Path(PERFLAB_SOURCE_DIR) / "tests/data/messages/bad";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".expected") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string contents(const Path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The library's error for it, with a newline; empty if there is none.
std::string line_about(const Path& file) {
  Library library;
  library.add_text("geometry_msgs/msg/Point", "float64 x\n", "Point.msg");
  library.add_text("std_msgs/msg/Header", "string frame_id\n", "Header.msg");
  library.add_text("unique_identifier_msgs/msg/UUID", "uint8[16] uuid\n", "UUID.msg");
  const std::string name = "pkg/" + file.extension().string().substr(1) + "/" + file.stem().string();
  library.add_text(name, contents(file), file.filename().string());
  try {
    static_cast<void>(library.hash(name));
  } catch (const BadInput& error) {
    return std::string(error.what()) + "\n";
  }
  return "";
}

// A single test: ctest starts a process per test, which takes longer than parsing a file.
TEST(BadFiles, AreRefusedWithTheExpectedLine) {
  const std::vector<Path> files = bad_files();
  EXPECT_FALSE(files.empty());
  for (const Path& file : files) EXPECT_EQ(line_about(file), contents(file.string() + ".expected")) << file;
}

}  // namespace
}  // namespace perflab::message
