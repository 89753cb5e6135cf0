// Fast DDS is configured by perflab and by nothing else, and says what it really did.
#include "middleware/support/fastdds.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture.h"
#include "middleware/fastdds/sharing.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

namespace fs = std::filesystem;

class FastDds : public Conformance {
 protected:
  nlohmann::json described() { return nlohmann::json::parse(participant().describe()); }
  void expect_refused(const char* key, const std::string& value, const char* reason) {
    try {
      open_with({{key, value}});
      FAIL() << key << "=" << value << " was accepted";
    } catch (const Error& refusal) {
      const std::string text = refusal.what();
      EXPECT_EQ(refusal.kind(), Error::Kind::kBadInput) << text;
      EXPECT_NE(text.find(reason), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
  static std::string endpoint(const std::string& kind, const std::string& form = "") {
    return kind + " x " + kTopic + " " + kType + " keep_all reliable volatile 10 " + form;
  }
  // 100 messages from another process, taken here.
  void exchange(const std::vector<std::pair<std::string, std::string>>& options, const std::string& form = "",
                std::size_t size = 1000) {
    open_with(options);
    Reader r = participant().create_reader(
        {.topic = kTopic, .type = kType, .fixed_size = form.empty() ? 0 : size, .qos = keep_all()});
    Peer peer(subject().plugin, domain_.id(), options);
    ASSERT_EQ(peer.ask(endpoint("writer", form)), "ok");
    ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
    ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
    for (int i = 0; i < 10; ++i) {
      ASSERT_EQ(peer.ask("write x 0 10 " + std::to_string(size)), "wrote 10");
      ASSERT_EQ(take_until(r, 10).size(), 10u);
    }
  }
  static std::uint64_t received(const nlohmann::json& json, const char* transport) {
    return json.at("transport").at(transport).at("received").at("user_messages");
  }
};

std::string profile(const std::string& rtps) {
  return R"(<?xml version="1.0" encoding="UTF-8" ?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">
  <participant profile_name="own" is_default_profile="true"><rtps>)" +
         rtps + "</rtps></participant></profiles>";
}

TEST_F(FastDds, DescribesLibraryAndNetwork) {
  const auto json = described();
  EXPECT_TRUE(json.at("version").get<std::string>().find('.') != std::string::npos);
  EXPECT_EQ(json.at("network"), "lo");
  EXPECT_EQ(json.at("multicast"), false);
  EXPECT_EQ(json.at("transport").at("requested"), "udp+shm");
  EXPECT_EQ(json.at("configuration"), nullptr);
  EXPECT_EQ(json.at("log"), nlohmann::json::array());
}

TEST_F(FastDds, EnvironmentIsIgnoredAndThatIsSaid) {
  // Broken on purpose: if they were read, the participant would not find anybody, or complain.
  const std::string folder = fs::temp_directory_path() / ("perflab-fastdds-test." + std::to_string(getpid()));
  fs::create_directory(folder);
  const fs::path before = fs::current_path();
  fs::current_path(folder);
  for (const char* const name : {"DEFAULT_FASTRTPS_PROFILES.xml", "DEFAULT_FASTDDS_PROFILES.xml"}) {
    std::ofstream(name) << profile("<useBuiltinTransports>nonsense</useBuiltinTransports>");
  }
  const std::string file = folder + "/DEFAULT_FASTRTPS_PROFILES.xml";
  for (const char* const name : {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"})
    ASSERT_EQ(setenv(name, file.c_str(), 1), 0);
  ASSERT_EQ(setenv("ROS_DISCOVERY_SERVER", "10.255.255.1:11811", 1), 0);
  const auto json = described();
  fs::current_path(before);
  fs::remove_all(folder);
  EXPECT_STREQ(getenv("FASTRTPS_DEFAULT_PROFILES_FILE"), file.c_str());
  EXPECT_EQ(getenv("SKIP_DEFAULT_XML_FILE"), nullptr);
  for (const char* const name :
       {"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE", "ROS_DISCOVERY_SERVER"}) {
    EXPECT_TRUE(json.at("ignored_environment").contains(name)) << name;
    unsetenv(name);
  }
  EXPECT_EQ(json.at("ignored_environment").size(), 4u) << "and one of the files";
  EXPECT_EQ(json.at("log"), nlohmann::json::array());
  // It finds others by itself.
  Reader r = reader();
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(endpoint("writer")), "ok");
  EXPECT_EQ(peer.ask("wait_matched x 1"), "ok");
}

TEST_F(FastDds, ConfigOfTheUserWinsAndIsRecorded) {
  const std::string xml = profile(
      "<name>chosen</name><allocation><remote_locators><max_unicast_locators>7</max_unicast_locators>"
      "</remote_locators></allocation>");
  open_with({{"config", xml}});
  const auto json = described();
  EXPECT_EQ(json.at("configuration"), xml);
  EXPECT_EQ(json.at("configuration_replaces"), (nlohmann::json{"allocation", "name"}));
  EXPECT_EQ(json.at("log"), nlohmann::json::array());
}

// By that profile ROS 2's Fast DDS is configured as the plug-in is by itself.
TEST_F(FastDds, TheProfileForRos2IsUnderstood) {
  const auto settings = middleware::support::dds_settings("test", domain_.id(), "lo", 4);
  const std::string xml = middleware::support::fastdds_xml(settings, true);
  exchange({{"config", xml}});
  const auto json = described();
  EXPECT_EQ(json.at("log"), nlohmann::json::array());
  EXPECT_EQ(json.at("configuration_replaces"), (nlohmann::json{"transport", "wire_protocol"}));
  EXPECT_EQ(received(json, "udp"), 0u);
  EXPECT_GE(received(json, "shm"), 100u);
}

TEST_F(FastDds, ConfigMayBeAFileWithTransportsWhichAreCountedToo) {
  const std::string file =
      fs::temp_directory_path() / ("perflab-fastdds-test." + std::to_string(getpid()) + ".xml");
  std::ofstream(file) << R"(<?xml version="1.0" encoding="UTF-8" ?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles">
  <transport_descriptors><transport_descriptor><transport_id>only</transport_id><type>UDPv4</type>
    <maxInitialPeersRange>20</maxInitialPeersRange>
    <interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList></transport_descriptor></transport_descriptors>
  <participant profile_name="own" is_default_profile="true"><rtps>
    <userTransports><transport_id>only</transport_id></userTransports>
    <useBuiltinTransports>false</useBuiltinTransports></rtps></participant></profiles>)";
  exchange({{"config", file}});
  fs::remove(file);
  const auto json = described();
  EXPECT_EQ(json.at("configuration_replaces"), nlohmann::json{"transport"});
  EXPECT_GE(received(json, "udp"), 100u);
  EXPECT_EQ(received(json, "shm"), 0u);
}

TEST_F(FastDds, MalformedOptionsAreRefused) {
  expect_refused("config", "/no/such/file.xml", "readable file");
  expect_refused("config", "<profiles></profiles>", "is_default_profile");
  expect_refused("config", profile("<noSuchElement/>"), "config");
  expect_refused("transport", "tcp", "udp+shm");
  expect_refused("data_sharing", "yes", "on or off");
  expect_refused("intraprocess", "1", "on or off");
  expect_refused("publish_mode", "later", "sync");
  expect_refused("security", "on", "path of a folder");
  expect_refused("security", "/no/such/folder", "identity_ca.pem");
  expect_refused("lease_duration", "10", "lease_duration");
  expect_refused("max_blocking_time", "soon", "max_blocking_time");
  expect_refused("max_message_size", "100", "max_message_size");
  expect_refused("shm_segment_size", "1KiB", "shm_segment_size");
  expect_refused("socket_receive_buffer", "many", "socket_receive_buffer");
  expect_refused("socket_send_buffer", "1", "socket_send_buffer");
}

TEST_F(FastDds, MoreParticipantsThanPortsAreRefused) {
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

TEST_F(FastDds, IntraprocessIsOneSettingOfTheProcess) {
  open_with({{"intraprocess", "on"}});
  EXPECT_EQ(described().at("intraprocess"), true);
  ParticipantSettings other = settings();
  other.options = {{"intraprocess", "off"}};
  EXPECT_THROW(plugin_.open(discovery_.host(), other), Error);
  close_participant();
  open_with({{"intraprocess", "off"}});
  EXPECT_EQ(described().at("intraprocess"), false);
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  const auto taken = take_until(r, 1);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_NE(taken[0].reception_ns, PERFLAB_TIME_UNKNOWN) << "it came through a transport";
}

// Otherwise the library calls what was deleted with it.
TEST_F(FastDds, OneThatLeavesWaitsUntilTheOthersOfItsProcessKnow) {
  struct Slow {
    std::atomic<int> found{0}, lost{0};
    static void on_event(void* context, const perflab_event* event) {
      auto& self = *static_cast<Slow*>(context);
      if (event->kind == PERFLAB_PARTICIPANT_FOUND) ++self.found;
      if (event->kind != PERFLAB_PARTICIPANT_LOST) return;
      std::this_thread::sleep_for(100ms);
      ++self.lost;
    }
  };
  for (const char* const transport : {"udp+shm", "udp", "shm"}) {
    SCOPED_TRACE(transport);
    Slow slow;
    ParticipantSettings given = settings();
    given.options.emplace_back("transport", transport);
    perflab_host host = discovery_.host();
    host.on_event = &Slow::on_event;
    host.context = &slow;
    const Participant stays = plugin_.open(host, given);
    open_with(given);
    ASSERT_TRUE(eventually([&] { return slow.found == 1; }));
    close_participant();
    EXPECT_EQ(slow.lost, 1);
  }
}

TEST_F(FastDds, TransportThatIsUsedIsTheOneThatIsCounted) {
  exchange({{"transport", "udp"}});
  auto json = described();
  EXPECT_GE(received(json, "udp"), 100u);
  EXPECT_EQ(received(json, "shm"), 0u);
  EXPECT_EQ(json.at("shared_memory_files"), nlohmann::json::array());
  close_participant();
  exchange({{"transport", "shm"}});
  json = described();
  EXPECT_EQ(received(json, "udp"), 0u);
  EXPECT_GE(received(json, "shm"), 100u);
  close_participant();
  exchange({{"transport", "udp+shm"}});
  json = described();
  EXPECT_GE(received(json, "shm"), 100u) << "on one machine shared memory is preferred";
  EXPECT_GE(json.at("transport").at("udp").at("received").at("discovery_messages"), 1u);
}

TEST_F(FastDds, BytesSentAreAtLeastThoseOfTheMessages) {
  open_with({{"transport", "udp"}});
  Writer w = writer();
  Peer peer(subject().plugin, domain_.id(), {{"transport", "udp"}});
  ASSERT_EQ(peer.ask(endpoint("reader")), "ok");
  ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
  ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1; }));
  for (std::uint64_t number = 0; number < 20; ++number) write(w, number, 10'000);
  EXPECT_EQ(peer.ask("take x 20 10000"), "took 20 intact 20 ordered 1 first 0 last 19");
  const auto sent = described().at("transport").at("udp").at("sent");
  EXPECT_GE(sent.at("user_messages"), 20u);
  EXPECT_GE(sent.at("user_bytes"), 200'000u);
  EXPECT_LE(sent.at("user_bytes"), 400'000u) << "not several times";
}

TEST_F(FastDds, DataSharingIsCountedWhereItHappens) {
  exchange({{"data_sharing", "on"}}, "fixed 1000");
  auto json = described();
  EXPECT_EQ(json.at("readers").at(0).at("samples"), 100u);
  EXPECT_EQ(json.at("readers").at(0).at("samples_in_shared_memory"), 100u);
  EXPECT_EQ(json.at("readers").at(0).at("copied_from_shared_memory"), 100u);
  EXPECT_EQ(json.at("readers").at(0).at("overwritten"), 0u);
  EXPECT_EQ(json.at("data_sharing").at("samples"), 100u);
  close_participant();
  exchange({{"data_sharing", "on"}});  // of variable size
  EXPECT_EQ(described().at("data_sharing").at("samples"), 0u);
  close_participant();
  exchange({{"data_sharing", "off"}}, "fixed 1000");
  EXPECT_EQ(described().at("data_sharing").at("samples"), 0u);
}

TEST_F(FastDds, LoansNeedDataSharing) {
  try {
    participant().create_writer({.topic = kTopic, .type = kType, .fixed_size = 1000, .loans = true});
    FAIL() << "accepted";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.kind(), Error::Kind::kUnsupported);
    EXPECT_NE(std::string(refusal.what()).find("--middleware-option fastdds.data_sharing=on"),
              std::string::npos);
  }
  close_participant();
  open_with({{"data_sharing", "on"}});
  Writer w = participant().create_writer({.topic = kTopic, .type = kType, .fixed_size = 1000, .loans = true});
  void* message = nullptr;
  perflab_error error{};
  ASSERT_EQ(w.loan(message, error), PERFLAB_OK) << error.text;
  const auto bytes = make_message(1, 1000);
  std::memcpy(message, bytes.data(), bytes.size());
  ASSERT_EQ(w.write_loaned(message, error), PERFLAB_OK) << error.text;
  const auto json = described().at("writers").at(0);
  EXPECT_EQ(json.at("loans_written"), 1u);
  EXPECT_EQ(json.at("samples_in_shared_memory"), 1u);
}

TEST_F(FastDds, OneTypeHasOneSizeInAParticipant) {
  open_with({{"data_sharing", "on"}});
  Writer fixed = participant().create_writer({.topic = "rt/a", .type = kType, .fixed_size = 1000});
  EXPECT_THROW(participant().create_writer({.topic = "rt/b", .type = kType}), Error);
  EXPECT_THROW(participant().create_writer({.topic = "rt/b", .type = kType, .fixed_size = 1001}), Error);
  Writer variable = participant().create_writer({.topic = "rt/c", .type = "Other_"});
  EXPECT_THROW(
      participant().create_writer({.topic = "rt/d", .type = "Other_", .fixed_size = 9, .loans = true}),
      Error);
}

TEST_F(FastDds, WriterOfFixedSizeRefusesLongerMessages) {
  open_with({{"data_sharing", "on"}});
  Writer w = participant().create_writer({.topic = kTopic, .type = kType, .fixed_size = 100});
  const auto bytes = make_message(1, 101);
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  EXPECT_EQ(w.write({&part, 1}, error), PERFLAB_FAILED);
  EXPECT_NE(std::string(error.text).find("fixed size"), std::string::npos) << error.text;
}

TEST_F(FastDds, ThreadsCarryItsName) {
  open_with({{"transport", "udp"}});
  // The plug-in's names, or since 2.12 the library's, which a thread takes when it first runs.
  std::set<std::string> names;
  const auto starts = [&](const char* start) {
    return std::ranges::count_if(names, [&](const std::string& name) { return name.starts_with(start); });
  };
  const bool named = eventually([&] {
    names.clear();
    const auto json = described();
    for (const auto& thread : json.at("threads")) names.insert(thread.at("name"));
    const bool by_plugin = names.contains("fdds.udp.user") && names.contains("fdds.udp.disc") && names.contains("fdds");
    return by_plugin || (starts("dds.udp.") >= 2 && starts("dds.ev.") >= 1);
  });
  EXPECT_TRUE(named) << testing::PrintToString(names);
  std::string own;
  std::getline(std::ifstream("/proc/self/comm"), own);
  EXPECT_EQ(own.find("fdds"), std::string::npos);
}

TEST_F(FastDds, SharedMemoryIsNamedWhileItIsThereAndGoneAfterwards) {
  // Ports that a killed process left behind are used again, but belong to nobody who would remove them.
  std::set<std::string> left_by_others;
  for (const auto& entry : fs::directory_iterator("/dev/shm")) left_by_others.insert(entry.path().string());
  open_with({{"data_sharing", "on"}});
  std::set<std::string> files;
  {
    Writer w = participant().create_writer({.topic = kTopic, .type = kType, .fixed_size = 1000});
    Reader r = participant().create_reader({.topic = kTopic, .type = kType, .fixed_size = 1000});
    ASSERT_TRUE(matched(w, r));
    const auto json = described();
    for (const auto& file : json.at("shared_memory_files"))
      files.insert("/dev/shm/" + file.get<std::string>());
  }
  EXPECT_TRUE(
      std::any_of(files.begin(), files.end(), [](const auto& f) { return f.find("datasharing") != f.npos; }));
  EXPECT_TRUE(std::any_of(files.begin(), files.end(), [](const auto& f) {
    return f.find("fastrtps_port") != f.npos || f.find("fastdds_port") != f.npos;
  }));
  for (const std::string& file : files)
    EXPECT_TRUE(fs::exists(file) || file.find("datasharing") != file.npos) << file;
  close_participant();
  for (const std::string& file : files)
    EXPECT_FALSE(fs::exists(file) && !left_by_others.contains(file)) << file;
}

// A segment that appears where something else was mapped before, as it happens when writers come and go.
TEST(Sharing, AnAddressIsLookedUpAnewEachTime) {
  const std::string file = "/dev/shm/fast_datasharing_test_" + std::to_string(getpid());
  constexpr std::size_t kSize = 4096;
  void* const at = mmap(nullptr, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(at, MAP_FAILED);
  EXPECT_FALSE(middleware::fastdds::in_data_sharing(at));
  const int segment = open(file.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  ASSERT_GE(segment, 0);
  ASSERT_EQ(ftruncate(segment, kSize), 0);
  ASSERT_EQ(mmap(at, kSize, PROT_READ, MAP_SHARED | MAP_FIXED, segment, 0), at);
  EXPECT_TRUE(middleware::fastdds::in_data_sharing(at));
  EXPECT_TRUE(middleware::fastdds::in_data_sharing(static_cast<char*>(at) + kSize - 1));
  ASSERT_EQ(mmap(at, kSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
  EXPECT_FALSE(middleware::fastdds::in_data_sharing(at));
  close(segment);
  unlink(file.c_str());
  munmap(at, kSize);
}

TEST_F(FastDds, KeepAllReadersLoseNothingHoweverMuchTheyHaveNotTaken) {
  constexpr std::uint64_t kMessages = 5'500;  // the library's own limit is 5000
  Writer w = writer(keep_all());
  Reader r = reader(keep_all());
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < kMessages; ++number) write(w, number);
  EXPECT_EQ(numbers(take_until(r, kMessages)), range(0, kMessages));
}

// Between the two steps of the library that make a writer known: others have heard of it, its own partners
// are not looked for yet.
std::function<void()> g_between_steps;

TEST_F(FastDds, PairThatTheLibraryFindsTwiceIsIgnoredBothTimes) {
  ParticipantSettings given = settings();
  given.ignore_local_endpoints = true;
  given.options.emplace_back("intraprocess", "off");  // or a thread would hand over its own discovery
  Participant writes = plugin_.open(discovery_.host(), given);
  Participant reads = plugin_.open(discovery_.host(), given);
  if (nlohmann::json::parse(writes.describe()).at("ignores_local_endpoints_by") == "library")
    GTEST_SKIP() << "this version of Fast DDS leaves local endpoints apart by itself";
  perflab_qos best_effort = keep_all();
  best_effort.reliability = PERFLAB_BEST_EFFORT;
  Recorder of_writer, of_reader;
  std::optional<Reader> r;
  bool between = false;
  g_between_steps = [&] {
    if (std::exchange(between, true)) return;
    r.emplace(reads.create_reader({.topic = kTopic, .type = kType, .qos = keep_all()}, of_reader.listener()));
    EXPECT_TRUE(eventually([&] { return discovery_.has(PERFLAB_READER_FOUND); }));
  };
  std::optional<Writer> w =
      writes.create_writer({.topic = kTopic, .type = kType, .qos = best_effort}, of_writer.listener());
  g_between_steps = nullptr;
  ASSERT_TRUE(between) << "the library makes a writer known in another way: this test has to follow";
  EXPECT_TRUE(eventually([&] { return discovery_.has(PERFLAB_WRITER_FOUND); }));
  // From here on nothing is reported any more.
  w.reset();
  r.reset();
  EXPECT_EQ(of_writer.total(PERFLAB_INCOMPATIBLE_QOS), 0);
  EXPECT_EQ(of_reader.total(PERFLAB_INCOMPATIBLE_QOS), 0);
}

// What a participant made is gone with it, also where an endpoint of it could not be made.
TEST_F(FastDds, ParticipantIsGoneAfterAFilterThatCouldNotBeMade) {
  const auto threads = [] {
    std::size_t count = 0;
    for (const fs::directory_entry& entry : fs::directory_iterator("/proc/self/task")) {
      std::ifstream file(entry.path() / "comm");
      std::string name;
      if (std::getline(file, name) && name.starts_with("fdds.udp")) ++count;
    }
    return count;
  };
  ParticipantSettings given = settings();
  given.ignore_local_endpoints = true;
  given.options.emplace_back("transport", "udp");
  open_with(given);
  if (described().at("ignores_local_endpoints_by") == "library")
    GTEST_SKIP() << "this version of Fast DDS leaves local endpoints apart by itself, without filters";
  EXPECT_GT(threads(), 0u);
  {
    // Takes the name of the filter.
    const Writer w = writer(keep_all(), {}, (std::string(kTopic) + " not_own").c_str());
    EXPECT_THROW(reader(), Error);
  }
  close_participant();
  EXPECT_EQ(threads(), 0u);
}

}  // namespace
}  // namespace perflab::conformance

// EDP::pairing_writer_proxy_with_any_local_reader(const GUID_t&, WriterProxyData*) of Fast DDS 2.
extern "C" __attribute__((visibility("default"))) bool
_ZN8eprosima8fastrtps4rtps3EDP42pairing_writer_proxy_with_any_local_readerERKNS1_6GUID_tEPNS1_15WriterProxyDataE(
    void* self, const void* participant, void* writer) {
  using Function = bool (*)(void*, const void*, void*);
  // The library was loaded by the plug-in, for itself: RTLD_NEXT does not find it.
  static const Function original = [name = __func__] {
    std::string file;
    dl_iterate_phdr(
        [](dl_phdr_info* loaded, std::size_t, void* found) {
          if (std::string_view(loaded->dlpi_name).find("/libfastrtps.so") == std::string_view::npos) return 0;
          *static_cast<std::string*>(found) = loaded->dlpi_name;
          return 1;
        },
        &file);
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_NOLOAD);
    return reinterpret_cast<Function>(dlsym(library, name));
  }();
  if (perflab::conformance::g_between_steps) perflab::conformance::g_between_steps();
  return original(self, participant, writer);
}
