// Type hashes: those that rosidl itself generated (ROS 2 Jazzy, Kilted), from the fields of the types alone.
#include "message/hash.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "../rows.h"
#include "base/hex.h"
#include "message/library.h"
#include "message/sha256.h"

namespace perflab::message {
namespace {

// ---- SHA-256: examples of FIPS 180 and of NIST's validation suite

struct Hashed {
  std::string text;
  std::string digest;
};
class Sha256 : public testing::TestWithParam<Hashed> {};

TEST_P(Sha256, IsThatOfTheStandard) { EXPECT_EQ(to_hex(sha256(GetParam().text)), GetParam().digest); }

INSTANTIATE_TEST_SUITE_P(
    , Sha256,
    rows::of<Hashed>(
        {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
         {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
         {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
         {std::string(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"}}),
    rows::by_text);

TEST(Sha256Padding, IsRightAtEachLengthAroundABlock) {
  // The digest of the digests of 0 to 130 letters, by Python's hashlib.
  std::string all;
  for (std::size_t length = 0; length <= 130; ++length) all += to_hex(sha256(std::string(length, 'x')));
  EXPECT_EQ(to_hex(sha256(all)), "87aca1c44bc7ba8897768170211f0a02063de70801131ff86c7edb9ce32c6a50");
}

// ---- types

// Lines of tests/data/messages/golden/hashes: a name and its hash. Beside it are the types, without comments,
// constants and defaults.
struct Golden {
  std::string text;
  std::string hash;
};

const std::string kGolden = PERFLAB_SOURCE_DIR "/tests/data/messages/golden";

std::vector<Golden> golden() {
  std::ifstream file(kGolden + "/hashes");
  std::vector<Golden> rows;
  for (Golden row; file >> row.text >> row.hash;) rows.push_back(row);
  return rows;
}

class Rihs01 : public testing::TestWithParam<Golden> {};

TEST_P(Rihs01, IsThatOfRosidl) {
  Library library;
  library.add_folder(kGolden);
  EXPECT_EQ(library.hash(GetParam().text), GetParam().hash);
}

INSTANTIATE_TEST_SUITE_P(, Rihs01, testing::ValuesIn(golden()), rows::by_text);

TEST(Golden, IsReadWhole) { EXPECT_EQ(golden().size(), 59U); }

TEST(TypeDescription, IsWrittenAsRosidlWritesIt) {
  const Definition inner{
      "pkg/msg/Inner", {{"a", {Primitive::kBool, Plurality::kOne, 0, 0}, {}, false, false}}, {}, {}};
  const Definition outer{"pkg/msg/Outer",
                         {{"texts", {Primitive::kString, Plurality::kBounded, 3, 5}, {}, false, false},
                          {"inner", {"pkg/msg/Inner", Plurality::kSequence, 0, 0}, {}, false, false}},
                         {},
                         {}};
  const Definition* const referenced[] = {&inner};
  EXPECT_EQ(type_description(outer, referenced),
            "{\"type_description\": {\"type_name\": \"pkg/msg/Outer\", \"fields\": ["
            "{\"name\": \"texts\", \"type\": {\"type_id\": 117, \"capacity\": 3, \"string_capacity\": 5, "
            "\"nested_type_name\": \"\"}}, "
            "{\"name\": \"inner\", \"type\": {\"type_id\": 145, \"capacity\": 0, \"string_capacity\": 0, "
            "\"nested_type_name\": \"pkg/msg/Inner\"}}]}, "
            "\"referenced_type_descriptions\": [{\"type_name\": \"pkg/msg/Inner\", \"fields\": ["
            "{\"name\": \"a\", \"type\": {\"type_id\": 15, \"capacity\": 0, \"string_capacity\": 0, "
            "\"nested_type_name\": \"\"}}]}]}");
}

TEST(TypeHash, IgnoresCommentsConstantsDefaultsAndKeys) {
  Library library;
  library.add_text("pkg/msg/Name", "int32 a\n", "a");
  const std::string bare = library.hash("pkg/msg/Name");
  library.add_text("pkg/msg/Name", "# text\nint32 B=1\nint32 a 5  # @key\n", "b");
  EXPECT_EQ(library.hash("pkg/msg/Name"), bare);
}

}  // namespace
}  // namespace perflab::message
