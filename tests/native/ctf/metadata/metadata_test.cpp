// Every file of tests/data/ctf/metadata: what good ones say is in FILE.expected, and so is the line with
// which bad ones are refused. With PERFLAB_UPDATE_EXPECTED set, the files of expected results are written
// anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "describe.h"

namespace perflab::ctf {
namespace {

using Path = std::filesystem::path;

std::string contents(const Path& path) {
  std::ifstream stream(path, std::ios::binary);
  EXPECT_TRUE(stream) << path;
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<Path> cases(const char* folder) {
  std::vector<Path> files;
  const Path root = Path(PERFLAB_SOURCE_DIR) / "tests/data/ctf/metadata" / folder;
  for (const auto& entry : std::filesystem::directory_iterator(root)) {
    if (entry.path().extension() == ".tsdl") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void compare(const Path& file, const std::string& actual) {
  Path expected = file;
  expected.replace_extension(".expected");
  if (std::getenv("PERFLAB_UPDATE_EXPECTED") != nullptr) std::ofstream(expected, std::ios::binary) << actual;
  EXPECT_EQ(actual, contents(expected)) << file;
}

TEST(Metadata, SaysWhatGoodTextSays) {
  const auto files = cases("good");
  EXPECT_GE(files.size(), 40U);
  for (const auto& file : files) {
    try {
      compare(file, testing::describe(parse_metadata(contents(file), file.filename().string())));
    } catch (const MetadataError& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST(Metadata, RefusesBadTextInOneLine) {
  const auto files = cases("bad");
  EXPECT_GE(files.size(), 60U);
  for (const auto& file : files) {
    try {
      (void)parse_metadata(contents(file), file.filename().string());
      ADD_FAILURE() << file << " was accepted";
    } catch (const MetadataError& error) {
      const std::string line = error.what();
      EXPECT_EQ(line.find('\n'), std::string::npos) << file;
      compare(file, line + "\n");
    }
  }
}

// Cutting a text anywhere, or taking a line out, is refused or understood, and never ends in anything but
// MetadataError.
TEST(Metadata, SurvivesDamagedText) {
  for (const auto& file : cases("good")) {
    const std::string text = contents(file);
    for (std::size_t length = 0; length < text.size(); ++length) {
      try {
        (void)parse_metadata(std::string_view(text).substr(0, length), "cut");
      } catch (const MetadataError& error) {
        EXPECT_TRUE(std::string(error.what()).starts_with("cut:")) << error.what();
      }
    }
  }
}

TEST(Metadata, EnvironmentTextIsTextOfNumbersToo) {
  const Metadata metadata = parse_metadata(
      "trace { major = 1; minor = 8; byte_order = le; }; env { hostname = \"lab\"; tracer_major = 2; };",
      "m");
  EXPECT_EQ(metadata.environment_text("hostname"), "lab");
  EXPECT_EQ(metadata.environment_text("tracer_major"), "2");
  EXPECT_EQ(metadata.environment_text("domain"), std::nullopt);
}

TEST(Metadata, TypesThatAreTheSameInAllPlacesAreShared) {
  const Metadata metadata = parse_metadata(
      "typealias integer { size = 8; } := byte; struct pair { byte a; byte b; };"
      "trace { major = 1; minor = 8; byte_order = le; };"
      "event { fields := struct { struct pair x; struct pair y[3]; }; };",
      "m");
  const auto& payload = std::get<Structure>(metadata.streams.at(0).events.at(0)->payload->kind);
  EXPECT_EQ(payload.fields[0].type, std::get<Array>(payload.fields[1].type->kind).element);
}

// A hundred kilobytes of declarations, each used once, take no noticeable time: names are looked up, not
// searched.
TEST(Metadata, ManyEventsAreAllThere) {
  std::string text =
      "typealias integer { size = 8; align = 8; } := byte;"
      "trace { major = 1; minor = 8; byte_order = le; };"
      "stream { event.header := struct { integer { size = 16; } id; }; };";
  for (int i = 0; i < 2000; ++i) {
    text += "event { name = \"e" + std::to_string(i) + "\"; id = " + std::to_string(i) +
            "; fields := struct { byte n; byte data[n]; }; };";
  }
  const Metadata metadata = parse_metadata(text, "m");
  ASSERT_EQ(metadata.streams.at(0).events.size(), 2000U);
  EXPECT_EQ(metadata.streams.at(0).events.at(1999)->name, "e1999");
}

TEST(Metadata, AFileThatIsNotThereIsNamed) {
  try {
    (void)read_metadata("/nowhere/metadata");
    FAIL();
  } catch (const MetadataError& error) {
    EXPECT_STREQ(error.what(), "/nowhere/metadata: cannot be opened: No such file or directory");
  }
}

}  // namespace
}  // namespace perflab::ctf
