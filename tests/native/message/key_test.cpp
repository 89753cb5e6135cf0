// Message keys: their members, wire format, and hashes.
#include "message/key.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/hex.h"
#include "message/format.h"
#include "message/md5.h"
#include "message/object.h"
#include "plain_cdr.h"

namespace perflab::message {
namespace {

using Bytes = std::vector<std::uint8_t>;
using Piece = std::span<const std::uint8_t>;

std::string digest(std::string_view text) {
  Md5 md5;
  md5.add({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  return to_hex(md5.finish());
}

TEST(Md5, IsThatOfTheStandard) {  // RFC 1321, A.5
  EXPECT_EQ(digest(""), "d41d8cd98f00b204e9800998ecf8427e");
  EXPECT_EQ(digest("a"), "0cc175b9c0f1b6a831c399e269772661");
  EXPECT_EQ(digest("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
  EXPECT_EQ(digest("abcdefghijklmnopqrstuvwxyz"), "c3fcd3d76192e4007dfb496cca67e13b");
  EXPECT_EQ(digest("12345678901234567890123456789012345678901234567890123456789012345678901234567890"),
            "57edf4a22be3c955ac49da2e2107b67a");
}

TEST(Md5, TakesAnyPieces) {
  std::string all;
  for (std::size_t size = 0; size <= 130; ++size) {
    const std::string text(size, 'x');
    for (std::size_t cut = 0; cut <= size; cut += 13) {
      Md5 md5;
      const std::span<const std::uint8_t> bytes(reinterpret_cast<const std::uint8_t*>(text.data()), size);
      md5.add(bytes.first(cut));
      md5.add(bytes.subspan(cut));
      ASSERT_EQ(to_hex(md5.finish()), digest(text)) << size << " " << cut;
    }
  }
}

struct Keyed {
  std::string name;
  std::string text;
  std::string holder;  // a type with only the keys, in the same order
  bool digests;
};
void PrintTo(const Keyed& one, std::ostream* out) { *out << one.name; }
class Keys : public testing::TestWithParam<Keyed> {
 protected:
  Keys()
      : formats_({{"test/msg/Point", "float64 x\nfloat64 y\n"},
                  {"test/msg/Track", "string label\nuint16 id # @key\nuint8 source # @key\n"},
                  {"test/msg/Type", GetParam().text},
                  {"test/msg/Holder", GetParam().holder}}) {}

  // Decodes a key, and encodes it again.
  static Bytes again(const Type& holder, const Bytes& key) {
    Object object(holder);
    EXPECT_TRUE(Codec(holder).decode(key, object.data())) << to_hex(key);
    return PlainCdr::encode(holder, object.data(), false);
  }

  Formats formats_;
};

TEST_P(Keys, AreTheSameWhateverByteOrderAndPiecesAMessageComesIn) {
  const Type& type = *formats_.find("test/msg/Type")->type;
  const Type& holder = *formats_.find("test/msg/Holder")->type;
  ASSERT_TRUE(formats_.find("test/msg/Type")->key);
  const Key& key = *formats_.find("test/msg/Type")->key;
  EXPECT_EQ(key.digests(), GetParam().digests);
  std::vector<KeyHash> seen;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Object object(type);
    fill(object, seed, seed);
    const Bytes message = PlainCdr::encode(type, object.data(), true);
    Bytes expected(500);
    const Piece whole[] = {message};
    expected.resize(key.extract(whole, Key::In::kMessage, expected));
    ASSERT_GT(expected.size(), 4u);
    // It is a complete message of the type with only the keys.
    EXPECT_EQ(again(holder, expected), expected) << to_hex(expected);
    KeyHash expected_hash{};
    ASSERT_TRUE(key.hash(whole, Key::In::kMessage, expected_hash));
    if (GetParam().digests) {
      EXPECT_EQ(to_hex(expected_hash), digest({reinterpret_cast<const char*>(expected.data()) + 4, expected.size() - 4}));
    } else {
      Bytes padded(expected.begin() + 4, expected.end());
      padded.resize(16);
      EXPECT_EQ(to_hex(expected_hash), to_hex(padded));
    }
    seen.push_back(expected_hash);

    const auto same = [&](Key::Pieces pieces, Key::In in) {
      Bytes found(500);
      found.resize(key.extract(pieces, in, found));
      KeyHash hash{};
      return key.hash(pieces, in, hash) && found == expected && hash == expected_hash;
    };
    for (const bool little_endian : {true, false}) {
      const Bytes bytes = PlainCdr::encode(type, object.data(), little_endian);
      for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
        const Piece pieces[] = {Piece(bytes).first(cut), {}, Piece(bytes).subspan(cut)};
        ASSERT_TRUE(same(pieces, Key::In::kMessage)) << cut;
      }
    }
    const Piece alone[] = {expected};
    EXPECT_TRUE(same(alone, Key::In::kKey));
    Object parts(holder);
    ASSERT_TRUE(Codec(holder).decode(expected, parts.data()));
    const Bytes native = PlainCdr::encode(holder, parts.data(), true);
    const Piece turned[] = {native};
    EXPECT_TRUE(same(turned, Key::In::kKey));
    // A buffer that is too small is not overrun.
    Bytes small(expected.size() - 1, 0xEE);
    EXPECT_EQ(key.extract(whole, Key::In::kMessage, std::span(small).first(3)), expected.size());
    EXPECT_EQ(small[3], 0xEE);
  }
  std::ranges::sort(seen);
  EXPECT_GT(std::unique(seen.begin(), seen.end()) - seen.begin(), 1);
}

TEST_P(Keys, OfBytesThatEndTooEarlyThereAreNone) {
  const Key& key = *formats_.find("test/msg/Type")->key;
  Object object(*formats_.find("test/msg/Type")->type);
  fill(object, 3, 1);
  const Bytes message = PlainCdr::encode(object.type(), object.data(), true);
  std::size_t enough = 0;
  for (std::size_t size = 0; size <= message.size(); ++size) {
    const Piece pieces[] = {Piece(message).first(size)};
    Bytes found(500);
    KeyHash hash{};
    const std::size_t extracted = key.extract(pieces, Key::In::kMessage, found);
    ASSERT_EQ(extracted > 0, key.hash(pieces, Key::In::kMessage, hash));
    if (extracted > 0 && enough == 0) enough = size;
    ASSERT_EQ(extracted > 0, enough > 0) << size;
  }
  EXPECT_GT(enough, 4u);
}

INSTANTIATE_TEST_SUITE_P(
    , Keys,
    testing::Values(
        Keyed{"a_number", "string name\nuint32 id  # @key\nuint8[] data\n", "uint32 id\n", false},
        Keyed{"numbers_of_16_bytes", "uint8 a  # @key\nfloat64 between\nuint64 b  # @key\n", "uint8 a\nuint64 b\n", false},
        Keyed{"numbers_of_more", "uint64 a  # @key\nuint64 b  # @key\nuint8 c # @key\n", "uint64 a\nuint64 b\nuint8 c\n", true},
        Keyed{"an_array", "wstring name\nuint16[3] id  # @key\n", "uint16[3] id\n", false},
        Keyed{"a_text", "Point[] points\nstring name  # @key\nint8 last\n", "string name\n", true},
        Keyed{"a_short_text", "string[] names\nstring<=11 name  # @key\n", "string<=11 name\n", false},
        Keyed{"a_longer_text", "string<=12 name  # @key\n", "string<=12 name\n", true},
        Keyed{"a_wide_text", "wstring name  # @key\nint8 last\n", "wstring name\n", true},
        Keyed{"a_bounded_sequence", "float32[] values\nuint16[<=6] id  # @key\n", "uint16[<=6] id\n", false},
        Keyed{"a_sequence", "uint16[] id  # @key\n", "uint16[] id\n", true},
        Keyed{"all_of_a_struct", "int8 first\nPoint at  # @key\n", "float64 x\nfloat64 y\n", false},
        Keyed{"the_keys_of_a_struct", "int8 first\nTrack track  # @key\nTrack other\nint32 b  # @key\nstring last\n",
              "uint16 id\nuint8 source\nint32 b\n", false}),
    [](const auto& info) { return info.param.name; });

TEST(KeysOfTypes, ThatDeclareNoneAreNone) {
  Formats formats;
  EXPECT_FALSE(formats.find("array1k")->key);
  EXPECT_TRUE(formats.find("keyed_array1k")->key);
}

}  // namespace
}  // namespace perflab::message
