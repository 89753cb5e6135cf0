#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "message/cdr.h"
#include "message/types.h"

namespace perflab::message {
namespace {

TEST(MessageTypes, HaveTheSizesOfIrobotBenchmark) {
  const std::map<std::string_view, std::uint32_t> sizes{
      {"stamped10b", 10},       {"stamped100b", 100},      {"stamped250b", 250},     {"stamped1kb", 1024},
      {"stamped10kb", 10240},   {"stamped50kb", 51200},    {"stamped100kb", 102400}, {"stamped250kb", 256000},
      {"stamped500kb", 512000}, {"stamped600kb", 614400},  {"stamped1mb", 1048576},  {"stamped4mb", 4194304},
      {"stamped5mb", 5120000},  {"stamped8mb", 8388608},   {"stamped3_float32", 12}, {"stamped4_float32", 16},
      {"stamped9_float32", 36}, {"stamped12_float32", 48}, {"stamped4_int32", 16},   {"stamped_int64", 8}};
  for (const auto& [name, size] : sizes) {
    const MessageType* type = find_type(name);
    ASSERT_NE(type, nullptr) << name;
    EXPECT_EQ(type->payload_bytes, size) << name;
    EXPECT_FALSE(type->variable) << name;
  }
  ASSERT_NE(find_type("stamped_vector"), nullptr);
  EXPECT_TRUE(find_type("stamped_vector")->variable);
  EXPECT_EQ(all_types().size(), sizes.size() + 1);
}

TEST(MessageTypes, NamesAreUniqueAndSnakeCaseOnly) {
  std::set<std::string_view> names, ros;
  for (const MessageType& type : all_types()) {
    EXPECT_TRUE(names.insert(type.name).second);
    EXPECT_TRUE(ros.insert(type.ros_type).second);
    EXPECT_EQ(find_type(type.name), &type);
  }
  EXPECT_EQ(find_type("StampedInt64"), nullptr);
  EXPECT_EQ(find_type(""), nullptr);
}

TEST(DdsNames, FollowTheConventionsOfRos2) {
  EXPECT_EQ(dds_topic_name("/amazon"), "rt/amazon");
  EXPECT_EQ(dds_topic_name("/robot/amazon"), "rt/robot/amazon");
  EXPECT_EQ(dds_type_name("perflab_msgs/msg/StampedInt64"), "perflab_msgs::msg::dds_::StampedInt64_");
}

// Written out by hand from the CDR rules: little-endian, every field aligned to its size from behind the
// encapsulation header.
TEST(Cdr, GoldenBytesOfStamped3Float32) {
  Stamped3Float32 message{};
  message.header = {0x0102030405060708, 2, 3, 12, 100.0F};
  message.data = {1.0F, 2.0F, -1.0F};
  const std::vector<std::uint8_t> expected{0,  1, 0,    0,                 // CDR_LE
                                           8,  7, 6,    5,    4, 3, 2, 1,  // intended_ns
                                           2,  0, 0,    0,    0, 0, 0, 0,  // published_ns
                                           3,  0, 0,    0,    0, 0, 0, 0,  // sequence
                                           12, 0, 0,    0,                 // size_bytes
                                           0,  0, 0xc8, 0x42,              // frequency_hz = 100
                                           0,  0, 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x80, 0xbf};
  EXPECT_EQ(encode(message), expected);
}

TEST(Cdr, GoldenBytesOfStampedVectorCarryTheLength) {
  StampedVector message;
  message.header.sequence = 1;
  message.data = {7, 8, 9};
  const std::vector<std::uint8_t> bytes = encode(message);
  ASSERT_EQ(bytes.size(), kFrameBytes + 4 + 3);
  EXPECT_EQ(bytes[kFrameBytes], 3);
  EXPECT_EQ(bytes[kFrameBytes + 4], 7);
}

TEST(Cdr, PrimitivesAreAlignedToTheirSizeBehindTheEncapsulation) {
  CdrWriter writer;
  writer(std::uint8_t{1});
  writer(std::uint32_t{2});
  writer(std::uint8_t{3});
  writer(std::int64_t{4});
  const std::vector<std::uint8_t> bytes = std::move(writer).take();
  EXPECT_EQ(bytes.size(), 4u + 8 + 8 + 8);
  CdrReader reader(bytes);
  std::uint8_t a = 0, c = 0;
  std::uint32_t b = 0;
  std::int64_t d = 0;
  reader(a), reader(b), reader(c), reader(d);
  EXPECT_TRUE(reader.ok());
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 2u);
  EXPECT_EQ(c, 3);
  EXPECT_EQ(d, 4);
}

template <typename Message>
void expect_round_trip(Message message) {
  message.header = {-5, 1'234'567'890'123, 42, 7, 2.5F};
  Message copy{};
  ASSERT_TRUE(decode(encode(message), copy));
  EXPECT_EQ(copy.header.intended_ns, -5);
  EXPECT_EQ(copy.header.published_ns, 1'234'567'890'123);
  EXPECT_EQ(copy.header.sequence, 42u);
  EXPECT_EQ(copy.header.frequency_hz, 2.5F);
  EXPECT_EQ(copy.data, message.data);
}

TEST(Cdr, EveryFamilyMakesTheRoundTrip) {
  Stamped10b bytes{};
  bytes.data.fill(0xab);
  expect_round_trip(bytes);
  Stamped12Float32 floats{};
  floats.data.fill(0.5F);
  expect_round_trip(floats);
  Stamped4Int32 integers{};
  integers.data = {1, -2, 3, -4};
  expect_round_trip(integers);
  StampedInt64 integer{};
  integer.data = -9;
  expect_round_trip(integer);
  StampedVector vector{};
  vector.data.assign(10'000, 3);
  expect_round_trip(vector);
}

std::vector<std::uint8_t> big_endian_copy(const std::vector<std::uint8_t>& little) {
  std::vector<std::uint8_t> bytes = little;
  bytes[1] = 0;
  std::size_t at = kEncapsulationBytes;
  for (const std::size_t size : {8, 8, 8, 4, 4}) {
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                 bytes.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
  }
  return bytes;
}

TEST(Cdr, ReadsMessagesOfTheOtherByteOrder) {
  StampedInt64 message{};
  message.header = {11, 22, 33, 8, 10.0F};
  std::vector<std::uint8_t> bytes = big_endian_copy(encode(message));
  Header header;
  ASSERT_TRUE(decode_header(bytes, header));
  EXPECT_EQ(header.intended_ns, 11);
  EXPECT_EQ(header.published_ns, 22);
  EXPECT_EQ(header.sequence, 33u);
  EXPECT_EQ(header.size_bytes, 8u);
  EXPECT_EQ(header.frequency_hz, 10.0F);
}

TEST(Cdr, RefusesEveryTruncationAndForeignEncapsulations) {
  StampedVector message;
  message.data.assign(20, 1);
  const std::vector<std::uint8_t> bytes = encode(message);
  StampedVector copy;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(decode(std::span(bytes).first(size), copy)) << size;
  }
  std::vector<std::uint8_t> foreign = bytes;
  foreign[1] = 3;  // PL_CDR_LE
  Header header;
  EXPECT_FALSE(decode_header(foreign, header));
  EXPECT_FALSE(decode(foreign, copy));
}

TEST(Cdr, ASequenceLongerThanTheMessageIsRefusedBeforeItIsAllocated) {
  StampedVector message;
  std::vector<std::uint8_t> bytes = encode(message);
  std::fill(bytes.end() - 4, bytes.end(), std::uint8_t{0xff});
  StampedVector copy;
  EXPECT_FALSE(decode(bytes, copy));
}

// The measured path sends a frame and a payload that was encoded once; together they must be the whole
// message.
TEST(Frame, WithThePayloadIsTheEncodingOfTheMessage) {
  for (const MessageType& type : all_types()) {
    const std::uint32_t size = type.variable ? 50 : type.payload_bytes;
    const std::vector<std::uint8_t> payload = make_payload(type, size);
    Frame frame;
    encode_frame({1, 2, 3, size, 4.0F}, frame);
    EXPECT_EQ(frame.size() + payload.size(),
              type.variable ? kFrameBytes + 4 + size : fixed_encoded_size(type))
        << type.name;
  }
  Frame frame;
  encode_frame({1, 2, 3, 50, 4.0F}, frame);
  const std::vector<std::uint8_t> payload = make_payload(*find_type("stamped_vector"), 50);
  std::vector<std::uint8_t> bytes(frame.begin(), frame.end());
  bytes.insert(bytes.end(), payload.begin(), payload.end());
  StampedVector message;
  ASSERT_TRUE(decode(bytes, message));
  EXPECT_EQ(message.header.sequence, 3u);
  EXPECT_EQ(message.data.size(), 50u);
  EXPECT_EQ(encode(message), bytes);
  Header header;
  ASSERT_TRUE(decode_header(bytes, header));
  EXPECT_EQ(header.published_ns, 2);
}

}  // namespace
}  // namespace perflab::message
