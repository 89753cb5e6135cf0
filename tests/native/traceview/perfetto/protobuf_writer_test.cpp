#include "traceview/protobuf_writer.h"

#include <gtest/gtest.h>

#include <string>

namespace perflab::traceview {
namespace {

using namespace std::string_literals;

// The examples of https://protobuf.dev/programming-guides/encoding/.
TEST(ProtobufWriter, WritesWhatTheDescriptionOfTheEncodingShows) {
  ProtobufWriter writer;
  writer.varint(1, 150);
  EXPECT_EQ(writer.bytes(), "\x08\x96\x01"s);
  writer.clear();
  EXPECT_TRUE(writer.empty());
  writer.text(2, "testing");
  EXPECT_EQ(writer.bytes(), "\x12\x07testing"s);
  writer.clear();
  const std::size_t message = writer.begin(3);
  writer.varint(1, 150);
  writer.end(message);
  EXPECT_EQ(writer.bytes(), "\x1a\x03\x08\x96\x01"s);
  writer.clear();
  writer.integer(1, -2);
  EXPECT_EQ(writer.bytes(), "\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"s);
}

TEST(ProtobufWriter, FieldsFromSixteenOnHaveTagsOfTwoBytes) {
  ProtobufWriter writer;
  writer.fixed64(47, 0x0102030405060708u);
  EXPECT_EQ(writer.bytes(), "\xf9\x02\x08\x07\x06\x05\x04\x03\x02\x01"s);
}

TEST(ProtobufWriter, LongMessagesHaveLongLengthsAtEveryDepth) {
  for (const std::size_t size : {0u, 1u, 125u, 126u, 127u, 128u, 129u, 16'380u, 16'384u, 3'000'000u}) {
    const std::string text(size, 'x');
    ProtobufWriter inner, outer, nested;
    inner.text(5, text);
    outer.text(4, inner.bytes());
    const std::size_t one = nested.begin(4);
    nested.text(5, text);
    nested.end(one);
    EXPECT_EQ(nested.bytes(), outer.bytes()) << size;
  }
}

TEST(ProtobufWriter, WhatFollowsALongMessageStaysBehindIt) {
  ProtobufWriter writer;
  const std::size_t outer = writer.begin(1);
  const std::size_t inner = writer.begin(2);
  writer.text(3, std::string(200, 'a'));
  writer.end(inner);
  writer.varint(4, 1);
  writer.end(outer);
  EXPECT_EQ(writer.bytes(), "\x0a\xd0\x01\x12\xcb\x01\x1a\xc8\x01"s + std::string(200, 'a') + "\x20\x01"s);
}

}  // namespace
}  // namespace perflab::traceview
