// Every file of tests/data/graphs: good ones survive a round trip through resolved JSON, bad ones are refused
// with the line in <file>.expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

#include "graph/resolved.h"
#include "message/definitions.h"
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

std::vector<Path> files_of(const std::string& folder) {
  std::vector<Path> files;
  for (const auto& entry : std::filesystem::directory_iterator(test::source_dir() / folder)) {
    const Path extension = entry.path().extension();
    if (extension == ".yaml" || extension == ".json") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::ranges::replace_if(
      name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
}

TEST(Figures, KeepTheOrderOfTheFile) {
  const Graph graph = parse_graph({read_file(test::source_dir() / "tests/data/graphs/good/program.yaml")});
  const nlohmann::ordered_json resolved = graph_to_json(graph);
  std::vector<std::string> names;
  for (const auto& [name, figure] : resolved.at("own_figures").items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"planning", "overruns", "success", "control_loop"}));
}

// One test covers all files of a folder: ctest starts a process per test, which takes longer than parsing a
// file.
template <typename Check>
void for_each_file(const std::string& folder, Check&& check) {
  const std::vector<Path> files = files_of(folder);
  EXPECT_FALSE(files.empty());
  for (const Path& file : files) {
    SCOPED_TRACE(file);
    check(file);
  }
}

class GoodFiles : public testing::TestWithParam<std::string> {};

TEST_P(GoodFiles, SurviveTheWayThroughTheResolvedGraph) {
  for_each_file(GetParam(), [](const Path& file) {
    Graph graph;
    ASSERT_NO_THROW(graph = parse_graph({read_file(file)}));
    const std::string resolved = graph_to_json(graph).dump();
    // The order of figures only matters for tables; readers of the resolved graph do not preserve it.
    EXPECT_EQ(nlohmann::json(graph_to_json(read_resolved(resolved))), nlohmann::json::parse(resolved));
  });
}

INSTANTIATE_TEST_SUITE_P(Corpus, GoodFiles,
                         testing::Values("tests/data/graphs/good", "tests/data/graphs/irobot/good",
                                         "catalog/topologies", "catalog/topologies/examples"),
                         test_name);

class BadFiles : public testing::TestWithParam<std::string> {};

TEST_P(BadFiles, AreRefusedWithTheExpectedLine) {
  for_each_file(GetParam(), [](const Path& file) {
    Input input = read_file(file);
    input.label = file.filename();
    EXPECT_EQ(test::error_of([&] { parse_graph({input}); }) + "\n", contents(file.string() + ".expected"));
  });
}

INSTANTIATE_TEST_SUITE_P(Corpus, BadFiles,
                         testing::Values("tests/data/graphs/bad/structure", "tests/data/graphs/bad/syntax",
                                         "tests/data/graphs/bad/meaning", "tests/data/graphs/irobot/bad"),
                         test_name);

// No folder is forgotten.
TEST(Corpus, IsInTheFoldersThatAreNamed) {
  std::set<std::string> folders;
  for (const char* const root : {"tests/data/graphs", "catalog/topologies"}) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(test::source_dir() / root)) {
      if (entry.path().extension() == ".yaml" || entry.path().extension() == ".json")
        folders.insert(entry.path().parent_path().lexically_relative(test::source_dir()).string());
    }
  }
  EXPECT_EQ(folders,
            (std::set<std::string>{"catalog/topologies", "catalog/topologies/examples", "tests/data/graphs/bad/meaning",
                                   "tests/data/graphs/bad/structure", "tests/data/graphs/bad/syntax",
                                   "tests/data/graphs/good", "tests/data/graphs/irobot/bad",
                                   "tests/data/graphs/irobot/good"}));
}

// With the types in the file's folder.
Graph parse_with_messages(const Path& path) {
  auto library = std::make_shared<message::Library>(message::brought());
  library->add_folder(path.parent_path());
  Input input = read_file(path);
  input.label = path.filename();
  return parse_graph({input}, std::make_shared<message::Formats>(std::move(library)));
}

// The reading process needs no file.
TEST(GoodMessages, GoWithTheResolvedGraph) {
  const std::vector<Path> files = files_of("tests/data/graphs_with_messages/good");
  ASSERT_EQ(files.size(), 1U);
  const Graph graph = parse_with_messages(files[0]);
  const nlohmann::json resolved = graph_to_json(graph);
  const Graph again = read_resolved(resolved.dump());
  EXPECT_EQ(nlohmann::json(graph_to_json(again)), resolved);
  std::vector<std::string> names;
  for (const auto& [name, text] : resolved.at("interfaces").items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"my_msgs/msg/Part", "my_msgs/msg/Scan", "my_msgs/srv/Ask"}));
  EXPECT_EQ(again.processes[0].nodes[0].publishers[0].length, 10'000U);
  EXPECT_GT(again.processes[0].nodes[0].publishers[0].size_bytes, 10'000U);
}

TEST(WrongMessages, AreRefusedWithTheExpectedLine) {
  for_each_file("tests/data/graphs_with_messages/wrong", [](const Path& file) {
    std::string line = test::error_of([&] { parse_with_messages(file); });
    const std::string folder = file.parent_path().string() + "/";
    for (std::size_t at = line.find(folder); at != std::string::npos; at = line.find(folder))
      line.erase(at, folder.size());
    EXPECT_EQ(line + "\n", contents(file.string() + ".expected"));
  });
}

}  // namespace
}  // namespace perflab::graph
