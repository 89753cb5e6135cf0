// Metadata in packets, made here byte by byte.
#include <gtest/gtest.h>

#include <fstream>

#include "ctf/metadata.h"

namespace perflab::ctf {
namespace {

constexpr std::uint32_t kHeaderBits = 37 * 8;

struct PacketSpec {
  std::string text = {};
  bool big_endian = false;
  std::uint32_t magic = 0x75d11d57;
  std::string uuid = std::string(16, 'u');
  std::uint32_t checksum = 0xdeadbeef;
  std::optional<std::uint32_t> content_bits = {};  // that of the text
  std::optional<std::uint32_t> packet_bits = {};   // that of the content and the padding
  std::size_t padding = 0;
  std::string schemes = std::string(3, '\0');  // compression, encryption, checksum
  char major = 1;
  char minor = 8;
};

void append(std::string& out, std::uint32_t value, bool big_endian) {
  for (int i = 0; i < 4; ++i) out += static_cast<char>(value >> (8 * (big_endian ? 3 - i : i)));
}

std::string packet(const PacketSpec& spec) {
  const auto text_bits = static_cast<std::uint32_t>(spec.text.size() * 8);
  const auto padding_bits = static_cast<std::uint32_t>(spec.padding * 8);
  const std::uint32_t content = spec.content_bits.value_or(kHeaderBits + text_bits);
  std::string out;
  append(out, spec.magic, spec.big_endian);
  out += spec.uuid;
  append(out, spec.checksum, spec.big_endian);
  append(out, content, spec.big_endian);
  append(out, spec.packet_bits.value_or(content + padding_bits), spec.big_endian);
  out += spec.schemes;
  out += spec.major;
  out += spec.minor;
  return out + spec.text + std::string(spec.padding, '\0');
}

std::string refusal(const std::string& bytes) {
  try {
    (void)metadata_text(bytes, "m");
  } catch (const MetadataError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(MetadataPackets, TextGoesOnFromPacketToPacketInBothByteOrders) {
  for (const bool big_endian : {false, true}) {
    const std::string bytes = packet({.text = "trace { ma", .big_endian = big_endian, .padding = 11}) +
                              packet({.text = "", .big_endian = big_endian}) +
                              packet({.text = "jor = 1;", .big_endian = big_endian});
    EXPECT_EQ(metadata_text(bytes, "m"), "trace { major = 1;");
  }
}

TEST(MetadataPackets, PlainTextStaysAsItIs) {
  EXPECT_EQ(metadata_text("/* CTF 1.8 */\n", "m"), "/* CTF 1.8 */\n");
}

TEST(MetadataPackets, TheLastPaddingMayBeMissing) {
  EXPECT_EQ(metadata_text(packet({.text = "ab", .packet_bits = kHeaderBits + 4096}), "m"), "ab");
}

TEST(MetadataPackets, BrokenOnesAreRefusedWithTheirPlace) {
  const std::string start = "m:1:1: the metadata packet at byte 0 is broken: ";
  const std::string good = packet({.text = "abc"});
  EXPECT_EQ(refusal(good.substr(0, 20)), start + "20 bytes are left where the header has 37");
  EXPECT_EQ(refusal(good + "xy"),
            "m:1:1: the metadata packet at byte 40 is broken: 2 bytes are left where the header has 37");
  EXPECT_EQ(refusal(good + packet({.magic = 0x12345678})),
            "m:1:1: the metadata packet at byte 40 is broken: it begins with 0x12345678; 0x75d11d57 would be "
            "right");
  EXPECT_EQ(refusal(good + packet({.uuid = std::string(16, 'v')})),
            "m:1:1: the metadata packet at byte 40 is broken: its UUID is not that of the packets before");
  EXPECT_EQ(refusal(packet({.schemes = std::string("\1\0\0", 3)})),
            start + "it is compressed, which is not read");
  EXPECT_EQ(refusal(packet({.schemes = std::string("\0\1\0", 3)})),
            start + "it is encrypted, which is not read");
  EXPECT_EQ(refusal(packet({.minor = 9})), start + "it is of CTF 1.9; only CTF 1.8 is read");
  const std::string sizes = "; whole bytes, at least the header's 296, would be right";
  EXPECT_EQ(refusal(packet({.content_bits = 288})),
            start + "it says 288 bits of content in 288 bits" + sizes);
  EXPECT_EQ(refusal(packet({.content_bits = 297})),
            start + "it says 297 bits of content in 297 bits" + sizes);
  EXPECT_EQ(refusal(packet({.content_bits = 0, .packet_bits = 0})),
            start + "it says 0 bits of content in 0 bits" + sizes);
  EXPECT_EQ(refusal(packet({.text = "abc", .packet_bits = 304})),
            start + "it says 320 bits of content in 304 bits" + sizes);
  EXPECT_EQ(refusal(packet({.text = "abc", .content_bits = 0xfffffff8, .packet_bits = 0xfffffff8})),
            start + "it says 536870911 bytes of content, but the file has 40 from there");
}

TEST(MetadataPackets, OtherFilesAreToldFromMetadata) {
  const std::string ctf2 = "m:1:1: this is CTF 2 (JSON), which is not read; only CTF 1.8 is";
  EXPECT_EQ(refusal("\x1e{\"type\": \"preamble\"}"), ctf2);
  EXPECT_EQ(refusal("  [{}]"), ctf2);
  EXPECT_EQ(refusal(""), "m:1:1: the metadata is empty; it must begin with /* CTF 1.8 */");
  EXPECT_EQ(refusal(" \n"), "m:1:1: the metadata is empty; it must begin with /* CTF 1.8 */");
}

TEST(MetadataPackets, AnotherUuidThanTheTracesIsAWarning) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "perflab_metadata_in_packets";
  std::ofstream(file, std::ios::binary)
      << packet({.text = "trace { major = 1; minor = 8; byte_order = le; uuid = "
                         "\"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"; };"});
  const Metadata metadata = read_metadata(file);
  std::filesystem::remove(file);
  ASSERT_EQ(metadata.warnings.size(), 1U);
  EXPECT_EQ(metadata.warnings[0],
            file.string() + ":1:1: the UUID of the metadata's packets is not that of its trace");
}

}  // namespace
}  // namespace perflab::ctf
