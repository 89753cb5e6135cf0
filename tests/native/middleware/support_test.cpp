// Shared code of plug-ins and the runtime on ROS 2: the network, DDS settings, and their translation for each
// library.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "../rows.h"
#include "middleware/support/cyclonedds.h"
#include "middleware/support/dds.h"
#include "middleware/support/fastdds.h"
#include "middleware/support/library.h"
#include "middleware/support/network.h"
#include "middleware/support/qos.h"
#include "middleware/support/status.h"
#include "middleware/types.h"

namespace perflab::middleware::support {
namespace {

// The error with which `action` is refused, and its status.
template <typename Action>
std::pair<perflab_status, std::string> refused(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return {status_of(error.kind()), error.what()};
  }
  return {PERFLAB_OK, ""};
}

TEST(Network, TheLoopbackIsFoundWithItsAddress) {
  const Interface found = find_interface("x", "lo");
  EXPECT_EQ(found.address, "127.0.0.1");
  EXPECT_TRUE(found.loopback);
  EXPECT_FALSE(found.multicast);
}

TEST(Network, WhatIsNoInterfaceIsRefusedWithThoseThatThereAre) {
  const auto [status, text] = refused([] { find_interface("rclcpp", "nowhere0"); });
  EXPECT_EQ(status, PERFLAB_BAD_OPTION);
  EXPECT_TRUE(text.starts_with("rclcpp: network 'nowhere0' is not an active interface")) << text;
  EXPECT_NE(text.find(" lo"), std::string::npos) << text;
}

TEST(Network, WithoutMulticastThereAreOnlySoManyParticipants) {
  const Interface lo{"127.0.0.1", true, false};
  const Interface eth{"10.0.0.1", false, true};
  EXPECT_EQ(last_participant_index("x", "lo", lo, 2), 18u);
  EXPECT_EQ(last_participant_index("x", "eth0", eth, 500), 119u);
  const auto [status, text] = refused([&] { last_participant_index("x", "lo", lo, 104); });
  EXPECT_EQ(status, PERFLAB_UNSUPPORTED);
  EXPECT_EQ(text, "x: 104 participants on 'lo', which has no multicast; right would be at most 103");
}

// A valid endpoint with one change, and the error with which it is refused.
struct Changed {
  const char* name;
  void (*change)(perflab_endpoint_settings&);
  const char* text;
};
class EndpointInDds : public testing::TestWithParam<Changed> {};

TEST_P(EndpointInDds, IsRefusedWhereDdsDoesNotHaveIt) {
  perflab_endpoint_settings endpoint{};
  endpoint.topic = "topic";
  endpoint.type = "type";
  endpoint.qos = default_qos();
  GetParam().change(endpoint);
  const auto [status, text] = refused([&] { checked("x", endpoint); });
  EXPECT_EQ(text, GetParam().text);
  EXPECT_EQ(status, text.empty() ? PERFLAB_OK : PERFLAB_BAD_OPTION);
}

INSTANTIATE_TEST_SUITE_P(
    , EndpointInDds,
    rows::of<Changed>({{"AsItIs", [](perflab_endpoint_settings&) {}, ""},
                       {"AnEmptyTopic", [](perflab_endpoint_settings& e) { e.topic = ""; },
                        "x: topic or type is empty; right would be e.g. rt/amazon"},
                       {"NoTopic", [](perflab_endpoint_settings& e) { e.topic = nullptr; },
                        "x: topic or type is empty; right would be e.g. rt/amazon"},
                       {"ALifespanOfZero", [](perflab_endpoint_settings& e) { e.qos.lifespan_ns = 0; },
                        "x: lifespan of 0 ns; right would be above 0, or infinite"},
                       {"ADepthOfZero", [](perflab_endpoint_settings& e) { e.qos.depth = 0; },
                        "x: history depth 0; right would be at least 1"},
                       {"ADepthOfZeroThatMeansNothing",
                        [](perflab_endpoint_settings& e) {
                          e.qos.depth = 0;
                          e.qos.history = PERFLAB_KEEP_ALL;
                        },
                        ""}}),
    rows::by_name);

struct PolicyName {
  std::string text;
  std::uint32_t number;
};
class QosPolicy : public testing::TestWithParam<PolicyName> {};

TEST_P(QosPolicy, HasItsNameByTheNumberOfDds) { EXPECT_EQ(policy_name(GetParam().number), GetParam().text); }

INSTANTIATE_TEST_SUITE_P(
    , QosPolicy,
    rows::of<PolicyName>({{"durability", 2}, {"reliability", 11}, {"type_consistency", 24}, {"unknown", 0}}),
    rows::by_text);

TEST(Library, TheLastLinesOfTheLogAreKept) {
  Log log;
  for (int i = 0; i < 40; ++i) log.keep(std::to_string(i));
  EXPECT_EQ(log.lines().size(), 32u);
  EXPECT_EQ(log.lines().front(), "8");
  EXPECT_EQ(log.lines().back(), "39");
  log.clear();
  EXPECT_TRUE(log.lines().empty());
}

// Settings of a network that need not exist.
DdsSettings settings(const Interface& interface) {
  return {.middleware = "x", .network = "a<b", .interface = interface, .last_index = 18};
}
const Interface kLoopback{"127.0.0.1", true, false};
const Interface kEthernet{"10.0.0.1", false, true};

void expect_parts(const std::string& text, std::initializer_list<const char*> parts) {
  for (const char* const part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(Dds, WithoutOptionsItIsWhatTheDocumentationSays) {
  const DdsSettings found = dds_settings("x", 7, "lo", 2);
  EXPECT_EQ(found.interface.address, "127.0.0.1");
  const nlohmann::json told = describe(found);
  EXPECT_EQ(told.at("domain"), 7);
  EXPECT_EQ(told.at("network"), "lo");
  EXPECT_EQ(told.at("multicast"), false);
  EXPECT_EQ(told.at("socket_receive_buffer").at("requested"), 4 << 20);
  EXPECT_EQ(told.at("socket_receive_buffer").at("limit"), kernel_limit("x", "rmem_max"));
  EXPECT_EQ(told.at("socket_send_buffer").at("requested"), 4 << 20);
  EXPECT_EQ(told.at("socket_send_buffer").at("limit"), kernel_limit("x", "wmem_max"));
  EXPECT_EQ(told.at("max_message_size"), 65500);
  EXPECT_EQ(told.at("lease_duration_ns"), 10'000'000'000);
  EXPECT_EQ(told.at("max_blocking_time_ns"), 1'000'000'000);
}

DdsSettings read_options(const std::vector<perflab_option>& given) {
  const Options options("x", given,
                        {"lease_duration", "max_blocking_time", "max_message_size", "socket_receive_buffer",
                         "socket_send_buffer"});
  perflab_participant_settings participant{};
  participant.network = "lo";
  participant.ignore_local_endpoints = true;
  return read_dds_settings("x", participant, options, 65536);
}

TEST(Dds, TheSameOptionsAreReadForAll) {
  const DdsSettings found = read_options({{"lease_duration", "2s"},
                                          {"max_blocking_time", "20ms"},
                                          {"max_message_size", "30000"},
                                          {"socket_receive_buffer", "1MiB"},
                                          {"socket_send_buffer", "64KiB"}});
  EXPECT_TRUE(found.ignore_local_endpoints);
  EXPECT_EQ(found.lease_duration_ns, 2'000'000'000);
  EXPECT_EQ(found.max_blocking_time_ns, 20'000'000);
  EXPECT_EQ(found.max_message_size, 30000u);
  EXPECT_EQ(found.receive_buffer.requested, 1u << 20);
  EXPECT_EQ(found.send_buffer.requested, 64u << 10);
}

struct WrongOption {
  const char* name;
  const char* value;
  const char* right;
};
class WrongDdsOption : public testing::TestWithParam<WrongOption> {};

TEST_P(WrongDdsOption, IsRefusedWithWhatWouldBeRight) {
  const auto& [name, value, right] = GetParam();
  const auto [status, text] = refused([&] { read_options({{name, value}}); });
  EXPECT_EQ(status, PERFLAB_BAD_OPTION);
  EXPECT_EQ(text, std::string("x: option '") + name + "' is '" + value + "'; right would be " + right);
}

INSTANTIATE_TEST_SUITE_P(, WrongDdsOption,
                         rows::of<WrongOption>({{"lease_duration", "1ms", "100ms to 3600s"},
                                                {"max_blocking_time", "soon",
                                                 "a duration such as 500us, 2ms or 1.5s"},
                                                {"max_message_size", "100", "2000 to 65500 bytes"},
                                                {"socket_receive_buffer", "1", "64 KiB to 2 GiB"},
                                                {"socket_send_buffer", "3000MiB", "64 KiB to 2 GiB"}}),
                         rows::by_name);

TEST(Dds, ThereAre233Domains) {
  const auto [status, text] = refused([] { dds_settings("x", 233, "lo", 1); });
  EXPECT_EQ(status, PERFLAB_BAD_OPTION);
  EXPECT_EQ(text, "x: domain 233; right would be 0 to 232");
}

TEST(CycloneDds, TheConfigurationSaysWhatIsSet) {
  DdsSettings given = settings(kLoopback);
  given.max_message_size = 30000;
  expect_parts(
      cyclonedds_xml(given),
      {"<NetworkInterface name=\"a&lt;b\"/>", "<AllowMulticast>false</AllowMulticast>",
       "<MaxMessageSize>30000 B</MaxMessageSize>", "<FragmentSize>29500 B</FragmentSize>",
       "<MaxRexmitMessageSize>30000 B</MaxRexmitMessageSize>", "<SocketReceiveBufferSize max=\"4194304 B\"/>",
       "<SocketSendBufferSize max=\"4194304 B\"/>", "<ReceiveBufferSize>262144 B</ReceiveBufferSize>",
       "<MaxAutoParticipantIndex>18</MaxAutoParticipantIndex>",
       "<LeaseDuration>10000000000 ns</LeaseDuration>", "<Peer address=\"127.0.0.1\"/>"});
}

// A setting that a library does not get in some case.
struct Untold {
  const char* name;
  std::string (*told)();
  const char* part;
};
class Configuration : public testing::TestWithParam<Untold> {};

TEST_P(Configuration, SaysNothingOfWhatThereIsNot) {
  const std::string told = GetParam().told();
  EXPECT_EQ(told.find(GetParam().part), std::string::npos) << told;
}

INSTANTIATE_TEST_SUITE_P(, Configuration,
                         rows::of<Untold>({{"OfPeersWithMulticastOnCycloneDds",
                                            [] { return cyclonedds_xml(settings(kEthernet)); }, "<Peer "},
                                           {"OfPeersWithMulticastOnFastDds",
                                            [] { return fastdds_xml(settings(kEthernet), true); },
                                            "initialPeersList"},
                                           {"OfSharedMemoryThatIsNotWantedOnFastDds",
                                            [] { return fastdds_xml(settings(kLoopback), false); }, "SHM"}}),
                         rows::by_name);

TEST(CycloneDds, UsesMulticastWhereTheNetworkHasIt) {
  expect_parts(cyclonedds_xml(settings(kEthernet)), {"<AllowMulticast>true</AllowMulticast>"});
}

TEST(CycloneDds, SmallBuffersHoldSmallMessagesOnly) {
  DdsSettings given = settings(kLoopback);
  given.receive_buffer.limit = 208 << 10;
  EXPECT_EQ(cyclonedds_message_size(given), 14720u);
  given.receive_buffer.limit = 1 << 20;
  EXPECT_EQ(cyclonedds_message_size(given), 65500u);
}

TEST(FastDds, TheProfileSaysWhatIsSet) {
  DdsSettings given = settings(kLoopback);
  given.lease_duration_ns = 1'500'000'000;
  given.max_message_size = 30000;
  const std::string locator = "<locator><udpv4><address>127.0.0.1</address></udpv4></locator>";
  const std::string xml = fastdds_xml(given, true);
  expect_parts(xml,
               {"<sendBufferSize>4194304</sendBufferSize>", "<receiveBufferSize>4194304</receiveBufferSize>",
                "<maxMessageSize>30000</maxMessageSize>",
                "<interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList>",
                "<maxInitialPeersRange>19</maxInitialPeersRange>", "<type>SHM</type>",
                "<leaseDuration><sec>1</sec><nanosec>500000000</nanosec></leaseDuration>",
                "<leaseAnnouncement><sec>0</sec><nanosec>375000000</nanosec></leaseAnnouncement>",
                "<initialAnnouncements><count>40</count>",
                "<max_blocking_time><sec>1</sec><nanosec>0</nanosec></max_blocking_time>",
                "<useBuiltinTransports>false</useBuiltinTransports>"});
  expect_parts(
      xml, {("<metatrafficUnicastLocatorList>" + locator).c_str(), ("<initialPeersList>" + locator).c_str()});
}

}  // namespace
}  // namespace perflab::middleware::support
