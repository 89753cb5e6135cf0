// Topics with keys: histories have their depth for each instance.
#include <algorithm>

#include "fixture.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

constexpr std::uint32_t kInstances = 10;
constexpr std::uint32_t kRounds = 5;

perflab_qos keep_last(std::int32_t depth, perflab_durability durability = PERFLAB_VOLATILE) {
  perflab_qos qos = middleware::default_qos();
  qos.depth = depth;
  qos.durability = durability;
  return qos;
}

// The messages of the last rounds.
std::vector<std::uint64_t> last_of_all(std::uint32_t rounds) {
  std::vector<std::uint64_t> all;
  for (std::uint32_t round = kRounds - rounds; round < kRounds; ++round)
    for (std::uint32_t instance = 0; instance < kInstances; ++instance) all.push_back(number_in(instance, round));
  return all;
}

std::vector<std::uint64_t> sorted(std::vector<std::uint64_t> all) {
  std::ranges::sort(all);
  return all;
}

class Instances : public Conformance {
 protected:
  Writer keyed_writer(const perflab_qos& qos = keep_all()) {
    return participant().create_writer({.topic = kTopic, .type = kType, .qos = qos, .key = key_of_messages()});
  }
  Reader keyed_reader(const perflab_qos& qos = keep_all()) {
    return participant().create_reader({.topic = kTopic, .type = kType, .qos = qos, .key = key_of_messages()});
  }
  static std::string keyed_endpoint(const char* kind, const char* history, const char* form = " keyed") {
    return std::string(kind) + " x " + kTopic + " " + kType + " " + history + " reliable volatile 1" + form;
  }
  // In pieces, of which none has the whole key.
  static void write_all(Writer& writer) {
    for (std::uint32_t round = 0; round < kRounds; ++round) {
      for (std::uint32_t instance = 0; instance < kInstances; ++instance) {
        const auto bytes = make_message(number_in(instance, round), 101);
        const perflab_bytes parts[] = {{bytes.data(), 5}, {nullptr, 0}, {bytes.data() + 5, bytes.size() - 5}};
        perflab_error error{};
        ASSERT_EQ(writer.write(parts, error), PERFLAB_OK) << error.text;
      }
    }
  }
};

TEST_F(Instances, KeepLastKeepsTheLastOfEach) {
  for (const std::int32_t depth : {1, 3}) {
    PERFLAB_CREATE_OR_REFUSE(w, keyed_writer(), "keys");
    Reader r = keyed_reader(keep_last(depth));
    Reader complete = keyed_reader();
    ASSERT_TRUE(matched(w, r, 2));
    ASSERT_TRUE(matched(w, complete, 2));
    write_all(w);
    const std::vector<Taken> all = take_until(complete, kInstances * kRounds);
    EXPECT_EQ(sorted(numbers(all)), last_of_all(kRounds));
    for (const Taken& one : all) EXPECT_TRUE(intact(one.bytes, 101));
    std::vector<std::uint64_t> got;
    EXPECT_TRUE(eventually([&] {
      got = numbers(take_until_quiet(r, 50ms));
      return !got.empty();
    }));
    EXPECT_EQ(sorted(got), last_of_all(static_cast<std::uint32_t>(depth)));
  }
}

TEST_F(Instances, MessagesOfEachComeInTheirOrder) {
  PERFLAB_CREATE_OR_REFUSE(w, keyed_writer(), "keys");
  Reader r = keyed_reader();
  ASSERT_TRUE(matched(w, r));
  write_all(w);
  std::vector<std::uint64_t> next(kInstances, 0);
  for (const std::uint64_t number : numbers(take_until(r, kInstances * kRounds))) {
    const std::uint64_t instance = number & UINT32_MAX;
    ASSERT_LT(instance, kInstances);
    EXPECT_EQ(number >> 32, next[instance]++) << instance;
  }
  EXPECT_EQ(next, std::vector<std::uint64_t>(kInstances, kRounds));
}

TEST_F(Instances, LateJoinerGetsTheLastOfEach) {
  PERFLAB_CREATE_OR_REFUSE(w, keyed_writer(keep_last(2, PERFLAB_TRANSIENT_LOCAL)), "keys");
  write_all(w);
  perflab_qos requested = keep_all();
  requested.durability = PERFLAB_TRANSIENT_LOCAL;
  Reader late = keyed_reader(requested);
  EXPECT_EQ(sorted(numbers(take_until(late, 2 * kInstances))), last_of_all(2));
  EXPECT_TRUE(take_until_quiet(late, 100ms).empty());
}

TEST_F(Instances, ThereMayBeMany) {
  constexpr std::uint32_t kMany = 3000;
  PERFLAB_CREATE_OR_REFUSE(w, keyed_writer(keep_last(1)), "keys");
  Reader r = keyed_reader(keep_last(1));
  ASSERT_TRUE(matched(w, r));
  std::vector<std::uint64_t> expected;
  for (std::uint32_t instance = 0; instance < kMany; ++instance) {
    expected.push_back(number_in(instance, 0));
    write(w, expected.back());
  }
  EXPECT_EQ(sorted(numbers(take_until(r, kMany))), expected);
}

TEST_F(Instances, TheLastOfEachArrivesFromAnotherProcess) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  PERFLAB_CREATE_OR_REFUSE(r, keyed_reader(keep_last(1)), "keys");
  Reader complete = keyed_reader();
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(keyed_endpoint("writer", "keep_all")), "ok");
  EXPECT_EQ(peer.ask("wait_matched x 2"), "ok");
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1 && complete.matched_writers() == 1; }));
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    EXPECT_EQ(peer.ask("write x " + std::to_string(number_in(0, round)) + " " + std::to_string(kInstances) + " 101"),
              "wrote " + std::to_string(kInstances));
  }
  EXPECT_EQ(take_until(complete, kInstances * kRounds).size(), kInstances * kRounds);
  EXPECT_EQ(sorted(numbers(take_until(r, kInstances))), last_of_all(1));
  EXPECT_TRUE(take_until_quiet(r, 50ms).empty());
}

TEST_F(Instances, TopicWithKeysDoesNotMatchOneWithout) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  PERFLAB_CREATE_OR_REFUSE(w, keyed_writer(), "keys");
  Peer without(subject().plugin, domain_.id()), with(subject().plugin, domain_.id());
  ASSERT_EQ(without.ask(keyed_endpoint("reader", "keep_all", "")), "ok");
  ASSERT_EQ(with.ask(keyed_endpoint("reader", "keep_all")), "ok");
  EXPECT_EQ(with.ask("wait_matched x 1"), "ok");
  EXPECT_TRUE(eventually([&] { return w.matched_readers() == 1; }));
  // A topic that both have without keys tells when they have met.
  Writer met = writer(keep_all(), {}, "rt/met", "Other_");
  EXPECT_EQ(without.ask("reader met rt/met Other_ keep_all reliable volatile 1"), "ok");
  EXPECT_TRUE(eventually([&] { return met.matched_readers() == 1; }));
  EXPECT_EQ(w.matched_readers(), 1u);
  EXPECT_EQ(without.ask("wait_matched x 0"), "ok");
}

}  // namespace
}  // namespace perflab::conformance
