// Announced types of endpoints, and differences between them, on each middleware that connects processes.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "domain_lock.h"
#include "eventually.h"
#include "side.h"

namespace perflab::graph {
namespace {

using conformance::DomainLock;
using conformance::eventually;
using Lines = std::vector<std::string>;

constexpr const char* kTopics = R"(
name: pair
processes:
  - {name: a, nodes: [{name: talker, publishers: [{topic: chatter, type: TYPE, size: 64, period: 10ms}]}]}
  - {name: b, nodes: [{name: listener, subscriptions: [{topic: chatter, type: TYPE}]}]}
)";
constexpr const char* kServices = R"(
name: call
processes:
  - {name: a, nodes: [{name: caller, clients: [{service: ask, type: TYPE, period: 10ms}]}]}
  - {name: b, nodes: [{name: callee, servers: [{service: ask, type: TYPE}]}]}
)";

class TypesElsewhere : public testing::TestWithParam<std::string> {
 protected:
  std::unique_ptr<Side> side(const std::string& yaml, const std::string& type, const std::string& definition,
                             std::size_t process) {
    return std::make_unique<Side>(plugin_, domain_.id(), yaml, type, definition, process);
  }
  // What a participant without endpoints discovers on a topic: "type user data" each.
  Lines seen(const std::string& topic) {
    Lines lines;
    for (const auto& one : observer_.remote_endpoints()) {
      if (one.topic == topic) lines.push_back(one.type + " " + one.user_data);
    }
    return lines;
  }
  static Lines differences(Side& side) { return side.live().type_differences(); }

  DomainLock domain_;
  measure::MonotonicClock clock_;
  perflab_host host_{[](void* clock) { return static_cast<measure::MonotonicClock*>(clock)->now(); }, nullptr, &clock_};
  middleware::Plugin plugin_ = middleware::Plugin::load(GetParam());
  middleware::Participant observer_ = plugin_.open(host_, {.domain = domain_.id(), .participants_expected = 4});
};

TEST_P(TypesElsewhere, AreToldInUserDataAsTheMiddlewaresOfRosTellThem) {
  const auto talker = side(kTopics, "std_msgs/msg/ByteMultiArray", "byte[] data\n", 0);
  const std::string hash = talker->hash("std_msgs/msg/ByteMultiArray");
  ASSERT_EQ(hash.size(), std::string("RIHS01_").size() + 64);
  const Lines expected{"std_msgs::msg::dds_::ByteMultiArray_ typehash=" + hash + ";"};
  EXPECT_TRUE(eventually([&] { return seen("rt/chatter") == expected; }));
  // Each message of a service has its own hash; the client's own user data come first.
  const auto caller = side(kServices, "my_msgs/srv/Ask", "perflab_msgs/Header header\n---\nperflab_msgs/Header header\n", 0);
  EXPECT_TRUE(eventually([&] { return seen("rq/askRequest").size() == 1 && seen("rr/askReply").size() == 1; }));
  for (const auto& [topic, message] : {std::pair{"rq/askRequest", "Request"}, std::pair{"rr/askReply", "Response"}}) {
    const Lines lines = seen(topic);
    ASSERT_EQ(lines.size(), 1u);
    const std::string type = std::string("my_msgs::srv::dds_::Ask_") + message + "_ clientid=";
    EXPECT_TRUE(lines[0].starts_with(type)) << lines[0];
    const std::string told = ";typehash=" + caller->hash(std::string("my_msgs/srv/Ask_") + message) + ";";
    EXPECT_TRUE(lines[0].ends_with(told)) << lines[0];
  }
}

TEST_P(TypesElsewhere, OfTheSameDefinitionMatchWithoutAWord) {
  const auto talker = side(kTopics, "my_msgs/msg/Pair", "byte[] data\n", 0);
  const auto listener = side(kTopics, "my_msgs/msg/Pair", "byte[] data  # another comment\n", 1);
  EXPECT_TRUE(eventually([&] { return talker->live().unmatched().empty() && listener->live().unmatched().empty(); }));
  EXPECT_EQ(differences(*talker), Lines());
  EXPECT_EQ(differences(*listener), Lines());
}

TEST_P(TypesElsewhere, OfTheSameNameAndAnotherDefinitionAreNamedWithBothHashes) {
  const auto talker = side(kTopics, "my_msgs/msg/Pair", "byte[] data\n", 0);
  const auto listener = side(kTopics, "my_msgs/msg/Pair", "byte[] content\n", 1);
  const std::string here = talker->hash("my_msgs/msg/Pair"), there = listener->hash("my_msgs/msg/Pair");
  ASSERT_NE(here, there);
  const auto line = [](const std::string& ours, const std::string& theirs, const char* who) {
    return Lines{"topic /chatter: my_msgs/msg/Pair is " + ours + " here, and " + theirs + " of a " + who +
                 " elsewhere; right would be the same definition on both sides"};
  };
  EXPECT_TRUE(eventually([&] { return !differences(*talker).empty() && !differences(*listener).empty(); }));
  EXPECT_EQ(differences(*talker), line(here, there, "subscription"));
  EXPECT_EQ(differences(*listener), line(there, here, "publisher"));
  // The middleware does not know definitions.
  EXPECT_TRUE(eventually([&] { return talker->live().unmatched().empty() && listener->live().unmatched().empty(); }));
}

TEST_P(TypesElsewhere, OfAnotherNameAreNamedWithBothNames) {
  const auto talker = side(kTopics, "my_msgs/msg/Pair", "byte[] data\n", 0);
  const auto listener = side(kTopics, "my_msgs/msg/Couple", "byte[] data\n", 1);
  EXPECT_TRUE(eventually([&] { return !differences(*talker).empty() && !differences(*listener).empty(); }));
  const std::string here = talker->hash("my_msgs/msg/Pair"), there = listener->hash("my_msgs/msg/Couple");
  EXPECT_EQ(differences(*listener),
            Lines{"topic /chatter: type my_msgs/msg/Couple (" + there + ") here, and my_msgs/msg/Pair (" + here +
                  ") of a publisher elsewhere; right would be one type on both sides"});
  EXPECT_EQ(differences(*talker),
            Lines{"topic /chatter: type my_msgs/msg/Pair (" + here + ") here, and my_msgs/msg/Couple (" + there +
                  ") of a subscription elsewhere; right would be one type on both sides"});
  EXPECT_EQ(talker->live().unmatched(), Lines{"/talker publisher /chatter: 0 of 1 readers"});
}

TEST_P(TypesElsewhere, OfServicesAreNamedMessageByMessage) {
  const std::string type = "my_msgs/srv/Ask", header = "perflab_msgs/Header header\n";
  const auto caller = side(kServices, type, header + "int32 a\n---\n" + header, 0);
  const auto callee = side(kServices, type, header + "int64 a\n---\n" + header, 1);
  EXPECT_TRUE(eventually([&] { return !differences(*caller).empty() && !differences(*callee).empty(); }));
  EXPECT_EQ(differences(*caller),
            Lines{"service /ask: my_msgs/srv/Ask_Request is " + caller->hash(type + "_Request") + " here, and " +
                  callee->hash(type + "_Request") +
                  " of a server elsewhere; right would be the same definition on both sides"});
}

TEST_P(TypesElsewhere, WhatIsNotToldIsNoDifference) {
  const auto talker = side(kTopics, "my_msgs/msg/Pair", "byte[] data\n", 0);
  const auto silent = observer_.create_reader({.topic = "rt/chatter", .type = "my_msgs::msg::dds_::Pair_"});
  EXPECT_TRUE(eventually([&] { return talker->live().unmatched().empty(); }));
  EXPECT_EQ(differences(*talker), Lines());
}

INSTANTIATE_TEST_SUITE_P(, TypesElsewhere, testing::Values(PERFLAB_PLUGINS), [](const auto& info) {
  return std::filesystem::path(info.param).stem().string();
});

}  // namespace
}  // namespace perflab::graph
