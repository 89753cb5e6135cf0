// Opening, describing and closing a participant.
#include <filesystem>
#include <nlohmann/json.hpp>

#include "fixture.h"

namespace perflab::conformance {
namespace {

std::size_t entries(const char* folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}
std::size_t threads() { return entries("/proc/self/task"); }
std::size_t descriptors() { return entries("/proc/self/fd"); }

TEST_F(Conformance, PluginTellsNameSummaryAndVersion) {
  EXPECT_FALSE(plugin_.name().empty());
  EXPECT_FALSE(plugin_.summary().empty());
  EXPECT_FALSE(plugin_.version().empty());
  EXPECT_EQ(plugin_.summary().find('\n'), std::string_view::npos);
}

TEST_F(Conformance, ParticipantDescribesItselfAsAJsonObject) {
  EXPECT_TRUE(nlohmann::json::parse(participant().describe()).is_object());
  EXPECT_TRUE(nlohmann::json::parse(participant().describe()).is_object());
}

TEST_F(Conformance, UnknownOptionIsRefusedByName) {
  ParticipantSettings given = settings();
  given.options = {{"no_such_option", "1"}};
  try {
    plugin_.open(discovery_.host(), given);
    FAIL() << "the option was ignored";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.kind(), Error::Kind::kBadInput);
    EXPECT_NE(std::string(refusal.what()).find("no_such_option"), std::string::npos) << refusal.what();
    EXPECT_EQ(std::string(refusal.what()).find('\n'), std::string::npos) << refusal.what();
  }
}

TEST_F(Conformance, DomainOutOfRangeIsRefused) {
  ParticipantSettings given = settings();
  given.domain = 233;
  EXPECT_THROW(plugin_.open(discovery_.host(), given), Error);
}

TEST_F(Conformance, NetworkThatDoesNotExistIsRefusedByName) {
  ParticipantSettings given = settings();
  given.network = "nosuchnet0";
  try {
    plugin_.open(discovery_.host(), given);
    FAIL() << "the network was ignored";
  } catch (const Error& refusal) {
    EXPECT_NE(std::string(refusal.what()).find("nosuchnet0"), std::string::npos) << refusal.what();
  }
}

TEST_F(Conformance, FailedOpenLeavesNothingBehind) {
  ParticipantSettings given = settings();
  given.options = {{"no_such_option", "1"}};
  EXPECT_THROW(plugin_.open(discovery_.host(), given), Error);
  const std::size_t threads_before = threads();
  const std::size_t descriptors_before = descriptors();
  EXPECT_THROW(plugin_.open(discovery_.host(), given), Error);
  EXPECT_EQ(threads(), threads_before);
  EXPECT_EQ(descriptors(), descriptors_before);
}

TEST_F(Conformance, EmptyNamesAreRefused) {
  EXPECT_THROW(writer(keep_all(), {}, "", kType), Error);
  EXPECT_THROW(writer(keep_all(), {}, kTopic, ""), Error);
  EXPECT_THROW(reader(keep_all(), {}, "", kType), Error);
  EXPECT_THROW(reader(keep_all(), {}, kTopic, ""), Error);
}

TEST_F(Conformance, InvalidQosIsRefused) {
  perflab_qos qos = usual_qos();
  qos.depth = 0;
  EXPECT_THROW(writer(qos), Error);
  EXPECT_THROW(reader(qos), Error);
  qos = usual_qos();
  qos.deadline_ns = 0;
  EXPECT_THROW(writer(qos), Error);
}

TEST_F(Conformance, CloseFreesThreadsAndDescriptors) {
  const auto cycle = [this] {
    Recorder recorder;
    Writer w = writer();
    Reader r = reader(keep_all(), recorder.listener());
    WaitSet set = participant().create_waitset();
    set.attach(r, 1);
    ASSERT_TRUE(matched(w, r));
    write(w, 1, 100'000);
    EXPECT_EQ(take_until(r, 1).size(), 1u);
  };
  cycle();  // what a library keeps for the life of the process
  close_participant();
  const std::size_t threads_before = threads();
  const std::size_t descriptors_before = descriptors();
  for (int i = 0; i < 3; ++i) {
    cycle();
    close_participant();
  }
  // A thread that has been joined may still be listed for a moment.
  EXPECT_TRUE(eventually([&] { return threads() <= threads_before; }))
      << threads() << " threads, before " << threads_before;
  EXPECT_EQ(descriptors(), descriptors_before);
}

TEST_F(Conformance, DestroyingEntitiesFreesDescriptorsAndThreads) {
  participant();
  const auto cycle = [this] {
    Writer w = writer();
    Reader r = reader();
    WaitSet set = participant().create_waitset();
    set.attach(r, 1);
    ASSERT_TRUE(matched(w, r));
  };
  cycle();
  const std::size_t threads_before = threads();
  const std::size_t descriptors_before = descriptors();
  for (int i = 0; i < 10; ++i) cycle();
  EXPECT_EQ(descriptors(), descriptors_before);
  EXPECT_TRUE(eventually([&] { return threads() <= threads_before; }));
}

TEST_F(Conformance, DomainsDoNotMeet) {
  const DomainLock other_domain;
  ParticipantSettings other_settings = settings();
  other_settings.domain = other_domain.id();
  Recorder other_discovery;
  Participant other = plugin_.open(other_discovery.host(), other_settings);

  Writer w = writer();
  Reader near = reader();
  Reader far = other.create_reader({.topic = kTopic, .type = kType, .qos = keep_all()});
  ASSERT_TRUE(matched(w, near));
  write(w, 1);
  EXPECT_EQ(take_until(near, 1).size(), 1u);
  EXPECT_TRUE(take_until_quiet(far).empty());
  EXPECT_EQ(far.matched_writers(), 0u);
  EXPECT_FALSE(discovery_.has(PERFLAB_PARTICIPANT_FOUND));
  EXPECT_FALSE(other_discovery.has(PERFLAB_PARTICIPANT_FOUND));
}

TEST_F(Conformance, DomainCanBeOpenedAgain) {
  for (std::uint64_t i = 0; i < 3; ++i) {
    {
      Writer w = writer();
      Reader r = reader();
      ASSERT_TRUE(matched(w, r));
      write(w, i);
      EXPECT_EQ(numbers(take_until(r, 1)), range(i, i + 1));
    }
    close_participant();
  }
}

}  // namespace
}  // namespace perflab::conformance
