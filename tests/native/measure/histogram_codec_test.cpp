#include "measure/histogram_codec.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include <array>

namespace perflab::measure {
namespace {

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 | std::uint32_t{bytes[2]} << 8 |
         bytes[3];
}

TEST(HistogramCodec, EmptyHistogramIsAHeaderWithoutPayload) {
  HistogramMemory memory(1);
  const Histogram histogram(memory);
  const std::vector<std::uint8_t> bytes = encode_v2(histogram);
  ASSERT_EQ(bytes.size(), 40u);
  EXPECT_EQ(big_endian(bytes.data()), 0x1c849313u);
  EXPECT_EQ(big_endian(bytes.data() + 4), 0u);
  EXPECT_EQ(big_endian(bytes.data() + 12), 3u);
}

TEST(HistogramCodec, PayloadIsZigZagLeb128WithRunsOfZeros) {
  HistogramMemory memory(1);
  Histogram histogram(memory);
  histogram.record(0, 1);                              // index 0
  for (int i = 0; i < 3; ++i) histogram.record(5, 1);  // index 5
  for (int i = 0; i < 64; ++i) histogram.record(6, 1);
  const std::vector<std::uint8_t> bytes = encode_v2(histogram);
  // count 1 -> 2; four zeros -> -4 -> 7; count 3 -> 6; count 64 -> 128 -> 0x80 0x01
  const std::vector<std::uint8_t> expected{2, 7, 6, 0x80, 0x01};
  ASSERT_EQ(big_endian(bytes.data() + 4), expected.size());
  EXPECT_EQ(std::vector<std::uint8_t>(bytes.begin() + 40, bytes.end()), expected);
}

std::vector<std::uint8_t> from_base64(const std::string& text) {
  static constexpr std::string_view kAlphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<std::uint8_t> bytes;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    if (letter == '=') break;
    bits = bits << 6 | static_cast<std::uint32_t>(kAlphabet.find(letter));
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<std::uint8_t>(bits >> count));
    }
  }
  return bytes;
}

TEST(HistogramCodec, TheCompressedFormWrapsTheSameBytes) {
  HistogramMemory memory(1);
  Histogram histogram(memory);
  for (std::int64_t value = 1; value < 2'000'000'000; value = value * 3 + 1) histogram.record(value, 1);
  const std::string text = encode_v2_base64(histogram);
  EXPECT_EQ(text.size() % 4, 0u);
  const std::vector<std::uint8_t> bytes = from_base64(text);
  ASSERT_GT(bytes.size(), 8u);
  EXPECT_EQ(big_endian(bytes.data()), 0x1c849314u);
  ASSERT_EQ(big_endian(bytes.data() + 4), bytes.size() - 8);
  std::vector<std::uint8_t> plain(1 << 20);
  uLongf size = plain.size();
  ASSERT_EQ(uncompress(plain.data(), &size, bytes.data() + 8, bytes.size() - 8), Z_OK);
  plain.resize(size);
  EXPECT_EQ(plain, encode_v2(histogram));
}

}  // namespace
}  // namespace perflab::measure
