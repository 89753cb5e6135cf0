// Wire names, and irobot_benchmark's types: their sizes, bytes and services.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../rows.h"
#include "message/format.h"
#include "message/names.h"
#include "message/object.h"

namespace perflab::message {
namespace {

using Bytes = std::vector<std::uint8_t>;

// ---- names

struct DdsName {
  std::string text;
  std::string (*name)(std::string_view);
  std::string expected;
};
class DdsNames : public testing::TestWithParam<DdsName> {};

TEST_P(DdsNames, FollowTheConventionsOfRos2) { EXPECT_EQ(GetParam().name(GetParam().text), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    , DdsNames,
    rows::of<DdsName>(
        {{"/amazon", dds_topic_name, "rt/amazon"},
         {"/robot/amazon", dds_topic_name, "rt/robot/amazon"},
         {"/add", dds_request_name, "rq/addRequest"},
         {"/robot/add", dds_reply_name, "rr/robot/addReply"},
         {"perflab_msgs/msg/StampedInt64", dds_type_name, "perflab_msgs::msg::dds_::StampedInt64_"},
         {"std_srvs/srv/SetBool_Request", dds_type_name, "std_srvs::srv::dds_::SetBool_Request_"}}),
    rows::by_text);

struct ShortName {
  std::string text;
  std::string expected;
};
class ShortNames : public testing::TestWithParam<ShortName> {};

TEST_P(ShortNames, AreThoseOfTheFilesThatRosidlMakes) { EXPECT_EQ(short_name(GetParam().text), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(, ShortNames,
                         rows::of<ShortName>({{"perflab_msgs/msg/Stamped10b", "stamped10b"},
                                              {"perflab_msgs/msg/StampedInt64", "stamped_int64"},
                                              {"perflab_msgs/msg/Stamped9Float32", "stamped9_float32"},
                                              {"perflab_msgs/srv/Stamped1kb", "stamped1kb"},
                                              {"perflab_msgs/msg/NavSatFix", "nav_sat_fix"},
                                              {"perflab_msgs/msg/PointCloud512k", "point_cloud512k"},
                                              {"perflab_msgs/msg/KeyedArray1k", "keyed_array1k"},
                                              {"sensor_msgs/msg/Image", "sensor_msgs/msg/Image"}}),
                         rows::by_text);

// ---- irobot_benchmark's types

const std::map<std::string, std::size_t> kSizes{
    {"stamped10b", 10},       {"stamped100b", 100},      {"stamped250b", 250},     {"stamped1kb", 1024},
    {"stamped10kb", 10240},   {"stamped50kb", 51200},    {"stamped100kb", 102400}, {"stamped250kb", 256000},
    {"stamped500kb", 512000}, {"stamped600kb", 614400},  {"stamped1mb", 1048576},  {"stamped4mb", 4194304},
    {"stamped5mb", 5120000},  {"stamped8mb", 8388608},   {"stamped3_float32", 12}, {"stamped4_float32", 16},
    {"stamped9_float32", 36}, {"stamped12_float32", 48}, {"stamped4_int32", 16},   {"stamped_int64", 8}};

TEST(StampedTypes, HaveTheSizesOfIrobotBenchmark) {
  Formats formats;
  for (const auto& [name, bytes] : kSizes) {
    const Format* const format = formats.find(name);
    ASSERT_NE(format, nullptr) << name;
    EXPECT_EQ(format->payload_bytes(0), bytes) << name;
    EXPECT_EQ(format->codec.fixed_size(), kEncapsulationBytes + kHeaderBytes + bytes) << name;
    EXPECT_FALSE(format->variable) << name;
    EXPECT_TRUE(format->type->plain) << name;
  }
}

TEST(StampedTypes, AreAllThatTheFamilyHas) {
  Formats formats;
  std::set<std::string> expected{"stamped_vector"}, found;
  for (const auto& [name, bytes] : kSizes) expected.insert(name);
  for (const std::string& name : formats.names()) {
    if (Formats::family_of(formats.find(name)->type->name) == "Stamped") found.insert(name);
  }
  EXPECT_EQ(found, expected);
}

TEST(StampedTypes, OfFixedSizeHaveAServiceWhoseMessagesAreLaidOutAsTheyAre) {
  Formats formats;
  std::set<std::string> expected, found;
  for (const auto& [name, bytes] : kSizes) expected.insert(name);
  for (const std::string& name : formats.names("srv")) {
    if (!name.starts_with("stamped")) continue;
    found.insert(name);
    const std::vector<Member>& members = formats.find(name)->type->members;
    for (const Format* const part : {formats.find_request(name), formats.find_response(name)}) {
      SCOPED_TRACE(part->type->name);
      EXPECT_EQ(part->codec.fixed_size(), formats.find(name)->codec.fixed_size());
      ASSERT_EQ(part->type->members.size(), members.size());
      for (std::size_t i = 0; i < members.size(); ++i) {
        const Member& member = part->type->members[i];
        EXPECT_EQ(member.name, members[i].name);
        EXPECT_EQ(member.element.type, members[i].element.type);
        EXPECT_EQ(member.element.primitive, members[i].element.primitive);
        EXPECT_EQ(member.count, members[i].count);
        EXPECT_EQ(member.offset, members[i].offset);
      }
    }
  }
  EXPECT_EQ(found, expected);
}

template <typename Field>
Field& field(Object& object, const char* member) {
  return *reinterpret_cast<Field*>(static_cast<std::byte*>(object.data()) + object.type().member(member)->offset);
}

// Written out by hand from the rules of CDR: little-endian, every field aligned to its size from behind the
// encapsulation header.
TEST(StampedTypes, GoldenBytesOfStamped3Float32) {
  Formats formats;
  const Format& format = *formats.find("stamped3_float32");
  Object object(*format.type);
  field<Header>(object, "header") = {0x0102030405060708, 2, 3, 12, 100.0F};
  field<std::array<float, 3>>(object, "data") = {1.0F, 2.0F, -1.0F};
  const Bytes expected{0,  1, 0,    0,                 // CDR_LE
                       8,  7, 6,    5,    4, 3, 2, 1,  // intended_ns
                       2,  0, 0,    0,    0, 0, 0, 0,  // published_ns
                       3,  0, 0,    0,    0, 0, 0, 0,  // sequence
                       12, 0, 0,    0,                 // size_bytes
                       0,  0, 0xc8, 0x42,              // frequency_hz = 100
                       0,  0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x80, 0xbf};
  Bytes bytes(expected.size());
  ASSERT_EQ(format.codec.encode(object.data(), bytes), expected.size());
  EXPECT_EQ(bytes, expected);
  Header header;
  ASSERT_TRUE(format.read_stamp(bytes, header));
  EXPECT_EQ(std::memcmp(&header, &field<Header>(object, "header"), sizeof header), 0);
}

TEST(StampedTypes, OfVariableLengthSayItBehindTheirHeader) {
  Formats formats;
  const Format& format = *formats.find("stamped_vector");
  EXPECT_TRUE(format.variable);
  EXPECT_FALSE(format.type->plain);
  for (const std::uint32_t length : {0u, 1u, 3u, 1000u}) {
    EXPECT_EQ(format.payload_bytes(length), length);
    const Bytes bytes = encode_filled(format, length).bytes;
    constexpr std::size_t kLengthAt = kEncapsulationBytes + kHeaderBytes;
    ASSERT_EQ(bytes.size(), kLengthAt + sizeof(std::uint32_t) + length);
    std::uint32_t said = 0;
    std::memcpy(&said, bytes.data() + kLengthAt, sizeof said);
    EXPECT_EQ(said, length);
  }
}

}  // namespace
}  // namespace perflab::message
