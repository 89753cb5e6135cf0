// What plug-ins and the runtime on ROS 2 share: the network, what is set of DDS, and how the libraries are
// told.
#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "middleware/support/cyclonedds.h"
#include "middleware/support/dds.h"
#include "middleware/support/fastdds.h"
#include "middleware/support/library.h"
#include "middleware/support/network.h"
#include "middleware/support/qos.h"
#include "middleware/support/status.h"

namespace perflab::middleware::support {
namespace {

// The text with which `action` is refused, and its status.
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
  EXPECT_TRUE(text.starts_with("rclcpp: network 'nowhere0' is not an interface")) << text;
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

TEST(Qos, WhatDdsDoesNotHaveIsRefused) {
  constexpr std::int64_t kNone = PERFLAB_DURATION_INFINITE;
  const auto text = [](const char* topic, const perflab_qos& qos) {
    perflab_endpoint_settings endpoint{};
    endpoint.topic = topic;
    endpoint.type = "type";
    endpoint.qos = qos;
    const auto [status, text] = refused([&] { checked("x", endpoint); });
    EXPECT_EQ(status, text.empty() ? PERFLAB_OK : PERFLAB_BAD_OPTION);
    return text;
  };
  perflab_qos qos{PERFLAB_KEEP_LAST, 1,    PERFLAB_RELIABLE, PERFLAB_VOLATILE, kNone, kNone,
                  PERFLAB_AUTOMATIC, kNone};
  EXPECT_EQ(text("topic", qos), "");
  EXPECT_EQ(text("", qos), "x: an empty topic or type; right would be e.g. rt/amazon");
  EXPECT_EQ(text(nullptr, qos), "x: an empty topic or type; right would be e.g. rt/amazon");
  qos.lifespan_ns = 0;
  EXPECT_EQ(text("topic", qos), "x: lifespan of 0 ns; right would be above 0, or infinite");
  qos.lifespan_ns = kNone;
  qos.depth = 0;
  EXPECT_EQ(text("topic", qos), "x: history depth 0; right would be at least 1");
  qos.history = PERFLAB_KEEP_ALL;
  EXPECT_EQ(text("topic", qos), "");
}

TEST(Qos, PoliciesHaveTheirNamesByTheNumbersOfDds) {
  EXPECT_STREQ(policy_name(2), "durability");
  EXPECT_STREQ(policy_name(11), "reliability");
  EXPECT_STREQ(policy_name(24), "type_consistency");
  EXPECT_STREQ(policy_name(0), "unknown");
}

TEST(Library, TheLastLinesOfTheLogAreKept) {
  Log log;
  for (int i = 0; i < 40; ++i) log.keep(std::to_string(i));
  EXPECT_EQ(log.lines().size(), 32u);
  EXPECT_EQ(log.lines().front(), "8");
  EXPECT_EQ(log.lines().back(), "39");
  log.clear();
  EXPECT_TRUE(log.lines().empty());
}

// Settings of a network that need not be there.
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

TEST(Dds, TheSameOptionsAreReadForAll) {
  const std::vector<perflab_option> given{{"lease_duration", "2s"},
                                          {"max_blocking_time", "20ms"},
                                          {"max_message_size", "30000"},
                                          {"socket_receive_buffer", "1MiB"},
                                          {"socket_send_buffer", "64KiB"}};
  const auto read = [](const std::vector<perflab_option>& all) {
    const Options options("x", all,
                          {"lease_duration", "max_blocking_time", "max_message_size", "socket_receive_buffer",
                           "socket_send_buffer"});
    perflab_participant_settings participant{};
    participant.network = "lo";
    participant.ignore_local_endpoints = true;
    return read_dds_settings("x", participant, options, 65536);
  };
  const DdsSettings found = read(given);
  EXPECT_TRUE(found.ignore_local_endpoints);
  EXPECT_EQ(found.lease_duration_ns, 2'000'000'000);
  EXPECT_EQ(found.max_blocking_time_ns, 20'000'000);
  EXPECT_EQ(found.max_message_size, 30000u);
  EXPECT_EQ(found.receive_buffer.requested, 1u << 20);
  EXPECT_EQ(found.send_buffer.requested, 64u << 10);
  const std::initializer_list<std::array<const char*, 3>> bad{
      {"lease_duration", "1ms", "100ms to 3600s"},
      {"max_blocking_time", "soon", "a duration such as 500us, 2ms or 1.5s"},
      {"max_message_size", "100", "2000 to 65500 bytes"},
      {"socket_receive_buffer", "1", "64 KiB to 2 GiB"},
      {"socket_send_buffer", "3000MiB", "64 KiB to 2 GiB"}};
  for (const auto& [key, value, right] : bad) {
    const auto [status, text] = refused([&] { read({{key, value}}); });
    EXPECT_EQ(status, PERFLAB_BAD_OPTION);
    EXPECT_EQ(text, std::string("x: option '") + key + "' is '" + value + "'; right would be " + right);
  }
}

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

TEST(CycloneDds, OnANetworkWithMulticastThereAreNoPeers) {
  const std::string xml = cyclonedds_xml(settings(kEthernet));
  expect_parts(xml, {"<AllowMulticast>true</AllowMulticast>"});
  EXPECT_EQ(xml.find("<Peer "), std::string::npos) << xml;
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

TEST(FastDds, WithoutSharedMemoryThereIsUdpAlone) {
  EXPECT_EQ(fastdds_xml(settings(kLoopback), false).find("SHM"), std::string::npos);
}

TEST(FastDds, OnANetworkWithMulticastThereAreNoPeers) {
  EXPECT_EQ(fastdds_xml(settings(kEthernet), true).find("initialPeersList"), std::string::npos);
}

}  // namespace
}  // namespace perflab::middleware::support
