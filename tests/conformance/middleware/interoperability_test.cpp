// Two middlewares of one protocol: each is here once, with the other in another process.
#include <ostream>

#include "fixture.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

// Both know it.
const std::vector<std::pair<std::string, std::string>> kShortLease{{"lease_duration", "2s"}};

struct Side {
  const char* name;
  bool subject_is_here;
};
void PrintTo(const Side& side, std::ostream* out) { *out << side.name; }

class Interoperability : public testing::TestWithParam<Side> {
 protected:
  Interoperability()
      : plugin_(Plugin::load(here() ? subject().plugin : subject().other_plugin)),
        participant_(plugin_.open(discovery_.host(), settings())),
        peer_(here() ? subject().other_plugin : subject().plugin, domain_.id(), kShortLease) {}

  static bool here() { return GetParam().subject_is_here; }
  ParticipantSettings settings() const {
    ParticipantSettings settings;
    settings.domain = domain_.id();
    settings.participants_expected = 4;
    settings.options = kShortLease;
    if (here())
      settings.options.insert(settings.options.end(), subject().options.begin(), subject().options.end());
    return settings;
  }
  // Each part of a test has a topic of its own: Fast DDS 2.9 does not notice that a single endpoint of
  // Cyclone DDS is gone (it ignores keys of more than 16 bytes), and keeps it matched until its participant
  // is.
  Writer writer(const perflab_qos& qos, const std::string& topic, const perflab_key* key = nullptr) {
    return participant_.create_writer({.topic = topic, .type = kType, .qos = qos, .key = key});
  }
  Reader reader(const perflab_qos& qos, const std::string& topic, const perflab_listener& listener = {},
                const perflab_key* key = nullptr) {
    return participant_.create_reader({.topic = topic, .type = kType, .qos = qos, .key = key}, listener);
  }
  // The peer has one endpoint at a time.
  void peer_has(const char* kind, const perflab_qos& qos, const std::string& topic, const char* form = "") {
    EXPECT_EQ(peer_.ask(std::string(kind) + " x " + topic + " " + kType +
                        (qos.history == PERFLAB_KEEP_ALL ? " keep_all" : " keep_last") +
                        (qos.reliability == PERFLAB_RELIABLE ? " reliable" : " best_effort") +
                        (qos.durability == PERFLAB_TRANSIENT_LOCAL ? " transient_local " : " volatile ") +
                        std::to_string(qos.depth) + form),
              "ok");
  }
  template <typename Count>
  void expect_matched(Count&& count) {
    EXPECT_EQ(peer_.ask("wait_matched x 1"), "ok");
    EXPECT_TRUE(eventually([&] { return count() == 1; })) << count();
  }

  DomainLock domain_;
  Recorder discovery_;
  Plugin plugin_;
  Participant participant_;
  Peer peer_;
};

INSTANTIATE_TEST_SUITE_P(Here, Interoperability, testing::Values(Side{"subject", true}, Side{"other", false}),
                         [](const auto& info) { return info.param.name; });

TEST_P(Interoperability, SourceTimestampsAreTheSameToTheNanosecond) {
  Reader r = reader(keep_all(), "rt/stamped");
  peer_has("writer", keep_all(), "rt/stamped");
  expect_matched([&] { return r.matched_writers(); });
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t second = wall_ns() / kSecond * kSecond;
  std::vector<std::int64_t> said, found;
  for (std::int64_t i = 0; i < 200; ++i) {
    said.push_back(second + i * 4'999'999 % kSecond);
    ASSERT_EQ(peer_.ask("write_stamped x " + std::to_string(i) + " 100 " + std::to_string(said.back())),
              "wrote 1");
  }
  for (const Taken& one : take_until(r, said.size())) found.push_back(one.source_timestamp_ns);
  EXPECT_EQ(found, said);
}

TEST_P(Interoperability, MessagesArriveInOrderWithoutLossBothWays) {
  constexpr std::uint64_t kCount = 1000;
  {
    Writer w = writer(keep_all(), "rt/there");
    peer_has("reader", keep_all(), "rt/there");
    expect_matched([&] { return w.matched_readers(); });
    for (std::uint64_t number = 0; number < kCount; ++number) write(w, number, 101);
    EXPECT_EQ(peer_.ask("take x 1000 101"), "took 1000 intact 1000 ordered 1 first 0 last 999");
    EXPECT_EQ(peer_.ask("destroy x"), "ok");
  }
  {
    Reader r = reader(keep_all(), "rt/back");
    peer_has("writer", keep_all(), "rt/back");
    expect_matched([&] { return r.matched_writers(); });
    EXPECT_EQ(peer_.ask("write x 0 1000 101"), "wrote 1000");
    const auto taken = take_until(r, kCount);
    EXPECT_EQ(numbers(taken), range(0, kCount));
    const std::string identity = peer_.ask("identity x");
    for (const Taken& one : taken) {
      ASSERT_TRUE(intact(one.bytes, 101));
      ASSERT_EQ(to_hex(one.writer), identity);
    }
  }
}

TEST_P(Interoperability, UserDataIsSeen) {
  const std::string data = "typehash=RIHS01_" + std::string(64, 'a') + ";";
  ASSERT_EQ(peer_.ask(std::string("reader r ") + kTopic + " " + kType + " keep_all reliable volatile 1 data " + data),
            "ok");
  const std::vector<std::string> expected{std::string("reads ") + kType + " " + data};
  EXPECT_TRUE(eventually([&] { return elsewhere(participant_, kTopic) == expected; }));
}

TEST_P(Interoperability, EndpointThatIsGoneHereIsGoneThere) {
  // The other way round is Fast DDS's limit, see above.
  if (here()) GTEST_SKIP() << "is the same with the sides exchanged";
  Writer w = writer(keep_all(), kTopic);
  peer_has("reader", keep_all(), kTopic);
  expect_matched([&] { return w.matched_readers(); });
  EXPECT_EQ(peer_.ask("destroy x"), "ok");
  EXPECT_TRUE(eventually([&] { return w.matched_readers() == 0; }));
}

TEST_P(Interoperability, ProcessThatIsGoneIsNoticed) {
  Writer w = writer(keep_all(), kTopic);
  peer_has("reader", keep_all(), kTopic);
  expect_matched([&] { return w.matched_readers(); });
  peer_.kill();
  EXPECT_TRUE(eventually([&] { return w.matched_readers() == 0; }));
  EXPECT_TRUE(eventually([&] { return discovery_.has(PERFLAB_PARTICIPANT_LOST); }));
}

TEST_P(Interoperability, LargeMessagesArriveBothWays) {
  // Cyclone DDS joins a stream at the first heartbeat that it sees of the writer; a message of several
  // packets that is under way by then is history to it, and lost. Fast DDS sends a heartbeat when it has
  // matched a reader, which Cyclone drops where it does not know the writer yet, and the next one within 3 s
  // of the first message.
  const auto settle = [] { std::this_thread::sleep_for(3500ms); };
  const std::size_t sizes[] = {20'000, 70'001, 1'000'000};
  {
    Writer w = writer(keep_all(), "rt/there");
    peer_has("reader", keep_all(), "rt/there");
    expect_matched([&] { return w.matched_readers(); });
    write(w, 0, 100);
    EXPECT_EQ(peer_.ask("take x 1 100"), "took 1 intact 1 ordered 1 first 0 last 0");
    settle();
    for (const std::size_t size : sizes) {
      for (std::uint64_t number = 0; number < 5; ++number) write(w, number, size);
      EXPECT_EQ(peer_.ask("take x 5 " + std::to_string(size)), "took 5 intact 5 ordered 1 first 0 last 4");
    }
    EXPECT_EQ(peer_.ask("destroy x"), "ok");
  }
  Reader r = reader(keep_all(), "rt/back");
  peer_has("writer", keep_all(), "rt/back");
  expect_matched([&] { return r.matched_writers(); });
  EXPECT_EQ(peer_.ask("write x 0 1 100"), "wrote 1");
  EXPECT_EQ(take_until(r, 1).size(), 1u);
  settle();
  for (const std::size_t size : sizes) {
    const std::int64_t before = now_ns();
    EXPECT_EQ(peer_.ask("write x 0 5 " + std::to_string(size)), "wrote 5");
    const auto taken = take_until(r, 5);
    EXPECT_EQ(numbers(taken), range(0, 5)) << size;
    for (const Taken& one : taken) {
      EXPECT_TRUE(intact(one.bytes, size));
      if (one.reception_ns == PERFLAB_TIME_UNKNOWN) continue;
      EXPECT_GE(one.reception_ns, before);
      EXPECT_LE(one.reception_ns, one.taken_ns);
    }
  }
}

perflab_qos qos_of(perflab_reliability reliability, perflab_durability durability) {
  perflab_qos qos = keep_all();
  qos.reliability = reliability;
  qos.durability = durability;
  return qos;
}

TEST_P(Interoperability, QosMatchAsDdsSays) {
  int part = 0;
  for (const auto offered_reliability : {PERFLAB_BEST_EFFORT, PERFLAB_RELIABLE}) {
    for (const auto requested_reliability : {PERFLAB_BEST_EFFORT, PERFLAB_RELIABLE}) {
      for (const auto offered_durability : {PERFLAB_VOLATILE, PERFLAB_TRANSIENT_LOCAL}) {
        for (const auto requested_durability : {PERFLAB_VOLATILE, PERFLAB_TRANSIENT_LOCAL}) {
          SCOPED_TRACE(testing::Message() << "reliability " << offered_reliability << requested_reliability
                                          << " durability " << offered_durability << requested_durability);
          const perflab_qos offered = qos_of(offered_reliability, offered_durability);
          const perflab_qos requested = qos_of(requested_reliability, requested_durability);
          const bool compatible =
              offered_reliability >= requested_reliability && offered_durability >= requested_durability;
          const std::string topic = "rt/qos" + std::to_string(part++);
          Recorder recorder;
          Reader r = reader(requested, topic, recorder.listener());
          peer_has("writer", offered, topic);
          if (compatible) {
            expect_matched([&] { return r.matched_writers(); });
            std::uint64_t number = 0;
            EXPECT_TRUE(eventually([&] {
              EXPECT_EQ(peer_.ask("write x " + std::to_string(number++) + " 1 100"), "wrote 1");
              return take(r).has_value();
            }));
          } else {
            EXPECT_TRUE(eventually([&] { return recorder.has(PERFLAB_INCOMPATIBLE_QOS); }));
            EXPECT_EQ(r.matched_writers(), 0u);
            EXPECT_EQ(peer_.ask("wait_matched x 0"), "ok");
          }
          EXPECT_EQ(peer_.ask("destroy x"), "ok");
        }
      }
    }
  }
}

TEST_P(Interoperability, LateJoinerGetsTheHistoryBothWays) {
  perflab_qos offered = middleware::default_qos();
  offered.depth = 4;
  offered.durability = PERFLAB_TRANSIENT_LOCAL;
  const perflab_qos requested = qos_of(PERFLAB_RELIABLE, PERFLAB_TRANSIENT_LOCAL);
  {
    Writer w = writer(offered, "rt/there");
    for (std::uint64_t number = 0; number < 10; ++number) write(w, number, 100);
    peer_has("reader", requested, "rt/there");
    EXPECT_EQ(peer_.ask("take x 4 100"), "took 4 intact 4 ordered 1 first 6 last 9");
    EXPECT_EQ(peer_.ask("destroy x"), "ok");
  }
  peer_has("writer", offered, "rt/back");
  EXPECT_EQ(peer_.ask("write x 0 10 100"), "wrote 10");
  Reader late = reader(requested, "rt/back");
  EXPECT_EQ(numbers(take_until(late, 4)), range(6, 10));
  EXPECT_TRUE(take_until_quiet(late, 100ms).empty());
}

TEST_P(Interoperability, TheLastOfEachInstanceArrivesBothWays) {
  perflab_qos last = middleware::default_qos();
  last.depth = 1;
  const auto numbers_of = [](std::uint32_t round) {
    std::vector<std::uint64_t> all;
    for (std::uint32_t instance = 0; instance < 10; ++instance) all.push_back(number_in(instance, round));
    return all;
  };
  {
    Writer w = writer(keep_all(), "rt/there", key_of_messages());
    peer_has("reader", last, "rt/there", " keyed");
    expect_matched([&] { return w.matched_readers(); });
    // The reader has one at a time of each, and says when it has them all.
    for (std::uint32_t round = 0; round < 3; ++round) {
      for (const std::uint64_t number : numbers_of(round)) write(w, number, 101);
      const std::string answer = peer_.ask("take x 10 101");
      EXPECT_TRUE(answer.starts_with("took 10 intact 10 ")) << answer;
    }
    EXPECT_EQ(peer_.ask("destroy x"), "ok");
  }
  {
    Reader r = reader(last, "rt/back", {}, key_of_messages());
    Reader complete = reader(keep_all(), "rt/back", {}, key_of_messages());
    peer_has("writer", keep_all(), "rt/back", " keyed");
    EXPECT_EQ(peer_.ask("wait_matched x 2"), "ok");
    ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1 && complete.matched_writers() == 1; }));
    for (std::uint32_t round = 0; round < 3; ++round)
      EXPECT_EQ(peer_.ask("write x " + std::to_string(number_in(0, round)) + " 10 101"), "wrote 10");
    EXPECT_EQ(take_until(complete, 30).size(), 30u);
    std::vector<std::uint64_t> got = numbers(take_until(r, 10));
    std::ranges::sort(got);
    EXPECT_EQ(got, numbers_of(2));
    EXPECT_TRUE(take_until_quiet(r, 50ms).empty());
  }
}

TEST_P(Interoperability, EndpointsAreReported) {
  peer_has("writer", keep_all(), kTopic);
  EXPECT_TRUE(eventually([&] { return discovery_.has(PERFLAB_WRITER_FOUND); }));
  const auto found = discovery_.find(PERFLAB_WRITER_FOUND);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->topic, kTopic);
  EXPECT_EQ(found->type, kType);
  EXPECT_EQ(to_hex(found->peer), peer_.ask("identity x"));
}

}  // namespace
}  // namespace perflab::conformance
