#include "graph/names.h"

#include <gtest/gtest.h>

#include <string>

namespace perflab::graph {
namespace {

TEST(Topic, IsQualifiedByTheRulesOfRos2) {
  EXPECT_EQ(qualify_topic("amazon", "/", "arm"), "/amazon");
  EXPECT_EQ(qualify_topic("amazon", "/robot", "arm"), "/robot/amazon");
  EXPECT_EQ(qualify_topic("left/amazon", "/robot", "arm"), "/robot/left/amazon");
  EXPECT_EQ(qualify_topic("/amazon", "/robot", "arm"), "/amazon");
  EXPECT_EQ(qualify_topic("~/amazon", "/robot", "arm"), "/robot/arm/amazon");
  EXPECT_EQ(qualify_topic("~/amazon", "/", "arm"), "/arm/amazon");
}

TEST(Topic, IsValidOrNotByTheRulesOfRos2) {
  for (const char* topic : {"a", "/a", "~/a", "a_1/B__2", "_a", "/a/_"})
    EXPECT_EQ(topic_problem(topic), "") << topic;
  for (const char* topic : {"", "/", "~", "~/", "~a", "a/", "a//b", "//a", "1a", "a/1", "a b", "a-b", "a.b",
                            "{node}/a", "a/~/b", "\xc3\xa9", "a\n"}) {
    EXPECT_NE(topic_problem(topic), "") << topic;
  }
  EXPECT_EQ(qualified_topic_problem("/" + std::string(246, 'a')), "");
  EXPECT_NE(qualified_topic_problem("/" + std::string(247, 'a')), "");
  EXPECT_NE(qualified_topic_problem("a"), "");
}

TEST(Service, IsNamedLikeATopicButShorter) {
  for (const char* service : {"add", "/add", "~/add", "a/b_1"})
    EXPECT_EQ(service_problem(service), "") << service;
  EXPECT_EQ(service_problem(""), "service is empty; give it a name");
  EXPECT_EQ(service_problem("a//b"), "service 'a//b' has two slashes in a row; remove one");
  EXPECT_EQ(qualified_service_problem("/" + std::string(245, 'a')), "");
  EXPECT_NE(qualified_service_problem("/" + std::string(246, 'a')), "");
  EXPECT_EQ(qualified_service_problem("a"), "service 'a' does not begin with '/'");
}

TEST(Namespace, MayLackItsSlash) {
  EXPECT_EQ(qualify_namespace(""), "/");
  EXPECT_EQ(qualify_namespace("/"), "/");
  EXPECT_EQ(qualify_namespace("robot"), "/robot");
  EXPECT_EQ(qualify_namespace("/robot/left"), "/robot/left");
  EXPECT_EQ(namespace_problem("/"), "");
  EXPECT_EQ(namespace_problem("/robot/left"), "");
  for (const char* name : {"", "robot", "/robot/", "/robot//left", "/2", "/a-b"}) {
    EXPECT_NE(namespace_problem(name), "") << name;
  }
}

TEST(NodeName, HasLettersDigitsAndUnderscores) {
  for (const char* name : {"a", "_a", "node_1", "A2"}) EXPECT_EQ(node_name_problem(name), "") << name;
  for (const char* name : {"", "1a", "a/b", "a b", "a-b", "~"})
    EXPECT_NE(node_name_problem(name), "") << name;
  EXPECT_EQ(node_name_problem(std::string(255, 'a')), "");
  EXPECT_NE(node_name_problem(std::string(256, 'a')), "");
}

TEST(FileName, CannotLeaveItsDirectory) {
  for (const char* name : {"a", "sierra_nevada", "a+b", "1.5-x"})
    EXPECT_EQ(file_name_problem(name), "") << name;
  for (const char* name : {"", ".", "..", ".hidden", "a/b", "-a", "a b", "\xc3\xa9"}) {
    EXPECT_NE(file_name_problem(name), "") << name;
    EXPECT_EQ(file_name_problem(as_file_name(name)), "") << name;
  }
  EXPECT_EQ(as_file_name("my graph"), "my_graph");
  EXPECT_EQ(as_file_name(""), "graph");
  EXPECT_EQ(file_name_problem(as_file_name(std::string(300, '/'))), "");
}

}  // namespace
}  // namespace perflab::graph
