// What plug-ins and the runtime on ROS 2 share: the network, and the configuration of Cyclone DDS.
#include <gtest/gtest.h>

#include "middleware/support/cyclonedds.h"
#include "middleware/support/network.h"
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

TEST(CycloneDds, TheConfigurationSaysHowLargeMessagesGo) {
  const Interface lo{"127.0.0.1", true, false};
  const std::string xml =
      cyclonedds_xml({.network = "lo", .participants_expected = 2, .max_message_size = 30000}, lo);
  for (const char* part :
       {"<NetworkInterface name=\"lo\"/>", "<AllowMulticast>false</AllowMulticast>",
        "<MaxMessageSize>30000 B</MaxMessageSize>", "<FragmentSize>29500 B</FragmentSize>",
        "<MaxRexmitMessageSize>30000 B</MaxRexmitMessageSize>",
        "<SocketReceiveBufferSize max=\"4194304 B\"/>", "<ReceiveBufferSize>262144 B</ReceiveBufferSize>",
        "<MaxAutoParticipantIndex>18</MaxAutoParticipantIndex>",
        "<LeaseDuration>10000000000 ns</LeaseDuration>", "<Peer address=\"127.0.0.1\"/>"}) {
    EXPECT_NE(xml.find(part), std::string::npos) << part << " in " << xml;
  }
}

TEST(CycloneDds, OnANetworkWithMulticastThereAreNoPeers) {
  const std::string xml = cyclonedds_xml({.network = "a<b"}, {"10.0.0.1", false, true});
  EXPECT_NE(xml.find("<AllowMulticast>true</AllowMulticast>"), std::string::npos) << xml;
  EXPECT_NE(xml.find("name=\"a&lt;b\""), std::string::npos) << xml;
  EXPECT_EQ(xml.find("<Peer "), std::string::npos) << xml;
}

}  // namespace
}  // namespace perflab::middleware::support
