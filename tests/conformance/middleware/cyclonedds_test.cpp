// Cyclone DDS is configured by perflab and by nothing else, and says how; what it does beside other middlewares.
#include <dlfcn.h>
#include <sys/socket.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture.h"
#include "peer.h"

namespace {
thread_local std::size_t datagrams = 0;  // that this thread has sent
}

// Before the C library's, which it calls.
extern "C" __attribute__((visibility("default"))) ssize_t sendmsg(int socket, const msghdr* message, int flags) {
  static const auto next = reinterpret_cast<ssize_t (*)(int, const msghdr*, int)>(dlsym(RTLD_NEXT, "sendmsg"));
  ++datagrams;
  return next(socket, message, flags);
}

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
  expect_refused("batching", "yes", "on or off");
  expect_refused("batching_delay", "1ms", "batching=on beside it");
  expect_refused("security", "on", "path of a folder");
  expect_refused("security", "/no/such/folder", "identity_ca.pem");
  expect_refused("lease_duration", "10", "lease_duration");
  expect_refused("max_message_size", "100", "max_message_size");
  expect_refused("receive_buffer", "1KiB", "receive_buffer");
  expect_refused("socket_receive_buffer", "many", "socket_receive_buffer");
  expect_refused("socket_send_buffer", "1", "4 KiB to 2 GiB");
}

TEST_F(CycloneDds, WithoutBatchingEveryMessageIsADatagram) {
  perflab_qos qos = keep_all();
  qos.reliability = PERFLAB_BEST_EFFORT;
  Writer w = writer(qos);
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(std::string("reader r ") + kTopic + " " + kType + " keep_all best_effort volatile 1"), "ok");
  ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1; }));
  ASSERT_EQ(peer.ask("wait_matched r 1"), "ok");
  datagrams = 0;
  for (std::uint64_t number = 0; number < 20; ++number) write(w, number, 1024);
  EXPECT_EQ(datagrams, 20u);
  EXPECT_EQ(described().at("batching"), nullptr);
}

TEST_F(CycloneDds, BatchedMessagesLeaveInFullDatagrams) {
  open_with({{"batching", "on"}, {"batching_delay", "3600s"}, {"max_message_size", "14720"}});
  perflab_qos qos = keep_all();
  qos.reliability = PERFLAB_BEST_EFFORT;
  Writer w = writer(qos);
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(std::string("reader r ") + kTopic + " " + kType + " keep_all best_effort volatile 1"), "ok");
  ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1; }));
  ASSERT_EQ(peer.ask("wait_matched r 1"), "ok");
  datagrams = 0;
  for (std::uint64_t number = 0; number < 10; ++number) write(w, number, 1024);
  EXPECT_EQ(datagrams, 0u) << "they wait for others";
  for (std::uint64_t number = 10; number < 100; ++number) write(w, number, 1024);
  EXPECT_GE(datagrams, 6u);  // 100 KiB
  EXPECT_LE(datagrams, 9u) << "each is nearly full";
  EXPECT_EQ(described().at("batching").at("flushes"), 0);
  EXPECT_TRUE(peer.ask("take r 80 1024").ends_with(" ordered 1 first 0 last 90"));
}

TEST_F(CycloneDds, WhatWaitsForOthersLeavesAtTheLatestWithItsWriter) {
  open_with({{"batching", "on"}, {"batching_delay", "3600s"}});
  std::optional<Writer> w(writer());
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(std::string("reader r ") + kTopic + " " + kType + " keep_all reliable volatile 1"), "ok");
  ASSERT_TRUE(eventually([&] { return w->matched_readers() == 1; }));
  ASSERT_EQ(peer.ask("wait_matched r 1"), "ok");
  for (std::uint64_t number = 0; number < 5; ++number) write(*w, number);
  w.reset();
  EXPECT_EQ(peer.ask("take r 5 36"), "took 5 intact 5 ordered 1 first 0 last 4");
}

TEST_F(CycloneDds, AMessageThatNoOtherFollowsLeavesAfterTheDelay) {
  open_with({{"batching", "on"}, {"batching_delay", "3600s"}});
  perflab_qos qos = keep_all();
  qos.reliability = PERFLAB_BEST_EFFORT;
  Writer waits = writer(qos, {}, "rt/waits");
  qos.latency_budget_ns = 2'000'000;  // of the writer: goes before the option
  Writer w = writer(qos);
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(std::string("reader r ") + kTopic + " " + kType + " keep_all best_effort volatile 1 budget 2000000"), "ok");
  ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1; }));
  ASSERT_EQ(peer.ask("wait_matched r 1"), "ok");
  for (std::uint64_t number = 0; number < 3; ++number) {
    write(waits, number);
    write(w, number);
    EXPECT_EQ(peer.ask("take r 1 36"),
              "took 1 intact 1 ordered 1 first " + std::to_string(number) + " last " + std::to_string(number));
  }
  EXPECT_EQ(described().at("batching").at("flushes"), 3);
}

// While no other test has a daemon.
using WithoutIceoryx = CycloneDds;
TEST_F(WithoutIceoryx, SharedMemoryIsRefused) {
  expect_refused("shared_memory", "on", "iox-roudi");
}

// ---- through iceoryx ----

class Iceoryx : public CycloneDds {
 protected:
  static constexpr std::size_t kSize = 5000;
  middleware::EndpointSettings of(perflab_qos qos = usual_qos()) const {
    return {.topic = kTopic, .type = kType, .fixed_size = kSize, .qos = qos};
  }
  // Of the one reader or writer there was: messages, and how many of them went through shared memory.
  std::pair<int, int> passed(const char* ends) {
    const auto all = described().at(ends);
    EXPECT_EQ(all.size(), 1u);
    return {all[0].at("samples"), all[0].at("samples_in_shared_memory")};
  }
};

TEST_F(Iceoryx, MessagesOfFixedSizeGoThroughSharedMemoryAndThatIsCounted) {
  Writer w = participant().create_writer(of());
  Reader r = participant().create_reader(of());
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 20; ++number) {
    write(w, number, kSize);
    const auto all = take_until(r, 1);
    ASSERT_EQ(numbers(all), range(number, number + 1));
    EXPECT_TRUE(intact(all[0].bytes, kSize));
  }
  EXPECT_EQ(passed("writers"), std::pair(20, 20));
  EXPECT_EQ(passed("readers"), std::pair(20, 20));
}

TEST_F(Iceoryx, MessagesOfAnySizeGoOverTheNetwork) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  EXPECT_EQ(numbers(take_until(r, 1)), range(1, 2));
  EXPECT_EQ(passed("writers"), std::pair(1, 0));
  EXPECT_EQ(passed("readers"), std::pair(1, 0));
}

TEST_F(Iceoryx, WhatItDoesNotCarryIsRefused) {
  const auto refused = [&](const char* what, auto change) {
    perflab_qos qos = usual_qos();
    change(qos);
    for (const bool writes : {true, false}) {
      try {
        if (writes) {
          participant().create_writer(of(qos));
        } else {
          participant().create_reader(of(qos));
        }
        ADD_FAILURE() << what << " was accepted";
      } catch (const Error& refusal) {
        EXPECT_NE(std::string(refusal.what()).find(what), std::string::npos) << refusal.what();
        EXPECT_NE(std::string(refusal.what()).find("right would be"), std::string::npos) << refusal.what();
      }
    }
  };
  refused("keep_all", [](perflab_qos& qos) { qos.history = PERFLAB_KEEP_ALL; });
  refused("durability", [](perflab_qos& qos) { qos.durability = PERFLAB_TRANSIENT_LOCAL; });
  refused("liveliness", [](perflab_qos& qos) { qos.liveliness = PERFLAB_MANUAL_BY_TOPIC; });
  refused("deadline", [](perflab_qos& qos) { qos.deadline_ns = 1'000'000'000; });
  refused("partition", [](perflab_qos& qos) { qos.partition.text[0] = 'a'; });
}

TEST_F(Iceoryx, AWriterServesThoseWhoShareItsMemoryAndThoseWhoDoNot) {
  Writer w = participant().create_writer(of());
  Reader here = participant().create_reader(of());
  const std::string line = std::string("reader r ") + kTopic + " " + kType + " keep_last reliable volatile 10 fixed 5000";
  Peer shares(subject().plugin, domain_.id());
  Peer does_not(subject().plugin, domain_.id(), {{"shared_memory", "off"}});
  for (Peer* const peer : {&shares, &does_not}) {
    ASSERT_EQ(peer->ask(line), "ok");
    ASSERT_EQ(peer->ask("wait_matched r 1"), "ok");
  }
  ASSERT_TRUE(matched(w, here, 3));
  for (std::uint64_t number = 0; number < 5; ++number) write(w, number, kSize);
  EXPECT_EQ(numbers(take_until(here, 5)), range(0, 5));
  for (Peer* const peer : {&shares, &does_not})
    EXPECT_EQ(peer->ask("take r 5 5000"), "took 5 intact 5 ordered 1 first 0 last 4");
}

TEST_F(Iceoryx, DeepHistoriesDoNotHoldTheMemory) {
  perflab_qos qos = usual_qos();
  qos.depth = 400;  // more than a subscriber may hold
  Writer w = participant().create_writer(of());
  Reader r = participant().create_reader(of(qos));
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 350; ++number) {
    write(w, number, kSize);
    if (number % 20 == 19) std::this_thread::sleep_for(2ms);
  }
  EXPECT_EQ(numbers(take_until(r, 350)), range(0, 350));
}

TEST_F(Iceoryx, OthersDoNotReceiveWhatIsNotForThem) {
  perflab_qos offers = usual_qos();
  offers.reliability = PERFLAB_BEST_EFFORT;
  Writer w = participant().create_writer(of(offers));
  Reader matches = participant().create_reader(of(offers));
  Recorder recorder;
  Reader asks_more = participant().create_reader(of(reliable(usual_qos())), recorder.listener());
  ASSERT_TRUE(matched(w, matches));
  ASSERT_TRUE(eventually([&] { return recorder.has(PERFLAB_INCOMPATIBLE_QOS); }));
  write(w, 1, kSize);
  EXPECT_EQ(numbers(take_until(matches, 1)), range(1, 2));
  EXPECT_TRUE(take_until_quiet(asks_more, 50ms).empty());
}

TEST_F(Iceoryx, FullSharedMemoryIsToldInOneLineAndPasses) {
  const auto with_loans = [&](std::size_t depth) {
    perflab_qos qos = usual_qos();
    qos.depth = static_cast<std::int32_t>(depth);
    middleware::EndpointSettings settings = of(qos);
    settings.loans = true;
    return settings;
  };
  Writer w = participant().create_writer(with_loans(1));
  std::vector<void*> loans;
  perflab_error error{};
  void* message = nullptr;
  while (w.loan(message, error) == PERFLAB_OK) loans.push_back(message);
  EXPECT_EQ(loans.size(), 8u) << "as many as a publisher of iceoryx may have";
  EXPECT_NE(std::string(error.text).find("no room for a loan"), std::string::npos) << error.text;
  EXPECT_EQ(std::string(error.text).find('\n'), std::string::npos);
  for (void* const one : loans) w.discard_loan(one);
  EXPECT_EQ(w.loan(message, error), PERFLAB_OK);
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
