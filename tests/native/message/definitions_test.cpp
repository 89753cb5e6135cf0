// What perflab brings: it is what lies in the repository, and the types of performance_test have its sizes.

#include "message/definitions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace perflab::message {
namespace {

namespace fs = std::filesystem;

std::string name_of(const InterfaceText& text) {
  std::string name(text.package);
  return name.append("/").append(text.kind).append("/").append(text.name);
}

// The interface files below a folder of the repository by their names.
std::map<std::string, std::string> files_below(const std::string& folder) {
  std::map<std::string, std::string> files;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(fs::path(PERFLAB_REPOSITORY) / folder)) {
    const fs::path& path = entry.path();
    const std::string kind = path.extension().string();
    if (kind != ".msg" && kind != ".srv" && kind != ".action") continue;
    const fs::path package = path.parent_path().parent_path().filename();
    std::ifstream in(path, std::ios::binary);
    const std::string text(std::istreambuf_iterator<char>(in), {});
    files.emplace((package / path.parent_path().filename() / path.stem()).string(), text);
  }
  return files;
}

const std::map<std::string, std::string>& texts() {
  static const std::map<std::string, std::string> all = [] {
    std::map<std::string, std::string> by_name;
    for (const InterfaceText& text : brought()) by_name.emplace(name_of(text), text.text);
    return by_name;
  }();
  return all;
}

TEST(Brought, IsEveryFileOfTheRepositoryByteForByte) {
  std::map<std::string, std::string> files = files_below("catalog/messages");
  files.merge(files_below("ros/perflab_msgs"));
  EXPECT_EQ(brought().size(), files.size());
  EXPECT_EQ(texts(), files);
}

// --- types
// ----------------------------------------------------------------------------------------------

struct Member {
  std::string type;  // "uint8", "perflab_msgs/msg/Struct16"
  std::size_t count = 1;
  bool varies = false;  // a sequence or a text
};

// Bytes of one value; 0 where they vary.
const std::map<std::string, std::size_t> kPrimitives{
    {"bool", 1},   {"byte", 1},    {"char", 1},    {"uint8", 1},  {"int8", 1},
    {"uint16", 2}, {"int16", 2},   {"uint32", 4},  {"int32", 4},  {"uint64", 8},
    {"int64", 8},  {"float32", 4}, {"float64", 8}, {"string", 0}, {"wstring", 0}};

// The fields of an interface, of all its parts.
std::vector<Member> members_of(const std::string& interface) {
  const std::string package = interface.substr(0, interface.find('/'));
  std::vector<Member> found;
  std::istringstream lines(texts().at(interface));
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string type;
    if (!(words >> type) || type == "---") continue;
    if (line.find('=', line.find(' ')) != std::string::npos) continue;  // a constant
    Member member;
    const std::size_t bracket = std::min(type.find('['), type.size());
    const std::string count = type.substr(bracket);
    if (!count.empty()) {
      member.varies = count.starts_with("[]") || count.starts_with("[<=");
      if (!member.varies) member.count = std::stoul(count.substr(1));
    }
    type.resize(std::min(bracket, type.find('<')));
    const std::size_t slash = type.find('/');
    if (kPrimitives.contains(type)) {
      member.varies = member.varies || kPrimitives.at(type) == 0;
      member.type = type;
    } else if (slash == std::string::npos) {
      member.type = package + "/msg/" + type;
    } else {
      member.type = type.substr(0, slash) + "/msg" + type.substr(slash);
    }
    found.push_back(member);
  }
  return found;
}

TEST(Brought, KnowsEveryTypeThatItNames) {
  for (const auto& [name, _] : texts()) {
    for (const Member& member : members_of(name)) {
      EXPECT_TRUE(kPrimitives.contains(member.type) || texts().contains(member.type))
          << member.type << " in " << name;
    }
  }
}

// --- sizes
// ----------------------------------------------------------------------------------------------

struct Layout {
  std::size_t bytes = 0;
  std::size_t alignment = 1;
};

// In memory, as C lays out a struct with these members.
Layout layout_of(const std::string& name) {
  Layout layout;
  const auto round_up = [](std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; };
  for (const Member& member : members_of(name)) {
    if (member.varies) throw std::invalid_argument(name + " has no size of its own");
    const auto primitive = kPrimitives.find(member.type);
    const Layout one = primitive == kPrimitives.end() ? layout_of(member.type)
                                                      : Layout{primitive->second, primitive->second};
    layout.bytes = round_up(layout.bytes, one.alignment) + one.bytes * member.count;
    layout.alignment = std::max(layout.alignment, one.alignment);
  }
  layout.bytes = round_up(layout.bytes, layout.alignment);
  return layout;
}

// Sizes of performance_test 2.3.0, and of 1.3.6 for the last four.
const std::map<std::string, std::size_t> kSizes{
    {"Array32", 32},           {"Array64", 64},           {"Array128", 128},
    {"Array256", 256},         {"Array512", 512},         {"Array1k", 1024},
    {"Array4k", 4096},         {"Array16k", 16384},       {"Array32k", 32768},
    {"Array60k", 61440},       {"Array64k", 65536},       {"Array256k", 262144},
    {"Array1m", 1048576},      {"Array2m", 2097152},      {"Array4m", 4194304},
    {"Array8m", 8388608},      {"Struct16", 32},          {"Struct256", 528},
    {"Struct4k", 8464},        {"Struct32k", 67728},      {"PointCloud512k", 526736},
    {"PointCloud1m", 1051024}, {"PointCloud2m", 2099600}, {"PointCloud4m", 4196752},
    {"PointCloud8m", 8391056}, {"NavSatFix", 392},        {"RadarDetection", 80},
    {"RadarTrack", 840},       {"Range", 304}};

TEST(TypesOfPerformanceTest, HaveItsSizes) {
  for (const auto& [name, bytes] : kSizes) {
    EXPECT_EQ(layout_of("perflab_msgs/msg/" + name).bytes, bytes) << name;
  }
}

TEST(TypesOfPerformanceTest, WithAKeyHaveTheSizesOfTheirNames) {
  EXPECT_EQ(layout_of("perflab_msgs/msg/KeyedArray1k").bytes, 1024u);
  EXPECT_EQ(layout_of("perflab_msgs/msg/KeyedArray64k").bytes, 65536u);
  EXPECT_EQ(layout_of("perflab_msgs/msg/KeyedArray1m").bytes, 1048576u);
}

TEST(TypesOfPerformanceTest, HaveSequencesOfTheLengthsOfTheirNames) {
  const std::map<std::string, std::string> bounds{
      {"1k", "1024"},     {"4k", "4096"},    {"16k", "16384"},  {"32k", "32768"},  {"64k", "65536"},
      {"256k", "262144"}, {"1m", "1048576"}, {"2m", "2097152"}, {"4m", "4194304"}, {"8m", "8388608"}};
  for (const auto& [name, bound] : bounds) {
    EXPECT_EQ(texts().at("perflab_msgs/msg/BoundedSequence" + name),
              "uint8[<=" + bound + "] array\nint64 time\nuint64 id\n");
  }
  EXPECT_EQ(texts().at("perflab_msgs/msg/UnboundedSequence"), "uint8[] array\nint64 time\nuint64 id\n");
  EXPECT_EQ(texts().at("perflab_msgs/msg/UnboundedString"), "string array\nint64 time\nuint64 id\n");
}

}  // namespace
}  // namespace perflab::message
