// Cyclone DDS is configured by perflab and by nothing else, and says how.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture.h"

namespace perflab::conformance {
namespace {

class CycloneDds : public Conformance {
 protected:
  nlohmann::json described() { return nlohmann::json::parse(participant().describe()); }
  void expect_refused(const char* key, const std::string& value, const char* reason) {
    try {
      open_with({{key, value}});
      FAIL() << key << "=" << value << " was accepted";
    } catch (const Error& refusal) {
      const std::string text = refusal.what();
      EXPECT_NE(text.find(reason), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
};

TEST_F(CycloneDds, DescribesLibraryNetworkAndConfiguration) {
  const auto json = described();
  EXPECT_TRUE(json.at("version").get<std::string>().starts_with("0.10."));
  EXPECT_EQ(json.at("network"), "lo");
  EXPECT_EQ(json.at("multicast"), false);
  EXPECT_EQ(json.at("shared_memory"), false);
  EXPECT_EQ(json.at("retransmitted_bytes"), 0);
  EXPECT_NE(json.at("configuration").get<std::string>().find("NetworkInterface name=\"lo\""),
            std::string::npos);
}

TEST_F(CycloneDds, EnvironmentIsIgnoredAndThatIsSaid) {
  // Broken on purpose: if it were read, the participant could not be opened.
  ASSERT_EQ(setenv("CYCLONEDDS_URI", "<CycloneDDS><NoSuchElement/></CycloneDDS>", 1), 0);
  const auto json = described();
  unsetenv("CYCLONEDDS_URI");
  EXPECT_EQ(json.at("ignored_environment").at("CYCLONEDDS_URI"), "<CycloneDDS><NoSuchElement/></CycloneDDS>");
  EXPECT_EQ(json.at("log"), nlohmann::json::array());
}

TEST_F(CycloneDds, ConfigOfTheUserIsReadLast) {
  // Cyclone refuses a lease outside of what it can do: a proof that the text has been read.
  expect_refused("config", "<Discovery><LeaseDuration>nonsense</LeaseDuration></Discovery>", "LeaseDuration");
  open_with(
      {{"config", "<CycloneDDS><Discovery><LeaseDuration>3s</LeaseDuration></Discovery></CycloneDDS>"}});
  const auto text = described().at("configuration").get<std::string>();
  EXPECT_TRUE(text.ends_with("<LeaseDuration>3s</LeaseDuration></Discovery></CycloneDDS>"));
}

TEST_F(CycloneDds, ConfigMayBeAFile) {
  const std::string file = std::filesystem::temp_directory_path() /
                           ("perflab-cyclonedds-test." + std::to_string(getpid()) + ".xml");
  std::ofstream(file)
      << "<?xml version=\"1.0\" encoding=\"UTF-8\" ?>\n<CycloneDDS><Domain id=\"any\"><Discovery>"
         "<LeaseDuration>4s</LeaseDuration></Discovery></Domain></CycloneDDS>\n";
  open_with({{"config", file}});
  std::filesystem::remove(file);
  EXPECT_NE(described().at("configuration").get<std::string>().find("4s"), std::string::npos);
  EXPECT_EQ(described().at("log"), nlohmann::json::array());
}

TEST_F(CycloneDds, MalformedOptionsAreRefused) {
  expect_refused("config", "/no/such/file.xml", "readable file");
  expect_refused("config", "<CycloneDDS><NoSuchElement/></CycloneDDS>", "NoSuchElement");
  expect_refused("config", "<CycloneDDS><SharedMemory><Enable>true</Enable></SharedMemory></CycloneDDS>",
                 "SharedMemory");
  expect_refused("lease_duration", "10", "lease_duration");
  expect_refused("max_message_size", "100", "max_message_size");
  expect_refused("receive_buffer", "1KiB", "receive_buffer");
  expect_refused("socket_receive_buffer", "many", "socket_receive_buffer");
  expect_refused("socket_send_buffer", "1", "4 KiB to 2 GiB");
}

TEST_F(CycloneDds, MoreParticipantsThanPortsAreRefused) {
  ParticipantSettings given = settings();
  given.participants_expected = 200;
  try {
    plugin_.open(discovery_.host(), given);
    FAIL();
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.kind(), Error::Kind::kUnsupported);
    EXPECT_NE(std::string(refusal.what()).find("200 participants"), std::string::npos) << refusal.what();
  }
}

}  // namespace
}  // namespace perflab::conformance
