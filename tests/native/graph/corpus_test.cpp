// Every file of tests/data/graphs: good ones survive the way through the resolved JSON, bad ones are refused
// with the line that stands beside them in <file>.expected.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
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
  // The order of figures is for tables alone; readers of the resolved graph do not keep it.
  EXPECT_EQ(nlohmann::json(graph_to_json(read_resolved(resolved))), nlohmann::json::parse(resolved));
}

TEST(Figures, KeepTheOrderOfTheFile) {
  const Graph graph = parse_graph({read_file(test::source_dir() / "tests/data/graphs/good/program.yaml")});
  const nlohmann::ordered_json resolved = graph_to_json(graph);
  std::vector<std::string> names;
  for (const auto& [name, figure] : resolved.at("own_figures").items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"planning", "overruns", "success", "control_loop"}));
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

// With the types of the folder that the file is in.
Graph parse_with_messages(const Path& path) {
  auto library = std::make_shared<message::Library>(message::brought());
  library->add_folder(path.parent_path());
  Input input = read_file(path);
  input.label = path.filename();
  return parse_graph({input}, std::make_shared<message::Formats>(std::move(library)));
}

class GoodMessages : public testing::TestWithParam<Path> {};

// The process that reads it needs no file.
TEST_P(GoodMessages, GoWithTheResolvedGraph) {
  const Graph graph = parse_with_messages(GetParam());
  const nlohmann::json resolved = graph_to_json(graph);
  const Graph again = read_resolved(resolved.dump());
  EXPECT_EQ(nlohmann::json(graph_to_json(again)), resolved);
  std::vector<std::string> names;
  for (const auto& [name, text] : resolved.at("interfaces").items()) names.push_back(name);
  EXPECT_EQ(names, (std::vector<std::string>{"my_msgs/msg/Part", "my_msgs/msg/Scan", "my_msgs/srv/Ask"}));
  EXPECT_EQ(again.processes[0].nodes[0].publishers[0].length, 10'000U);
  EXPECT_GT(again.processes[0].nodes[0].publishers[0].size_bytes, 10'000U);
}

INSTANTIATE_TEST_SUITE_P(Corpus, GoodMessages,
                         testing::ValuesIn(files_below({"tests/data/graphs_with_messages/good"})), test_name);

class WrongMessages : public testing::TestWithParam<Path> {};

TEST_P(WrongMessages, AreRefusedWithTheExpectedLine) {
  std::string line = test::error_of([&] { parse_with_messages(GetParam()); });
  const std::string folder = GetParam().parent_path().string() + "/";
  for (std::size_t at = line.find(folder); at != std::string::npos; at = line.find(folder))
    line.erase(at, folder.size());
  EXPECT_EQ(line + "\n", contents(GetParam().string() + ".expected"));
}

INSTANTIATE_TEST_SUITE_P(Corpus, WrongMessages,
                         testing::ValuesIn(files_below({"tests/data/graphs_with_messages/wrong"})), test_name);

}  // namespace
}  // namespace perflab::graph
