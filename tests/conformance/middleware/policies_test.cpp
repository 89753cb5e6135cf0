// The QoS policies by the table of all (middleware/policies.h): what the plug-in declares it does, what it does not declare it
// refuses.
#include <signal.h>

#include <map>
#include <set>
#include <string>

#include "fixture.h"
#include "peer.h"
#include "middleware/disturb/disturb.h"
#include "middleware/policies.h"

namespace perflab::conformance {
namespace {

using middleware::each_policy;

// What the plug-in says of a policy, and the layer that disturbs where it lies over it: the less of the two.
perflab_support support_of(const Plugin& plugin, const char* policy) {
  const auto of = [policy](const perflab_policy* policies) {
    const perflab_policy* const found = middleware::declared(policies, policy);
    return found == nullptr ? PERFLAB_REFUSED : found->support;
  };
  const bool disturbed = std::ranges::any_of(
      subject().options, [](const auto& option) { return option.first.starts_with("disturb."); });
  const perflab_support below = of(plugin.policies());
  return disturbed ? std::min(below, of(middleware::disturb::table().policies())) : below;
}

perflab_text text(const std::string& given) {
  perflab_text made{};
  given.copy(made.text, sizeof made.text - 1);
  return made;
}

// A value that asks something of a middleware.
template <const auto& words>
auto demanding(middleware::form::Words<words> /*form*/, auto /*neutral*/) {
  using Enumerator = std::remove_cvref_t<decltype(words[0].value)>;
  return static_cast<Enumerator>(1);
}
std::int32_t demanding(middleware::form::Depth /*form*/, std::int32_t /*neutral*/) { return 1; }
std::int64_t demanding(middleware::form::Limit /*form*/, std::int64_t /*neutral*/) { return 5'000'000'000; }
std::int64_t demanding(middleware::form::Duration /*form*/, std::int64_t /*neutral*/) { return 50'000'000; }
std::int32_t demanding(middleware::form::Number /*form*/, std::int32_t /*neutral*/) { return 3; }
std::int32_t demanding(middleware::form::Most /*form*/, std::int32_t /*neutral*/) { return 100; }
bool demanding(middleware::form::Flag /*form*/, bool /*neutral*/) { return true; }
perflab_text demanding(middleware::form::Text /*form*/, const perflab_text& /*neutral*/) { return text("a"); }
perflab_text demanding(middleware::form::Names /*form*/, const perflab_text& /*neutral*/) { return text("a"); }

TEST_F(Conformance, WhatIsDeclaredIsAPolicy) {
  std::set<std::string> known;
  each_policy([&](const auto& row) {
    known.insert(row.policy);
    if constexpr (requires { row.form.words; })
      for (const auto& word : row.form.words) known.insert(std::string(row.policy) + "=" + std::string(word.text));
  });
  std::set<std::string> named;
  for (const perflab_policy* one = plugin_.policies(); one->name != nullptr; ++one) {
    EXPECT_TRUE(known.contains(one->name)) << one->name;
    EXPECT_TRUE(named.insert(one->name).second) << one->name << " is declared twice";
  }
}

// What is declared as supported has a test of its effect here, which is not skipped where it is declared.
TEST_F(Conformance, WhatIsDeclaredAsSupportedHasATestOfItsEffect) {
  const std::map<std::string, const char*> proofs{
      {"history", "KeepLastDropsTheOldest"},
      {"reliability", "ReliableMessagesArriveInOrderWithoutLoss"},
      {"durability", "LateJoinerGetsTheHistoryOfATransientLocalWriter"},
      {"deadline", "MissedDeadlineIsReportedOnBothSides"},
      {"lifespan", "ExpiredMessagesAreNotTaken"},
      {"liveliness", "AutomaticLivelinessIsNotLostWithoutMessages"},
      {"partition", "EndpointsMatchWhereTheyHaveAPartitionInCommon"},
      {"ownership", "OnlyTheStrongestExclusiveWriterIsHeardAndAnotherTakesOver"},
      {"time_based_filter", "AFastWriterIsThinnedToTheMinimumSeparation"},
      {"destination_order", "BySourceWhatIsOlderThanTheLastIsDropped"},
      {"presentation", "OrderedAccessKeepsTheOrderAcrossInstances"},
      {"durability=transient", "TransientMessagesOutliveTheirWriter"},
      {"durability=persistent", "TransientMessagesOutliveTheirWriter"},
      {"resource_limits", "AFullReaderHoldsNoMoreThanItsLimit"},
      {"user_data", "PeersSeeWhatEndpointsSayOfThemselves"},
      {"topic_data", "PeersSeeWhatEndpointsSayOfThemselves"},
      {"group_data", "PeersSeeWhatEndpointsSayOfThemselves"}};
  std::set<std::string> tests;
  const testing::UnitTest& all = *testing::UnitTest::GetInstance();
  for (int suite = 0; suite < all.total_test_suite_count(); ++suite) {
    const testing::TestSuite& one = *all.GetTestSuite(suite);
    for (int test = 0; test < one.total_test_count(); ++test) tests.insert(one.GetTestInfo(test)->name());
  }
  for (const perflab_policy* one = plugin_.policies(); one->name != nullptr; ++one) {
    if (one->support != PERFLAB_SUPPORTED) continue;
    const auto proof = proofs.find(one->name);
    ASSERT_NE(proof, proofs.end()) << one->name << " is declared as supported, and no test shows what it does";
    EXPECT_TRUE(tests.contains(proof->second)) << proof->second;
  }
}

// Alone, each policy is either taken or refused, as declared.
TEST_F(Conformance, PoliciesAreRefusedWhereTheyAreNotDeclared) {
  each_policy([&](const auto& row) {
    if (std::string_view(row.name) == "depth") return;
    SCOPED_TRACE(row.name);
    perflab_qos qos = usual_qos();
    if (row.policy != std::string_view("reliability")) qos.reliability = PERFLAB_BEST_EFFORT;
    qos.*row.member = demanding(row.form, qos.*row.member);
    if (qos.max_samples_per_instance < qos.depth) qos.depth = 1;
    const bool refused = support_of(plugin_, row.policy) == PERFLAB_REFUSED;
    try {
      if (row.ends == middleware::Ends::kReaders) {
        Reader made = reader(qos);
      } else {
        Writer made = writer(qos);
      }
      EXPECT_FALSE(refused) << "it is not declared, and taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kUnsupported) << error.what();
      const bool of_writers = row.policy == std::string_view("resource_limits") && may_refuse("writer_limits");
      EXPECT_TRUE(refused || may_refuse(row.policy) || of_writers) << error.what();
      EXPECT_NE(std::string(error.what()).find(row.name), std::string::npos) << error.what();
    }
  });
}

TEST_F(Conformance, DurabilityBeyondTransientLocalIsRefused) {
  for (const perflab_durability durability : {PERFLAB_TRANSIENT, PERFLAB_PERSISTENT}) {
    perflab_qos qos = usual_qos();
    qos.durability = durability;
    EXPECT_THROW(writer(qos), Unsupported);
    EXPECT_THROW(reader(qos), Unsupported);
  }
}

#define PERFLAB_SUPPORTED_OR_SKIP(policy)                        \
  if (support_of(plugin_, policy) != PERFLAB_SUPPORTED ||        \
      may_refuse(policy)) {                                      \
    GTEST_SKIP() << "not declared as supported: " << (policy);   \
  }

TEST_F(Conformance, EndpointsMatchWhereTheyHaveAPartitionInCommon) {
  PERFLAB_SUPPORTED_OR_SKIP("partition");
  const auto of = [](const std::string& names) {
    perflab_qos qos = keep_all();
    qos.partition = text(names);
    return qos;
  };
  Writer a = writer(of("a"));
  Writer both = writer(of("a,b"));
  Writer none = writer();
  Reader reads_a = reader(of("a"));
  Reader reads_b = reader(of("b"));
  Reader reads_none = reader();
  ASSERT_TRUE(matched(a, reads_a, 1, 2));
  ASSERT_TRUE(matched(both, reads_b, 2, 1));
  ASSERT_TRUE(matched(none, reads_none));
  write(a, 1);
  write(both, 2);
  write(none, 3);
  EXPECT_EQ(take_until(reads_a, 2).size(), 2u);
  EXPECT_EQ(numbers(take_until(reads_b, 1)), range(2, 3));
  EXPECT_EQ(numbers(take_until(reads_none, 1)), range(3, 4));
  EXPECT_TRUE(take_until_quiet(reads_a, 20ms).empty());
  EXPECT_TRUE(take_until_quiet(reads_b, 20ms).empty());
}

TEST_F(Conformance, OnlyTheStrongestExclusiveWriterIsHeardAndAnotherTakesOver) {
  PERFLAB_SUPPORTED_OR_SKIP("ownership");
  perflab_qos qos = keep_all();
  qos.ownership = PERFLAB_EXCLUSIVE;
  Reader r = reader(qos);
  qos.ownership_strength = 1;
  Writer weak = writer(qos);
  qos.ownership_strength = 2;
  std::optional<Writer> strong(writer(qos));
  ASSERT_TRUE(matched(weak, r, 1, 2));
  ASSERT_TRUE(matched(*strong, r, 1, 2));
  write(*strong, 1);
  write(weak, 2);
  write(*strong, 3);
  EXPECT_EQ(numbers(take_until(r, 2)), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_TRUE(take_until_quiet(r, 20ms).empty());
  strong.reset();
  ASSERT_TRUE(matched(weak, r));
  EXPECT_TRUE(eventually([&] {
    write(weak, 4);
    const auto one = take(r);
    return one && one->number() == 4;
  }));
}

TEST_F(Conformance, ExclusiveAndSharedOwnershipDoNotMatch) {
  PERFLAB_SUPPORTED_OR_SKIP("ownership");
  perflab_qos qos = keep_all();
  qos.ownership = PERFLAB_EXCLUSIVE;
  Recorder of_writer, of_reader;
  Writer w = writer(qos, of_writer.listener());
  Reader r = reader(keep_all(), of_reader.listener());
  EXPECT_TRUE(eventually([&] { return of_writer.has(PERFLAB_INCOMPATIBLE_QOS) && of_reader.has(PERFLAB_INCOMPATIBLE_QOS); }));
  EXPECT_EQ(of_writer.find(PERFLAB_INCOMPATIBLE_QOS)->policy, "ownership");
  EXPECT_EQ(w.matched_readers(), 0u);
}

TEST_F(Conformance, AFastWriterIsThinnedToTheMinimumSeparation) {
  PERFLAB_SUPPORTED_OR_SKIP("time_based_filter");
  perflab_qos qos = keep_all();
  qos.time_based_filter_ns = 50'000'000;
  Writer w = writer();
  Reader thinned = reader(qos);
  Reader complete = reader();
  ASSERT_TRUE(matched(w, thinned, 2));
  ASSERT_TRUE(matched(w, complete, 2));
  for (std::uint64_t number = 0; number < 40; ++number) {
    write(w, number);
    std::this_thread::sleep_for(5ms);
  }
  EXPECT_EQ(take_until(complete, 40).size(), 40u);
  const std::vector<Taken> all = take_until_quiet(thinned, 100ms);
  ASSERT_GE(all.size(), 2u);
  for (std::size_t i = 1; i < all.size(); ++i)
    EXPECT_GE(all[i].source_timestamp_ns - all[i - 1].source_timestamp_ns, qos.time_based_filter_ns);
}

TEST_F(Conformance, BySourceWhatIsOlderThanTheLastIsDropped) {
  PERFLAB_SUPPORTED_OR_SKIP("destination_order");
  perflab_qos qos = keep_all();
  qos.destination_order = PERFLAB_BY_SOURCE;
  Writer first = writer(qos);
  Writer second = writer(qos);
  Reader by_source = reader(qos);
  Reader by_reception = reader();
  ASSERT_TRUE(matched(first, by_source, 2, 2));
  ASSERT_TRUE(matched(second, by_reception, 2, 2));
  const std::int64_t now = wall_ns();
  first.stamp_next(now);
  write(first, 1);
  second.stamp_next(now - 1'000'000'000);
  write(second, 2);
  second.stamp_next(now + 1'000'000);
  write(second, 3);
  EXPECT_EQ(numbers(take_until(by_reception, 3)).size(), 3u);
  EXPECT_EQ(numbers(take_until(by_source, 2)), (std::vector<std::uint64_t>{1, 3}));
  EXPECT_TRUE(take_until_quiet(by_source, 20ms).empty());
}

TEST_F(Conformance, AReaderBySourceDoesNotMatchAWriterByReception) {
  PERFLAB_SUPPORTED_OR_SKIP("destination_order");
  perflab_qos qos = keep_all();
  qos.destination_order = PERFLAB_BY_SOURCE;
  Recorder of_writer, of_reader;
  Writer w = writer(keep_all(), of_writer.listener());
  Reader r = reader(qos, of_reader.listener());
  EXPECT_TRUE(eventually(
      [&] { return of_writer.has(PERFLAB_INCOMPATIBLE_QOS) && of_reader.has(PERFLAB_INCOMPATIBLE_QOS); }));
  EXPECT_EQ(of_reader.find(PERFLAB_INCOMPATIBLE_QOS)->policy, "destination_order");
}

// Also of hints: that two ends do not match can be seen.
TEST_F(Conformance, AReaderDoesNotMatchAWriterWithALongerLatencyBudget) {
  if (support_of(plugin_, "latency_budget") == PERFLAB_REFUSED) GTEST_SKIP() << "latency_budget is refused";
  perflab_qos qos = keep_all();
  qos.latency_budget_ns = 1'000'000;
  Recorder of_writer, of_reader;
  Writer w = writer(qos, of_writer.listener());
  Reader r = reader(keep_all(), of_reader.listener());
  if (may_refuse("latency_budget_match")) {
    EXPECT_TRUE(matched(w, r)) << "it is known not to look at it";
    return;
  }
  ASSERT_TRUE(eventually([&] { return of_writer.has(PERFLAB_INCOMPATIBLE_QOS) && of_reader.has(PERFLAB_INCOMPATIBLE_QOS); }));
  EXPECT_EQ(of_writer.find(PERFLAB_INCOMPATIBLE_QOS)->policy, "latency_budget");
  EXPECT_EQ(of_reader.find(PERFLAB_INCOMPATIBLE_QOS)->policy, "latency_budget");
  EXPECT_EQ(w.matched_readers(), 0u);
}

TEST_F(Conformance, AFullReaderHoldsNoMoreThanItsLimit) {
  PERFLAB_SUPPORTED_OR_SKIP("resource_limits");
  perflab_qos qos = keep_all();
  qos.reliability = PERFLAB_BEST_EFFORT;
  qos.max_samples = qos.max_samples_per_instance = 3;
  qos.max_instances = 1;
  Reader limited = reader(qos);
  perflab_qos offered = keep_all();
  offered.reliability = PERFLAB_BEST_EFFORT;
  Writer w = writer(offered);
  Reader complete = reader(offered);
  ASSERT_TRUE(matched(w, limited, 2));
  ASSERT_TRUE(matched(w, complete, 2));
  // Again where some came only while others were taken: a reader that is not limited holds all of them each time.
  std::uint64_t next = 0;
  EXPECT_TRUE(eventually([&] {
    const std::uint64_t first = next;
    for (; next < first + 8; ++next) write(w, next);
    EXPECT_EQ(take_until(complete, 8).size(), 8u);
    std::this_thread::sleep_for(10ms);
    return numbers(take_until_quiet(limited, 50ms)) == range(first, first + 3);
  }));
  write(w, next);
  EXPECT_EQ(numbers(take_until(limited, 1)), range(next, next + 1)) << "there is room again";
}

// Within TOPIC or GROUP, what is taken one by one comes in the order of the writes, whichever instance it is of.
TEST_F(Conformance, OrderedAccessKeepsTheOrderAcrossInstances) {
  PERFLAB_SUPPORTED_OR_SKIP("presentation");
  perflab_qos qos = keep_all();
  qos.access_scope = PERFLAB_SCOPE_TOPIC;
  qos.ordered = true;
  const middleware::EndpointSettings settings{.topic = kTopic, .type = kType, .qos = qos, .key = key_of_messages()};
  Writer w = participant().create_writer(settings);
  Reader r = participant().create_reader(settings);
  ASSERT_TRUE(matched(w, r));
  std::vector<std::uint64_t> written;
  for (std::uint32_t round = 0; round < 3; ++round) {
    for (std::uint32_t instance = 0; instance < 3; ++instance) {
      written.push_back(number_in(instance, round));
      write(w, written.back(), 101);
    }
  }
  EXPECT_EQ(numbers(take_until(r, written.size())), written);
}

TEST_F(Conformance, AReaderThatAsksForAWiderScopeDoesNotMatch) {
  PERFLAB_SUPPORTED_OR_SKIP("presentation");
  perflab_qos qos = keep_all();
  qos.access_scope = PERFLAB_SCOPE_GROUP;
  Recorder of_writer, of_reader;
  Writer w = writer(keep_all(), of_writer.listener());
  Reader r = reader(qos, of_reader.listener());
  ASSERT_TRUE(eventually([&] { return of_reader.has(PERFLAB_INCOMPATIBLE_QOS); }));
  EXPECT_EQ(of_reader.find(PERFLAB_INCOMPATIBLE_QOS)->policy, "presentation");
}

TEST_F(Conformance, TransientMessagesOutliveTheirWriter) {
  const perflab_policy* const transient = middleware::declared(plugin_.policies(), "durability=transient");
  if (transient == nullptr || transient->support != PERFLAB_SUPPORTED) GTEST_SKIP() << "durability=transient is refused";
  for (const perflab_durability durability : {PERFLAB_TRANSIENT, PERFLAB_PERSISTENT}) {
    perflab_qos qos = keep_all();
    qos.durability = durability;
    std::optional<Writer> w(writer(qos));
    write(*w, 1);
    w.reset();
    Reader late = reader(qos);
    EXPECT_EQ(numbers(take_until(late, 1, 3s)), range(1, 2)) << durability;
  }
}

// A reader in a process that is stopped acknowledges nothing.
TEST_F(Conformance, AFullReliableWriterWaitsAndThenSaysThatNothingWasSent) {
  PERFLAB_SUPPORTED_OR_SKIP("resource_limits");
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  open_with({{"max_blocking_time", "100ms"}});
  perflab_qos qos = keep_all();
  qos.max_samples = qos.max_samples_per_instance = 5;
  qos.max_instances = 1;
  if (may_refuse("writer_limits")) {
    EXPECT_THROW(writer(qos), Error);
    return;
  }
  Writer w = writer(qos);
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(std::string("reader r ") + kTopic + " " + kType + " keep_all reliable volatile 1"), "ok");
  ASSERT_EQ(peer.ask("wait_matched r 1"), "ok");
  ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1; }));
  write(w, 0);
  EXPECT_EQ(peer.ask("take r 1 36"), "took 1 intact 1 ordered 1 first 0 last 0");
  ASSERT_EQ(kill(peer.pid(), SIGSTOP), 0);
  perflab_error error{};
  std::uint64_t written = 1;
  perflab_status status = PERFLAB_OK;
  for (; written < 100 && status == PERFLAB_OK; ++written) {
    const auto bytes = make_message(written, 36);
    const perflab_bytes part{bytes.data(), bytes.size()};
    status = w.write({&part, 1}, error);
  }
  ASSERT_EQ(kill(peer.pid(), SIGCONT), 0);
  EXPECT_EQ(status, PERFLAB_FAILED) << "a writer that has room for 5 messages took 99";
  EXPECT_NE(std::string(error.text).find("not sent"), std::string::npos) << error.text;
  // What it took arrives, and then there is room again.
  const std::uint64_t last = written - 2;
  EXPECT_LE(last, 6u);
  EXPECT_EQ(peer.ask("take r " + std::to_string(last) + " 36"),
            "took " + std::to_string(last) + " intact " + std::to_string(last) + " ordered 1 first 1 last " + std::to_string(last));
  const auto bytes = make_message(last + 1, 36);
  const perflab_bytes part{bytes.data(), bytes.size()};
  EXPECT_TRUE(eventually([&] { return w.write({&part, 1}, error) == PERFLAB_OK; })) << error.text;
  EXPECT_TRUE(peer.ask("take r 1 36").ends_with("last " + std::to_string(last + 1)));
}

// What the plug-in declares of these, peers can read.
TEST_F(Conformance, PeersSeeWhatEndpointsSayOfThemselves) {
  const auto has = [&](const char* policy) { return support_of(plugin_, policy) == PERFLAB_SUPPORTED; };
  if (!has("user_data") && !has("topic_data") && !has("group_data")) GTEST_SKIP() << "none of them is declared";
  perflab_qos qos = keep_all();
  if (has("user_data")) qos.user_data = text("of the user");
  if (has("topic_data")) qos.topic_data = text("of the topic");
  if (has("group_data")) qos.group_data = text("of the group");
  Writer w = participant().create_writer({.topic = kTopic, .type = kType, .qos = qos, .user_data = "typehash;"});
  Participant other = plugin_.open({.now_ns = now_ns, .on_event = nullptr, .context = nullptr}, settings());
  std::optional<middleware::RemoteEndpoint> found;
  ASSERT_TRUE(eventually([&] {
    for (const middleware::RemoteEndpoint& one : other.remote_endpoints())
      if (one.topic == kTopic && one.writes) found = one;
    return found.has_value();
  }));
  EXPECT_EQ(found->user_data, std::string("typehash;") + qos.user_data.text);
  EXPECT_EQ(found->topic_data, qos.topic_data.text);
  EXPECT_EQ(found->group_data, qos.group_data.text);
}

}  // namespace
}  // namespace perflab::conformance
