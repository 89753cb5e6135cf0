// Every file of tests/data/graphs: good ones survive the way through the resolved JSON, bad ones are refused
// with the line that stands beside them in <file>.expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "graph/resolved.h"
#include "support.h"

namespace perflab::graph {
namespace {

using Path = std::filesystem::path;

std::string contents(const Path& path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

std::vector<Path> files_below(const std::vector<std::string>& folders) {
  std::vector<Path> files;
  for (const std::string& folder : folders) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source_dir() / folder)) {
      const Path extension = entry.path().extension();
      if (extension == ".yaml" || extension == ".json") files.push_back(entry.path());
    }
  }
  std::ranges::sort(files);
  return files;
}

std::string test_name(const testing::TestParamInfo<Path>& info) {
  std::string name = std::filesystem::relative(info.param, test::source_dir()).string();
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

class GoodFile : public testing::TestWithParam<Path> {};

TEST_P(GoodFile, SurvivesTheWayThroughTheResolvedGraph) {
  const Graph graph = parse_graph({read_file(GetParam())});
  const std::string resolved = graph_to_json(graph).dump();
  EXPECT_EQ(graph_to_json(read_resolved(resolved)).dump(), resolved);
}

INSTANTIATE_TEST_SUITE_P(Corpus, GoodFile,
                         testing::ValuesIn(files_below({"tests/data/graphs/good",
                                                        "tests/data/graphs/irobot/good",
                                                        "catalog/topologies"})),
                         test_name);

class BadFile : public testing::TestWithParam<Path> {};

TEST_P(BadFile, IsRefusedWithTheExpectedLine) {
  Input input = read_file(GetParam());
  input.label = GetParam().filename();
  EXPECT_EQ(test::error_of([&] { parse_graph({input}); }) + "\n",
            contents(GetParam().string() + ".expected"));
}

INSTANTIATE_TEST_SUITE_P(
    Corpus, BadFile,
    testing::ValuesIn(files_below({"tests/data/graphs/bad", "tests/data/graphs/irobot/bad"})), test_name);

}  // namespace
}  // namespace perflab::graph
