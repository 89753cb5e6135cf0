// The position of measurement data in messages of any type, and message lengths.
#include "message/format.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../rows.h"
#include "base/error.h"
#include "base/time.h"
#include "message/object.h"
#include "plain_cdr.h"

namespace perflab::message {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Texts = std::map<std::string, std::string>;

// Types defined by a test, in package "test".
Formats defined(const std::string& text) {
  return Formats({{"test/msg/Inner", "string name\nfloat64[] values\n"},
                  {"test/msg/Plain", "uint8 a\nfloat64 b\n"},
                  {"test/msg/Stamped", "perflab_msgs/Header header\n"},
                  {"test/msg/Type", text}});
}

// ---- where the stamp is found

struct Placed {
  std::string name;
  std::string text;
  Stamp stamp;
  std::size_t position;  // in encoded bytes; 0 if it varies, or there is none
};
class Placement : public testing::TestWithParam<Placed> {};

TEST_P(Placement, IsThatOfTheFirstMemberThatCanHaveIt) {
  Formats formats = defined(GetParam().text);
  const Format& format = *formats.find("test/msg/Type");
  EXPECT_EQ(format.stamp, GetParam().stamp);
  EXPECT_EQ(format.stamp_position, GetParam().position);
  EXPECT_EQ(format.stamp_bytes, format.stamp == Stamp::kHeader ? 32u : format.stamp == Stamp::kTimeAndId ? 16u : 0u);
}

// For anything before and after it: what is written is what is read, and what the codec decodes as the
// stamp's members.
TEST_P(Placement, IsWhereStampsAreWrittenAndRead) {
  Formats formats = defined(GetParam().text);
  const Format& format = *formats.find("test/msg/Type");
  const Header sent{-5, 1'234'567'890'123, with_source(42, 3), 7, 2.5F};
  for (const std::uint32_t length : {1u, 2u, 5u, 8u, 100u}) {
    SCOPED_TRACE(length);
    Encoded message = encode_filled(format, length);
    Header header;
    if (format.stamp == Stamp::kNone) {
      EXPECT_EQ(message.stamp_at, 0u);
      EXPECT_FALSE(format.read_stamp(message.bytes, header));
      continue;
    }
    if (format.stamp_position != 0) {
      EXPECT_EQ(message.stamp_at, format.stamp_position);
    }
    EXPECT_EQ(format.stamp_at(message.bytes), message.stamp_at);
    format.write_stamp(sent, false, message.bytes.data() + message.stamp_at);

    Object object(*format.type);
    ASSERT_TRUE(format.codec.decode(message.bytes, object.data()));
    const std::byte* const place = static_cast<const std::byte*>(object.data()) + format.stamp_offset;
    for (const bool little_endian : {true, false}) {
      const Bytes bytes = PlainCdr::encode(*format.type, object.data(), little_endian);
      ASSERT_TRUE(format.read_stamp(bytes, header));
      EXPECT_EQ(header.published_ns, sent.published_ns);
      EXPECT_EQ(header.sequence, sent.sequence);
      if (format.stamp == Stamp::kHeader) {
        EXPECT_EQ(std::memcmp(&header, &sent, sizeof sent), 0);
        EXPECT_EQ(std::memcmp(place, &sent, sizeof sent), 0);
      } else {
        EXPECT_EQ(header.intended_ns, kUnknownTime);
        EXPECT_EQ(std::memcmp(place, &sent.published_ns, 8), 0);
        EXPECT_EQ(std::memcmp(place + 8, &sent.sequence, 8), 0);
      }
      // Writing a stamp changes only the stamp.
      Bytes written = bytes;
      format.write_stamp(sent, is_swapped(written), written.data() + format.stamp_at(written));
      EXPECT_EQ(written, bytes);
    }
  }
}

TEST_P(Placement, IsNotReadInBytesThatEndBeforeItOrAreNoCdr) {
  Formats formats = defined(GetParam().text);
  const Format& format = *formats.find("test/msg/Type");
  if (format.stamp == Stamp::kNone) return;
  Encoded message = encode_filled(format, 9);
  Header header;
  for (std::size_t size = 0; size < message.stamp_at + format.stamp_bytes; ++size) {
    const Bytes cut(message.bytes.begin(), message.bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(format.read_stamp(cut, header)) << size;
    EXPECT_EQ(format.stamp_at(cut), 0u) << size;
  }
  message.bytes[1] = 3;  // PL_CDR_LE
  EXPECT_FALSE(format.read_stamp(message.bytes, header));
}

INSTANTIATE_TEST_SUITE_P(
    , Placement,
    rows::of<Placed>({
        {"HeaderInFront", "perflab_msgs/Header header\nuint8[10] data\n", Stamp::kHeader, 4},
        {"HeaderByAnotherName", "perflab_msgs/Header measured\n", Stamp::kHeader, 4},
        {"HeaderBehindAnOctet", "uint8 a\nperflab_msgs/Header header\n", Stamp::kHeader, 12},
        {"HeaderBehindAPlainStruct", "Plain[2] two\nuint8 b\nperflab_msgs/Header header\n", Stamp::kHeader, 44},
        {"HeaderBeforeASequence", "perflab_msgs/Header header\nfloat64[] values\n", Stamp::kHeader, 4},
        {"HeaderBehindAText", "string text\nperflab_msgs/Header header\nuint8 last\n", Stamp::kHeader, 0},
        {"HeaderBehindAStructWithATextInIt", "Inner inner\nperflab_msgs/Header header\n", Stamp::kHeader, 0},
        {"HeaderBehindSequencesOfStructs", "Inner[] inner\nuint8[] data\nperflab_msgs/Header header\n",
         Stamp::kHeader, 0},
        {"HeaderBehindABoundedSequence", "uint8[<=3] few\nperflab_msgs/Header header\n", Stamp::kHeader, 0},
        {"HeaderWithinAStruct", "Stamped inner\n", Stamp::kNone, 0},
        {"SeveralHeaders", "perflab_msgs/Header[2] headers\n", Stamp::kNone, 0},
        {"SequenceOfHeaders", "perflab_msgs/Header[] headers\n", Stamp::kNone, 0},
        {"TimeAndIdInFront", "int64 time\nuint64 id\nuint8[3] data\n", Stamp::kTimeAndId, 4},
        {"TimeAndIdAtTheEnd", "uint8[10] array\nint64 time\nuint64 id\n", Stamp::kTimeAndId, 20},
        {"TimeAndIdBehindASequence", "uint8[] array\nint64 time\nuint64 id\n", Stamp::kTimeAndId, 0},
        {"TimeAndIdBehindAText", "string array\nint64 time\nuint64 id\nint8 last\n", Stamp::kTimeAndId, 0},
        {"TimeAndIdBehindAWideText", "wstring array\nint64 time\nuint64 id\n", Stamp::kTimeAndId, 0},
        {"TimeAndIdBehindTexts", "string[3] three\nint64 time\nuint64 id\n", Stamp::kTimeAndId, 0},
        {"TimeAndIdBehindNestedSequences", "Inner[] inner\nint64 time\nuint64 id\nInner[] more\n",
         Stamp::kTimeAndId, 0},
        {"TimeWithoutId", "int64 time\n", Stamp::kNone, 0},
        {"IdBeforeTime", "uint64 id\nint64 time\n", Stamp::kNone, 0},
        {"SomethingBetweenTimeAndId", "int64 time\nuint8 a\nuint64 id\n", Stamp::kNone, 0},
        {"TimeOfAnotherType", "uint64 time\nuint64 id\n", Stamp::kNone, 0},
        {"IdOfAnotherType", "int64 time\nint64 id\n", Stamp::kNone, 0},
        {"SeveralTimes", "int64[1] time\nuint64[1] id\n", Stamp::kNone, 0},
        {"HeaderBeforeTimeAndId", "perflab_msgs/Header header\nint64 time\nuint64 id\n", Stamp::kHeader, 4},
        {"TimeAndIdBeforeHeader", "int64 time\nuint64 id\nperflab_msgs/Header header\n", Stamp::kTimeAndId, 4},
        {"Nothing", "uint8[10] data\n", Stamp::kNone, 0},
    }),
    rows::by_name);

// ---- how long messages are

struct Length {
  std::string text;  // the type
  std::uint32_t length;
  std::size_t bytes;
};
class PayloadBytes : public testing::TestWithParam<Length> {};

TEST_P(PayloadBytes, AreOfAllThatIsEncodedBehindTheEncapsulationButAHeader) {
  Formats formats;
  EXPECT_EQ(formats.find(GetParam().text)->payload_bytes(GetParam().length), GetParam().bytes);
}

INSTANTIATE_TEST_SUITE_P(, PayloadBytes,
                         rows::of<Length>({{"array32", 0, 32},
                                           {"array1k", 0, 1024},
                                           {"array8m", 0, 8388608},
                                           {"stamped1kb", 0, 1024},
                                           {"stamped_vector", 77, 77},
                                           // A length, octets up to a place that is a multiple of 8, time and id.
                                           {"unbounded_sequence", 100, 120},
                                           {"unbounded_sequence", 101, 128},
                                           {"bounded_sequence1k", 100, 120},
                                           {"bounded_sequence1k", 1024, 1048},
                                           // As many as its bound allows.
                                           {"bounded_sequence1k", 5000, 1048},
                                           // A text's length counts its zero.
                                           {"unbounded_string", 3, 24},
                                           {"unbounded_string", 4, 32},
                                           {"std_msgs/msg/String", 7, 12}}),
                         [](const auto& info) {
                           return rows::spelled(info.param.text) + "_of_" + std::to_string(info.param.length);
                         });

TEST(EveryType, IsEncodedAsLongAsItSaysAndDecodedEqual) {
  Formats formats;
  for (const std::string& name : formats.names()) {
    SCOPED_TRACE(name);
    const Format& format = *formats.find(name);
    if (!format.variable && format.type->size > 100'000) continue;  // larger ones behave the same
    constexpr std::uint32_t kLength = 20;
    const Encoded message = encode_filled(format, kLength);
    const std::size_t header =
        format.stamp == Stamp::kHeader ? kHeaderBytes + (format.variable ? sizeof(std::uint32_t) : 0) : 0;
    EXPECT_EQ(format.payload_bytes(kLength) + header + kEncapsulationBytes, message.bytes.size());
    EXPECT_EQ(format.codec.extent(message.bytes), message.bytes.size());
    Object object(*format.type), filled(*format.type);
    fill(filled, kLength);
    ASSERT_TRUE(format.codec.decode(message.bytes, object.data()));
    EXPECT_TRUE(object == filled);
  }
}

struct Chosen {
  std::string name;
  std::string text;
  bool variable;
  std::uint64_t longest;
  std::string unit;
};
class ChosenLength : public testing::TestWithParam<Chosen> {};

TEST_P(ChosenLength, IsOfTheBulkOfTheMessage) {
  Formats formats = defined(GetParam().text);
  const Format& format = *formats.find("test/msg/Type");
  EXPECT_EQ(format.variable, GetParam().variable);
  EXPECT_EQ(format.longest, GetParam().longest);
  EXPECT_EQ(format.unit(), GetParam().unit);
}

INSTANTIATE_TEST_SUITE_P(
    , ChosenLength,
    rows::of<Chosen>({{"OfAPlainType", "uint8[10] data\n", false, 0, ""},
                      {"OfOctets", "uint8[] data\n", true, 0, "byte"},
                      {"OfOctetsWithABound", "int8[<=9] data\n", true, 9, "byte"},
                      {"OfAText", "string text\n", true, 0, "character"},
                      {"OfATextWithABound", "string<=12 text\n", true, 12, "character"},
                      {"OfNumbers", "float64[] values\n", true, 0, "element"},
                      {"OfStructs", "Inner[<=7] inner\n", true, 7, "element"},
                      {"OfBooleans", "bool[] flags\n", true, 0, "element"},
                      // Octets before strings before others.
                      {"OfOctetsBesideOthers", "string text\nfloat64[] values\nuint8[] data\n", true, 0, "byte"},
                      {"OfATextBesideOthers", "string text\nfloat64[] values\n", true, 0, "character"},
                      // The largest bound; none if any is unbounded.
                      {"OfSeveral", "uint8[<=4] a\nuint8[<=9] b\n", true, 9, "byte"},
                      {"OfSeveralOneWithoutABound", "uint8[<=4] a\nuint8[] b\n", true, 0, "byte"},
                      // Inside a nested struct it is not for the sender to choose.
                      {"OfAStructWithATextInIt", "Inner inner\n", false, 0, ""}}),
    rows::by_name);

TEST(LargestBytes, AreAboutThoseOfTheMessageAndNoneIsMade) {
  Formats formats = defined("float64[] values\n");
  for (const char* const name : {"stamped_vector", "unbounded_sequence", "unbounded_string", "test/msg/Type"}) {
    SCOPED_TRACE(name);
    const Format& format = *formats.find(name);
    for (const std::uint32_t length : {100u, 1000u, 100'000u}) {
      const auto bytes = static_cast<double>(format.payload_bytes(length));
      EXPECT_NEAR(static_cast<double>(format.largest_bytes(length)), bytes, 0.02 * bytes);
    }
    EXPECT_GE(format.largest_bytes(0xffffffff), 0xffffffffu);  // would not fit into memory several times over
  }
  EXPECT_GE(formats.find("test/msg/Type")->largest_bytes(0xffffffff), 8 * std::uint64_t{0xffffffff} - 10'000);
}

// ---- names and families

struct Family {
  std::string text;
  std::string family;
};
class Families : public testing::TestWithParam<Family> {};

TEST_P(Families, AreThoseOfTheListsOfOthersTheirPackage) {
  EXPECT_EQ(Formats::family_of(GetParam().text), GetParam().family);
}

INSTANTIATE_TEST_SUITE_P(, Families,
                         rows::of<Family>({{"perflab_msgs/msg/Stamped10b", "Stamped"},
                                           {"perflab_msgs/msg/StampedInt64", "Stamped"},
                                           {"perflab_msgs/msg/Stamped9Float32", "Stamped"},
                                           {"perflab_msgs/msg/StampedVector", "Stamped"},
                                           {"perflab_msgs/msg/Array1k", "Array"},
                                           {"perflab_msgs/msg/Struct32k", "Struct"},
                                           {"perflab_msgs/msg/PointCloud512k", "PointCloud"},
                                           {"perflab_msgs/msg/BoundedSequence1k", "BoundedSequence"},
                                           {"perflab_msgs/msg/UnboundedString", "UnboundedString"},
                                           {"perflab_msgs/msg/KeyedArray1k", "KeyedArray"},
                                           {"perflab_msgs/msg/NavSatFix", "NavSatFix"},
                                           {"sensor_msgs/msg/Image", "sensor_msgs"},
                                           {"my_own_msgs/msg/Stamped10b", "my_own_msgs"}}),
                         rows::by_text);

TEST(FormatsByName, EachTypeHasOneByAnyOfItsNames) {
  Formats formats;
  const std::vector<std::string> names = formats.names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  for (const std::string& name : names) {
    const Format* const format = formats.find(name);
    ASSERT_NE(format, nullptr) << name;
    EXPECT_EQ(format->name, name);
    EXPECT_EQ(formats.find(format->type->name), format) << name;
  }
  EXPECT_EQ(formats.find("sensor_msgs/Image"), formats.find("sensor_msgs/msg/Image"));
  EXPECT_EQ(formats.find("perflab_msgs/Array1k"), formats.find("array1k"));
  for (const char* const unknown :
       {"", "StampedInt64", "stamped11b", "sensor_msgs/msg/Imag", "Image", "std_srvs/srv/SetBool"})
    EXPECT_EQ(formats.find(unknown), nullptr) << unknown;
}

TEST(FormatsByName, OwnTypesComeFirst) {
  Formats formats(Texts{{"a_msgs/msg/First", "uint8 a\n"}});
  const std::vector<std::string> names = formats.names();
  const auto first_other =
      std::ranges::find_if(names, [](const std::string& name) { return name.find('/') != std::string::npos; });
  EXPECT_EQ(*first_other, "a_msgs/msg/First");
  EXPECT_GT(first_other - names.begin(), 50);
}

TEST(FormatsOfServices, AreOfBothTheirMessages) {
  Formats formats(Texts{{"my_msgs/srv/Ask", "string text\n---\nbool known\n"}});
  EXPECT_EQ(formats.service_name("my_msgs/Ask"), "my_msgs/srv/Ask");
  EXPECT_EQ(formats.full_service_name("my_msgs/srv/Ask"), "my_msgs/srv/Ask");
  EXPECT_EQ(formats.find_request("my_msgs/srv/Ask")->type->name, "my_msgs/srv/Ask_Request");
  EXPECT_EQ(formats.find_response("my_msgs/Ask")->type->name, "my_msgs/srv/Ask_Response");
  EXPECT_EQ(formats.find_request("my_msgs/srv/Ask")->name, "my_msgs/srv/Ask");
  // perflab's own services are named after their messages.
  EXPECT_EQ(formats.service_name("perflab_msgs/srv/Stamped10b"), "stamped10b");
  EXPECT_EQ(formats.full_service_name("stamped10b"), "perflab_msgs/srv/Stamped10b");
  for (const char* const none : {"", "array1k", "sensor_msgs/msg/Image", "my_msgs/srv/Aks"}) {
    EXPECT_EQ(formats.find_request(none), nullptr) << none;
    EXPECT_EQ(formats.find_response(none), nullptr) << none;
    EXPECT_EQ(formats.service_name(none), std::nullopt) << none;
  }
}

TEST(FormatsOfTexts, GiveThoseThatPerflabDoesNotBring) {
  const Texts texts{{"my_msgs/msg/Scan", "std_msgs/Header header\nPoint[] points\n"},
                                                 {"my_msgs/msg/Point", "float32 x\n"},
                                                 {"my_msgs/msg/Other", "float32 x\n"}};
  Formats formats(texts);
  EXPECT_EQ(formats.texts_of("my_msgs/msg/Scan"),
            (Texts{*texts.find("my_msgs/msg/Point"), *texts.find("my_msgs/msg/Scan")}));
  EXPECT_TRUE(formats.texts_of("sensor_msgs/msg/Image").empty());
  // Comments and blank lines define nothing; another field does.
  const std::string point = "# as installed\n\nfloat64 x  # east\nfloat64 y\nfloat64 z\n";
  EXPECT_TRUE(Formats({{"geometry_msgs/msg/Point", point}}).texts_of("geometry_msgs/msg/Pose").empty());
  const std::string other = "float64 x\nfloat64 y\nfloat32 z\n";
  EXPECT_EQ(Formats({{"geometry_msgs/msg/Point", other}}).texts_of("geometry_msgs/msg/Pose"),
            (std::map<std::string, std::string>{{"geometry_msgs/msg/Point", other}}));
}

TEST(FormatsOfTexts, ThatAreWrongAreRefusedWhereTheyAreAskedForWithTheirPlace) {
  Formats formats(Texts{{"my_msgs/msg/Wrong", "uint8 a\nuint9 b\n"}});
  ASSERT_NE(formats.find("stamped10b"), nullptr);
  try {
    formats.find("my_msgs/msg/Wrong");
    ADD_FAILURE() << "not refused";
  } catch (const BadInput& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("my_msgs/msg/Wrong:2:1: ")) << error.what();
  }
}

TEST(Formats, KnowWhatAnActionConsistsOf) {
  Formats formats;
  const ActionTypes* const stamped = formats.find_action("stamped");
  ASSERT_NE(stamped, nullptr);
  EXPECT_EQ(stamped, formats.find_action("perflab_msgs/action/Stamped"));
  EXPECT_EQ(stamped->send_goal.name, "perflab_msgs/action/Stamped_SendGoal");
  EXPECT_EQ(stamped->send_goal.request->name, "perflab_msgs/action/Stamped_SendGoal_Request");
  EXPECT_EQ(stamped->send_goal.request->member("goal")->element.type, stamped->goal);
  EXPECT_EQ(stamped->get_result.response->member("result")->element.type, stamped->result);
  EXPECT_EQ(stamped->feedback_message->name, "perflab_msgs/action/Stamped_FeedbackMessage");
  EXPECT_EQ(stamped->cancel.name, "action_msgs/srv/CancelGoal");
  EXPECT_EQ(stamped->status->name, "action_msgs/msg/GoalStatusArray");
  EXPECT_EQ(formats.format_of_part(*stamped->feedback).stamp, Stamp::kHeader);
  EXPECT_EQ(formats.action_name("perflab_msgs/Stamped"), "stamped");
  EXPECT_EQ(formats.action_name("control_msgs/FollowJointTrajectory"), "control_msgs/action/FollowJointTrajectory");
  for (const char* const none : {"stamped10b", "std_srvs/srv/SetBool", "perflab_msgs/action/Stamped_Goal", "no_msgs/action/Such"})
    EXPECT_EQ(formats.find_action(none), nullptr) << none;
}

}  // namespace
}  // namespace perflab::message
