#include "graph/names.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "../rows.h"

namespace perflab::graph {
namespace {

struct QualifiedTopic {
  std::string text;
  std::string node_namespace;
  std::string expected;
};
class TopicOfANode : public testing::TestWithParam<QualifiedTopic> {};

TEST_P(TopicOfANode, IsQualifiedByTheRulesOfRos2) {
  EXPECT_EQ(qualify_topic(GetParam().text, GetParam().node_namespace, "arm"), GetParam().expected);
}

INSTANTIATE_TEST_SUITE_P(InTheRoot, TopicOfANode,
                         rows::of<QualifiedTopic>({{"amazon", "/", "/amazon"},
                                                   {"~/amazon", "/", "/arm/amazon"}}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(InANamespace, TopicOfANode,
                         rows::of<QualifiedTopic>({{"amazon", "/robot", "/robot/amazon"},
                                                   {"left/amazon", "/robot", "/robot/left/amazon"},
                                                   {"/amazon", "/robot", "/amazon"},
                                                   {"~/amazon", "/robot", "/robot/arm/amazon"}}),
                         rows::by_text);

// A name, and the function that checks it.
struct Given {
  std::string (*problem)(std::string_view);
  std::string text;
  bool right;
};
using Names = std::initializer_list<std::string>;

auto right(std::string (*problem)(std::string_view), Names texts) {
  std::vector<Given> rows;
  for (const std::string& text : texts) rows.push_back({problem, text, true});
  return testing::ValuesIn(rows);
}
auto wrong(std::string (*problem)(std::string_view), Names texts) {
  std::vector<Given> rows;
  for (const std::string& text : texts) rows.push_back({problem, text, false});
  return testing::ValuesIn(rows);
}

class Name : public testing::TestWithParam<Given> {};

TEST_P(Name, IsRefusedWhereItIsWrong) {
  const std::string problem = GetParam().problem(GetParam().text);
  EXPECT_EQ(problem.empty(), GetParam().right) << problem;
}

// By the rules of ROS 2.
INSTANTIATE_TEST_SUITE_P(RightTopic, Name, right(topic_problem, {"a", "/a", "~/a", "a_1/B__2", "_a", "/a/_"}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(WrongTopic, Name,
                         wrong(topic_problem, {"", "/", "~", "~/", "~a", "a/", "a//b", "//a", "1a", "a/1",
                                               "a b", "a-b", "a.b", "{node}/a", "a/~/b", "\xc3\xa9", "a\n"}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(RightQualifiedTopic, Name,
                         right(qualified_topic_problem, {"/" + std::string(246, 'a')}), rows::by_text);
INSTANTIATE_TEST_SUITE_P(WrongQualifiedTopic, Name,
                         wrong(qualified_topic_problem, {"/" + std::string(247, 'a'), "a"}), rows::by_text);
INSTANTIATE_TEST_SUITE_P(RightService, Name, right(service_problem, {"add", "/add", "~/add", "a/b_1"}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(WrongService, Name, wrong(service_problem, {"", "a//b"}), rows::by_text);
// Shorter than topics, because suffixes are added on the wire.
INSTANTIATE_TEST_SUITE_P(RightQualifiedService, Name,
                         right(qualified_service_problem, {"/" + std::string(245, 'a')}), rows::by_text);
INSTANTIATE_TEST_SUITE_P(WrongQualifiedService, Name,
                         wrong(qualified_service_problem, {"/" + std::string(246, 'a'), "a"}), rows::by_text);
INSTANTIATE_TEST_SUITE_P(RightNamespace, Name, right(namespace_problem, {"/", "/robot/left"}), rows::by_text);
INSTANTIATE_TEST_SUITE_P(WrongNamespace, Name,
                         wrong(namespace_problem, {"", "robot", "/robot/", "/robot//left", "/2", "/a-b"}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(RightNode, Name,
                         right(node_name_problem, {"a", "_a", "node_1", "A2", std::string(255, 'a')}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(WrongNode, Name,
                         wrong(node_name_problem,
                               {"", "1a", "a/b", "a b", "a-b", "~", std::string(256, 'a')}),
                         rows::by_text);
const Names kNoFiles{"", ".", "..", ".hidden", "a/b", "-a", "a b", "\xc3\xa9"};
INSTANTIATE_TEST_SUITE_P(RightFile, Name, right(file_name_problem, {"a", "sierra_nevada", "a+b", "1.5-x"}),
                         rows::by_text);
INSTANTIATE_TEST_SUITE_P(WrongFile, Name, wrong(file_name_problem, kNoFiles), rows::by_text);

TEST(Service, SaysWhatIsWrong) {
  EXPECT_EQ(service_problem(""), "service is empty; give it a name");
  EXPECT_EQ(service_problem("a//b"), "service 'a//b' has two slashes in a row; remove one");
  EXPECT_EQ(qualified_service_problem("a"), "service 'a' does not begin with '/'");
}

struct Made {
  std::string text;
  std::string expected;
};
class Namespace : public testing::TestWithParam<Made> {};

TEST_P(Namespace, MayLackItsSlash) { EXPECT_EQ(qualify_namespace(GetParam().text), GetParam().expected); }

INSTANTIATE_TEST_SUITE_P(
    , Namespace, rows::of<Made>({{"", "/"}, {"/", "/"}, {"robot", "/robot"}, {"/robot/left", "/robot/left"}}),
    rows::by_text);

// A file name cannot leave its directory, whatever its source.
class FileName : public testing::TestWithParam<std::string> {};

TEST_P(FileName, CanBeMadeOfAnyText) { EXPECT_EQ(file_name_problem(as_file_name(GetParam())), ""); }

INSTANTIATE_TEST_SUITE_P(, FileName, testing::ValuesIn(kNoFiles), rows::by_itself);
INSTANTIATE_TEST_SUITE_P(Long, FileName, testing::Values(std::string(300, '/')), rows::by_itself);

TEST(FileNameOfText, IsLikeIt) {
  EXPECT_EQ(as_file_name("my graph"), "my_graph");
  EXPECT_EQ(as_file_name(""), "graph");
}

}  // namespace
}  // namespace perflab::graph
