// Several participants of one process in one domain.
#include <algorithm>
#include <deque>

#include "fixture.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

class Participants : public Conformance {
 protected:
  // All with the same host and settings, as a host opens them.
  void open(std::size_t count, bool ignore_local_endpoints = false) {
    ParticipantSettings given = settings();
    given.ignore_local_endpoints = ignore_local_endpoints;
    for (std::size_t i = 0; i < count; ++i) {
      PERFLAB_CREATE_OR_REFUSE(one, plugin_.open(discovery_.host(), given), "ipc");
      all_.push_back(std::move(one));
    }
  }
  Writer writer_of(std::size_t participant, const perflab_qos& qos = keep_all(),
                   const perflab_listener& listener = {}, const char* topic = kTopic) {
    return all_.at(participant).create_writer({.topic = topic, .type = kType, .qos = qos}, listener);
  }
  Reader reader_of(std::size_t participant, const perflab_qos& qos = keep_all(),
                   const perflab_listener& listener = {}, const char* topic = kTopic) {
    return all_.at(participant)
        .create_reader({.topic = topic, .type = kType, .related_samples = true, .qos = qos}, listener);
  }

  std::vector<Participant> all_;
};

TEST_F(Participants, ExchangeEveryMessageInOrder) {
  open(3);
  Writer w = writer_of(0);
  Reader same = reader_of(0);
  Reader second = reader_of(1);
  Reader third = reader_of(2);
  ASSERT_TRUE(matched(w, same, 3));
  ASSERT_TRUE(matched(w, second, 3));
  ASSERT_TRUE(matched(w, third, 3));
  for (std::uint64_t number = 0; number < 100; ++number) write(w, number);
  for (Reader* const r : {&same, &second, &third}) {
    const std::vector<Taken> taken = take_until(*r, 100);
    EXPECT_EQ(numbers(taken), range(0, 100));
    for (const Taken& one : taken) EXPECT_EQ(to_hex(one.writer), to_hex(w.identity()));
  }
}

TEST_F(Participants, FindEachOtherHoweverManyTheProcessHadBefore) {
  for (int i = 0; i < 40; ++i) {
    open(1);
    all_.clear();
  }
  open(2);
  Writer w = writer_of(0);
  Reader r = reader_of(1);
  EXPECT_TRUE(matched(w, r));
}

TEST_F(Participants, HaveIdentitiesOfTheirOwn) {
  open(2);
  Writer first = writer_of(0);
  Writer second = writer_of(1);
  EXPECT_NE(to_hex(first.identity()), to_hex(second.identity()));
}

TEST_F(Participants, OneWaitSetServesReadersOfAll) {
  open(3);
  Writer w = writer_of(2);
  std::vector<Reader> readers;
  for (std::size_t i = 0; i < 3; ++i) readers.push_back(reader_of(i));
  WaitSet set = all_[1].create_waitset();
  for (std::size_t i = 0; i < 3; ++i) set.attach(readers[i], i);
  for (Reader& r : readers) ASSERT_TRUE(matched(w, r, 3));
  std::uint64_t ready[8];
  std::size_t count = 0;
  perflab_error error{};
  EXPECT_EQ(set.wait(10'000'000, ready, count, error), PERFLAB_TIMEOUT);
  std::thread other([&] { write(w, 7); });
  std::vector<bool> got(3);
  EXPECT_TRUE(eventually([&] {
    if (set.wait(1'000'000'000, ready, count, error) == PERFLAB_OK) {
      for (std::size_t i = 0; i < count; ++i) {
        if (const auto one = take(readers.at(ready[i]))) got[ready[i]] = one->number() == 7;
      }
    }
    return std::ranges::count(got, true) == 3;
  }));
  other.join();
  EXPECT_EQ(set.wait(10'000'000, ready, count, error), PERFLAB_TIMEOUT);
}

TEST_F(Participants, EachReaderIsCalled) {
  if (!plugin_.capabilities().data_ready_callbacks) GTEST_SKIP() << "the plug-in has no data callbacks";
  open(2);
  Recorder of_near, of_far;
  Writer w = writer_of(0);
  Reader near = reader_of(0, keep_all(), of_near.listener());
  Reader far = reader_of(1, keep_all(), of_far.listener());
  ASSERT_TRUE(matched(w, near, 2));
  ASSERT_TRUE(matched(w, far, 2));
  write(w, 1);
  EXPECT_TRUE(eventually([&] { return of_near.data_calls() >= 1 && of_far.data_calls() >= 1; }));
  EXPECT_EQ(numbers(take_until(near, 1)), range(1, 2));
  EXPECT_EQ(numbers(take_until(far, 1)), range(1, 2));
}

TEST_F(Participants, RepliesFindTheirRequest) {
  if (!plugin_.capabilities().related_samples) GTEST_SKIP() << "the plug-in relates no samples";
  open(2);
  Writer asks = writer_of(0, keep_all(), {}, "rq/conformanceRequest");
  Reader serves = reader_of(1, keep_all(), {}, "rq/conformanceRequest");
  Writer replies = writer_of(1, keep_all(), {}, "rr/conformanceReply");
  Reader gets = reader_of(0, keep_all(), {}, "rr/conformanceReply");
  ASSERT_TRUE(matched(asks, serves));
  ASSERT_TRUE(matched(replies, gets));
  const auto bytes = make_message(5, 36);
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  std::int64_t number = 0;
  ASSERT_EQ(asks.write_related({&part, 1}, nullptr, &number, error), PERFLAB_OK) << error.text;
  const std::vector<Taken> request = take_until(serves, 1);
  ASSERT_EQ(request.size(), 1u);
  EXPECT_EQ(request[0].sequence, number);
  const perflab_sample_identity to{request[0].writer, request[0].sequence};
  ASSERT_EQ(replies.write_related({&part, 1}, &to, nullptr, error), PERFLAB_OK) << error.text;
  const std::vector<Taken> reply = take_until(gets, 1);
  ASSERT_EQ(reply.size(), 1u);
  EXPECT_EQ(to_hex(reply[0].related.writer), to_hex(asks.identity()));
  EXPECT_EQ(reply[0].related.sequence, number);
}

TEST_F(Participants, OneMayLeaveWhileOthersGoOn) {
  open(3);
  Writer w = writer_of(0);
  Reader stays = reader_of(1);
  {
    Reader goes = reader_of(2);
    ASSERT_TRUE(matched(w, goes, 2));
  }
  all_.pop_back();
  ASSERT_TRUE(matched(w, stays));
  write(w, 1);
  EXPECT_EQ(numbers(take_until(stays, 1)), range(1, 2));
}

// With ignore_local_endpoints nothing of this process meets in the middleware, whichever participant it is
// of.
TEST_F(Participants, IgnoreEachOthersEndpointsWhereTheHostDeliversBetweenThem) {
  open(2, true);
  if (IsSkipped()) return;
  Recorder of_writer, of_reader;
  Writer w = writer_of(0, keep_all(), of_writer.listener());
  Reader before = reader_of(1, keep_all(), of_reader.listener());
  Writer after = writer_of(1);
  WaitSet set = all_[0].create_waitset();
  set.attach(before, 1);
  // Who comes later and from outside is found, and gets what is sent.
  std::optional<Peer> peer;
  const int others = plugin_.capabilities().across_processes ? 1 : 0;
  if (others != 0) {
    peer.emplace(subject().plugin, domain_.id());
    ASSERT_EQ(peer->ask(std::string("reader x ") + kTopic + " " + kType + " keep_all " + usual_reliability() + " volatile 1"),
              "ok");
    ASSERT_EQ(peer->ask("wait_matched x 2"), "ok");
    ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1 && after.matched_readers() == 1; }));
  }
  for (std::uint64_t number = 0; number < 10; ++number) write(w, number);
  if (others != 0) {
    EXPECT_EQ(peer->ask("take x 10 36").substr(0, 17), "took 10 intact 10");
  }
  EXPECT_FALSE(take(before));
  EXPECT_EQ(before.matched_writers(), 0u);
  EXPECT_TRUE(eventually([&] { return of_writer.total(PERFLAB_MATCHED) == others; }));
  EXPECT_FALSE(of_reader.has(PERFLAB_MATCHED));
  EXPECT_FALSE(of_reader.has(PERFLAB_LIVELINESS_CHANGED));
  std::uint64_t ready[1];
  std::size_t count = 0;
  perflab_error error{};
  EXPECT_EQ(set.wait(0, ready, count, error), PERFLAB_TIMEOUT);
}

// Many pairs, made while the participants discover each other: a library that finds a pair from both sides,
// or twice, is not to be heard either.
TEST_F(Participants, DoNotReportAsIncompatibleWhatTheyIgnore) {
  if (may_refuse("reliability")) GTEST_SKIP() << "the plug-in knows no QoS that is incompatible";
  open(2, true);
  if (IsSkipped()) return;
  perflab_qos best_effort = keep_all();
  best_effort.reliability = PERFLAB_BEST_EFFORT;
  constexpr std::size_t kPairs = 100;
  std::deque<Recorder> of_writers(kPairs), of_readers(kPairs);
  std::vector<Writer> writers;
  std::vector<Reader> readers;
  for (std::size_t i = 0; i < kPairs; ++i) {
    const std::string topic = std::string(kTopic) + std::to_string(i);
    const auto make_reader = [&] {
      readers.push_back(reader_of(1, keep_all(), of_readers[i].listener(), topic.c_str()));
    };
    if (i % 2 == 0) make_reader();
    writers.push_back(writer_of(0, best_effort, of_writers[i].listener(), topic.c_str()));
    if (i % 2 == 1) make_reader();
  }
  // Events that do not concern the process itself are reported once, even while its own endpoints are kept apart.
  const bool others = plugin_.capabilities().across_processes;
  if (others) {
    Peer peer(subject().plugin, domain_.id());
    const auto ask_for = [&](const std::string& what, std::size_t topic, const std::string& reliability) {
      return peer.ask(what + " " + what + " " + kTopic + std::to_string(topic) + " " + kType + " keep_all " +
                      reliability + " volatile 1");
    };
    ASSERT_EQ(ask_for("reader", 0, "reliable"), "ok");
    ASSERT_EQ(ask_for("writer", 1, "best_effort"), "ok");
    EXPECT_TRUE(eventually([&] { return of_writers[0].has(PERFLAB_INCOMPATIBLE_QOS); }));
    EXPECT_TRUE(eventually([&] { return of_readers[1].has(PERFLAB_INCOMPATIBLE_QOS); }));
  }
  for (std::size_t i = 0; i < kPairs; ++i)
    EXPECT_EQ(writers[i].matched_readers() + readers[i].matched_writers(), 0u) << i;
  // From here on nothing is reported any more.
  writers.clear();
  readers.clear();
  for (std::size_t i = 0; i < kPairs; ++i) {
    EXPECT_EQ(of_writers[i].total(PERFLAB_INCOMPATIBLE_QOS), others && i == 0 ? 1 : 0) << "writer " << i;
    EXPECT_EQ(of_readers[i].total(PERFLAB_INCOMPATIBLE_QOS), others && i == 1 ? 1 : 0) << "reader " << i;
  }
}

TEST_F(Participants, ServeOtherProcessesWhileTheyIgnoreEachOther) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  open(2, true);
  if (IsSkipped()) return;
  Writer w = writer_of(0);
  Reader r = reader_of(1);
  Peer out(subject().plugin, domain_.id());
  Peer in(subject().plugin, domain_.id());
  const std::string what = " x " + std::string(kTopic) + " " + kType + " keep_all " + usual_reliability() + " volatile 1";
  ASSERT_EQ(out.ask("reader" + what), "ok");
  ASSERT_EQ(in.ask("writer" + what), "ok");
  ASSERT_EQ(out.ask("wait_matched x 2"), "ok");
  ASSERT_EQ(in.ask("wait_matched x 2"), "ok");
  ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1 && r.matched_writers() == 1; }));
  ASSERT_EQ(in.ask("write x 100 1 36"), "wrote 1");
  EXPECT_EQ(numbers(take_until(r, 1)), range(100, 101));
  for (std::uint64_t number = 0; number < 5; ++number) write(w, number);
  EXPECT_EQ(out.ask("take x 6 36").substr(0, 15), "took 6 intact 6");
  EXPECT_TRUE(take_until_quiet(r).empty());
}

TEST_F(Participants, AutomaticLivelinessHoldsAcrossThem) {
  open(2);
  perflab_qos qos = keep_all();
  qos.lease_duration_ns = 500'000'000;
  Recorder of_writer, of_reader;
  PERFLAB_CREATE_OR_REFUSE(w, writer_of(0, qos, of_writer.listener()), "liveliness");
  PERFLAB_CREATE_OR_REFUSE(r, reader_of(1, qos, of_reader.listener()), "liveliness");
  ASSERT_TRUE(matched(w, r));
  EXPECT_TRUE(eventually([&] { return of_reader.total(PERFLAB_LIVELINESS_CHANGED) == 1; }));
  wait_for_a_lost_lease(all_[0], qos.lease_duration_ns);
  EXPECT_EQ(of_reader.total(PERFLAB_LIVELINESS_CHANGED), 1);
  EXPECT_FALSE(of_writer.has(PERFLAB_LIVELINESS_LOST));
}

}  // namespace
}  // namespace perflab::conformance
