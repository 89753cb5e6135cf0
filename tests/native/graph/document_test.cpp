#include "graph/document.h"

#include <gtest/gtest.h>

#include <string>

#include "../rows.h"
#include "support.h"

namespace perflab::graph {
namespace {

using test::error_of;

std::string place_of(const Document& document, const Value& value) { return document.place(value.offset); }

TEST(Document, KnowsWhereEveryJsonValueStands) {
  const Document document =
      read_document("d.json", "{\"a\": 12,\n \"é\":[ -1.5e3 ,true,null,\"x\\n\"],\"b\":{ }}\n");
  const Value& root = document.root();
  EXPECT_EQ(place_of(document, root), "d.json:1:1");
  EXPECT_EQ(place_of(document, root.items[0]), "d.json:1:7");
  EXPECT_EQ(document.place(root.keys[1].offset), "d.json:2:2");
  const Value& list = root.items[1];
  EXPECT_EQ(place_of(document, list), "d.json:2:6") << "columns count characters, not bytes";
  EXPECT_EQ(place_of(document, list.items[0]), "d.json:2:8");
  EXPECT_EQ(list.items[0].text, "-1.5e3");
  EXPECT_EQ(place_of(document, list.items[1]), "d.json:2:16");
  EXPECT_EQ(place_of(document, list.items[2]), "d.json:2:21");
  EXPECT_EQ(place_of(document, list.items[3]), "d.json:2:26");
  EXPECT_EQ(list.items[3].text, "x\n");
  EXPECT_EQ(place_of(document, root.items[2]), "d.json:2:37");
}

TEST(Document, KnowsWhereEveryYamlValueStands) {
  const Document document = read_document("d.yaml", "\xef\xbb\xbfü: 1\r\nlist:\r\n  - 'é'\r\n  - {k: v}\r\n");
  const Value& root = document.root();
  EXPECT_EQ(document.place(root.keys[0].offset), "d.yaml:1:1") << "a byte order mark does not count";
  EXPECT_EQ(place_of(document, root.items[0]), "d.yaml:1:4");
  EXPECT_EQ(place_of(document, root.items[1].items[0]), "d.yaml:3:5");
  EXPECT_EQ(place_of(document, root.items[1].items[1].items[0]), "d.yaml:4:9");
}

struct Plain {
  std::string text;
  Kind kind;
};
class PlainYaml : public testing::TestWithParam<Plain> {};

TEST_P(PlainYaml, IsOfTheKindThatTheCoreSchemaSays) {
  EXPECT_EQ(read_document("d.yaml", "k: " + GetParam().text).root().items[0].kind, GetParam().kind);
}

auto all_of(Kind kind, std::initializer_list<const char*> texts) {
  std::vector<Plain> rows;
  for (const char* const text : texts) rows.push_back({text, kind});
  return testing::ValuesIn(rows);
}
INSTANTIATE_TEST_SUITE_P(Null, PlainYaml, all_of(Kind::kNull, {"", "~", "null", "NULL"}), rows::by_text);
INSTANTIATE_TEST_SUITE_P(Boolean, PlainYaml, all_of(Kind::kBoolean, {"true", "False"}), rows::by_text);
INSTANTIATE_TEST_SUITE_P(Number, PlainYaml,
                         all_of(Kind::kNumber, {"0", "-1", "+1", "1.5", ".5", "1.", "1e3", "0x1F", "0o7",
                                                ".inf", "-.inf", ".nan"}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(String, PlainYaml,
                         all_of(Kind::kString, {"on", "yes", "no", "1_000", "1:30", "2020-01-01", "10ms",
                                                "'1'", "\"true\"", "e3", "0x"}),
                         rows::by_text);

TEST(Document, TellsJsonByNameOrFirstCharacter) {
  EXPECT_EQ(read_document("a.yaml", "{\"a\": 1}").root().kind, Kind::kMapping);
  EXPECT_EQ(error_of([] { read_document("a.json", "a: 1"); }).substr(0, 26), "a.json:1:1: not valid JSON");
  EXPECT_NE(error_of([] { read_document("a.yaml", " {a: 1}"); }).find("begins with '{'"), std::string::npos);
}

TEST(Document, BoundsDepthInBothFormats) {
  const std::string open(kMaxDepth, '[');
  const std::string close(kMaxDepth, ']');
  EXPECT_NO_THROW(read_document("a.json", open + close));
  EXPECT_NO_THROW(read_document("a.yaml", open + close));
  EXPECT_NE(error_of([&] { read_document("a.json", "[" + open + close + "]"); }).find("nested"),
            std::string::npos);
  EXPECT_NE(error_of([&] { read_document("a.yaml", "[" + open + close + "]"); }).find("nested"),
            std::string::npos);
}

class DeepDocument : public testing::TestWithParam<const char*> {};

TEST_P(DeepDocument, IsRefusedWhateverItIsMadeOf) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += GetParam();
  EXPECT_THROW(read_document("a.yaml", deep), InputError);
  EXPECT_THROW(read_document("a.json", deep), InputError);
}

INSTANTIATE_TEST_SUITE_P(, DeepDocument,
                         testing::Values("[", "{", "- ", "? ", "{a: ", "- - ", "[[a]: ", "!a "),
                         rows::by_itself);

TEST(Document, BoundsTheNumberOfValues) {
  std::string many = "[";
  for (std::size_t i = 0; i < kMaxValues; ++i) many += "1,";
  many += "1]";
  EXPECT_NE(error_of([&] { read_document("a.json", many); }).find("more than 1000000 values"),
            std::string::npos);
}

TEST(Document, BoundsTheSizeOfAFile) {
  EXPECT_NE(error_of([] { read_document("a.yaml", std::string(kMaxFileBytes + 1, '#')); }).find("16 MiB"),
            std::string::npos);
  EXPECT_EQ(read_document("a.yaml", std::string(kMaxFileBytes, '#')).root().kind, Kind::kNull);
}

TEST(Document, RefusesUnterminatedStringsInOneShortLine) {
  const std::string line =
      error_of([] { read_document("a.json", "{\"" + std::string(1'000'000, 'x') + "\n"); });
  EXPECT_LT(line.size(), 400U);
  EXPECT_EQ(line.find('\n'), std::string::npos);
}

TEST(InputErrorText, IsOneLineWhateverIsQuoted) {
  EXPECT_STREQ(InputError("f\n:1:1: x").what(), "f\\x0a:1:1: x");
}

}  // namespace
}  // namespace perflab::graph
