// What endpoints are made with: user data, fixed sizes, loans, identities of messages, and partners that are
// left out.
#include <algorithm>
#include <cstring>
#include <set>

#include "fixture.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

constexpr std::size_t kSize = 5000;

bool is_zero(const perflab_sample_identity& identity) {
  return to_hex(identity.writer) == std::string(32, '0') && identity.sequence == 0;
}

std::string line(const char* kind, const std::string& form = "", const char* history = "keep_all") {
  return std::string(kind) + " x " + kTopic + " " + kType + " " + history + " " + usual_reliability() + " volatile 10 " + form;
}

TEST_F(Conformance, UserDataIsAccepted) {
  const std::string data = "typehash=RIHS01_" + std::string(64, '0') + ";";
  Writer w =
      participant().create_writer({.topic = kTopic, .type = kType, .qos = keep_all(), .user_data = data});
  Reader r =
      participant().create_reader({.topic = kTopic, .type = kType, .qos = keep_all(), .user_data = data});
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  EXPECT_EQ(numbers(take_until(r, 1)), range(1, 2));
}

TEST_F(Conformance, MessagesOfFixedSizeArrive) {
  for (const std::size_t size : {12u, 37u, 4096u, 200'001u}) {
    const std::string topic = "rt/fixed" + std::to_string(size);
    const std::string type = "perflab_msgs::msg::dds_::Fixed" + std::to_string(size) + "_";
    Writer w =
        participant().create_writer({.topic = topic, .type = type, .fixed_size = size, .qos = keep_many()});
    Reader r =
        participant().create_reader({.topic = topic, .type = type, .fixed_size = size, .qos = keep_many()});
    ASSERT_TRUE(matched(w, r));
    std::vector<Taken> taken;
    for (std::uint64_t number = 0; number < 20; ++number) {
      write(w, number, size);
      for (Taken& one : take_until(r, 1)) taken.push_back(std::move(one));
    }
    EXPECT_EQ(numbers(taken), range(0, 20)) << size;
    for (const Taken& one : taken) EXPECT_TRUE(intact(one.bytes, size)) << size;
  }
}

TEST_F(Conformance, MessagesOfFixedSizeArriveFromAnotherProcess) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  Reader r =
      participant().create_reader({.topic = kTopic, .type = kType, .fixed_size = 37, .qos = keep_all()});
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(line("writer", "fixed 37")), "ok");
  ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  ASSERT_EQ(peer.ask("write x 0 400 37"), "wrote 400");
  const auto taken = take_until(r, 400);
  EXPECT_EQ(numbers(taken), range(0, 400));
  for (const Taken& one : taken) EXPECT_TRUE(intact(one.bytes, 37));
}

// ---- identities of messages ----

TEST_F(Conformance, SequenceNumbersAreThoseOfTheWriterOrUnknown) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 10; ++number) write(w, number);
  const auto taken = take_until(r, 10);
  ASSERT_EQ(taken.size(), 10u);
  for (std::size_t i = 0; i < taken.size(); ++i) {
    EXPECT_EQ(taken[i].sequence,
              plugin_.capabilities().related_samples ? static_cast<std::int64_t>(i) + 1 : 0);
    EXPECT_TRUE(is_zero(taken[i].related));
  }
}

class Related : public Conformance {
 protected:
  void SetUp() override {
    if (!plugin_.capabilities().related_samples) GTEST_SKIP() << "the plug-in does not relate messages";
    for (std::size_t i = 0; i < sizeof given_.writer.bytes; ++i)
      given_.writer.bytes[i] = static_cast<std::uint8_t>(i + 1);
    given_.sequence = 0x1'0000'0007;
  }
  void expect_given(const Taken& taken) {
    EXPECT_EQ(to_hex(taken.related.writer), to_hex(given_.writer));
    EXPECT_EQ(taken.related.sequence, given_.sequence);
  }

  perflab_sample_identity given_{};
};

TEST_F(Related, IdentityArrivesWithTheMessageAndWithNoOther) {
  Writer w = writer();
  Reader a = reader();
  Reader b = reader();
  ASSERT_TRUE(matched(w, a, 2));
  ASSERT_TRUE(matched(w, b, 2));
  const auto bytes = make_message(1, 100);
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  std::int64_t sequence = 0;
  write(w, 0, 100);
  ASSERT_EQ(w.write_related({&part, 1}, &given_, &sequence, error), PERFLAB_OK) << error.text;
  EXPECT_EQ(sequence, 2);
  ASSERT_EQ(w.write_related({&part, 1}, nullptr, &sequence, error), PERFLAB_OK) << error.text;
  EXPECT_EQ(sequence, 3);
  ASSERT_EQ(w.write_related({&part, 1}, &given_, nullptr, error), PERFLAB_OK) << error.text;
  for (Reader* const r : {&a, &b}) {
    const auto taken = take_until(*r, 4);
    ASSERT_EQ(taken.size(), 4u);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(taken[i].sequence, static_cast<std::int64_t>(i) + 1);
    EXPECT_TRUE(is_zero(taken[0].related));
    expect_given(taken[1]);
    EXPECT_TRUE(is_zero(taken[2].related));
    expect_given(taken[3]);
  }
}

TEST_F(Related, ReadersThatDoNotAskAreToldNothing) {
  Writer w = writer();
  Reader asks = reader();
  Reader other = participant().create_reader({.topic = kTopic, .type = kType, .qos = keep_all()});
  ASSERT_TRUE(matched(w, asks, 2));
  ASSERT_TRUE(matched(w, other, 2));
  const auto bytes = make_message(0, 100);
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  ASSERT_EQ(w.write_related({&part, 1}, &given_, nullptr, error), PERFLAB_OK) << error.text;
  const auto told = take_until(asks, 1);
  const auto untold = take_until(other, 1);
  ASSERT_EQ(told.size(), 1u);
  ASSERT_EQ(untold.size(), 1u);
  expect_given(told[0]);
  EXPECT_EQ(untold[0].sequence, 0);
  EXPECT_TRUE(is_zero(untold[0].related));
  EXPECT_EQ(to_hex(untold[0].writer), to_hex(w.identity()));
}

TEST_F(Related, IdentityArrivesFromAnotherProcess) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  Reader r = reader();
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(line("writer")), "ok");
  ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  ASSERT_EQ(peer.ask("write x 0 1 100"), "wrote 1");
  const std::string identity = to_hex(given_.writer) + " " + std::to_string(given_.sequence);
  EXPECT_EQ(peer.ask("write_related x 1 100 " + identity), "2");
  EXPECT_EQ(peer.ask("write_related x 2 300000 " + identity), "3");
  const auto taken = take_until(r, 3);
  ASSERT_EQ(numbers(taken), range(0, 3));
  EXPECT_TRUE(is_zero(taken[0].related));
  EXPECT_EQ(taken[0].sequence, 1);
  expect_given(taken[1]);
  expect_given(taken[2]);
  EXPECT_EQ(taken[2].sequence, 3);
}

// ---- loans ----

class Loans : public Conformance {
 protected:
  middleware::EndpointSettings settings_of(bool loans, const perflab_qos& qos = keep_many()) const {
    return {.topic = kTopic, .type = kType, .fixed_size = kSize, .loans = loans, .qos = qos};
  }
  static perflab_status write_loaned(Writer& w, void* message, std::uint64_t number) {
    const auto bytes = make_message(number, kSize);
    std::memcpy(message, bytes.data(), bytes.size());
    perflab_error error{};
    const perflab_status status = w.write_loaned(message, error);
    EXPECT_EQ(status, PERFLAB_OK) << error.text;
    return status;
  }
  static void* loan(Writer& w) {
    void* message = nullptr;
    perflab_error error{};
    EXPECT_EQ(w.loan(message, error), PERFLAB_OK) << error.text;
    return message;
  }
  static void expect_intact(const std::vector<Taken>& taken, std::uint64_t first, std::uint64_t end) {
    EXPECT_EQ(numbers(taken), range(first, end));
    for (const Taken& one : taken) EXPECT_TRUE(intact(one.bytes, kSize));
  }
};

TEST_F(Loans, AreGivenOrRefusedInOneLine) {
  for (const bool is_writer : {true, false}) {
    try {
      if (is_writer) {
        participant().create_writer(settings_of(true));
      } else {
        participant().create_reader(settings_of(true));
      }
      EXPECT_TRUE(plugin_.capabilities().loans || !is_writer);
    } catch (const Error& refusal) {
      const std::string text = refusal.what();
      EXPECT_EQ(refusal.kind(), Error::Kind::kUnsupported) << text;
      EXPECT_NE(text.find("right would be"), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  }
}

TEST_F(Loans, OfVariableSizeAreRefused) {
  try {
    participant().create_writer({.topic = kTopic, .type = kType, .loans = true, .qos = keep_many()});
    FAIL() << "accepted";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.kind(), Error::Kind::kUnsupported) << refusal.what();
  }
}

TEST_F(Loans, LoanedMessagesArriveAtReadersOfEitherKind) {
  PERFLAB_CREATE_OR_REFUSE(w, participant().create_writer(settings_of(true)), "loan");
  Reader in_place = participant().create_reader(settings_of(true));
  Reader copying = participant().create_reader(settings_of(false));
  ASSERT_TRUE(matched(w, in_place, 2));
  ASSERT_TRUE(matched(w, copying, 2));
  for (std::uint64_t first = 0; first < 100; first += 10) {
    for (std::uint64_t number = first; number < first + 10; ++number) write_loaned(w, loan(w), number);
    expect_intact(take_until(in_place, 10), first, first + 10);
    expect_intact(take_until(copying, 10), first, first + 10);
  }
}

TEST_F(Loans, ReaderMayReadInPlaceWhatWasNotLoaned) {
  PERFLAB_CREATE_OR_REFUSE(r, participant().create_reader(settings_of(true)), "loan");
  Writer w = participant().create_writer(settings_of(false));
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 10; ++number) write(w, number, kSize);
  expect_intact(take_until(r, 10), 0, 10);
}

TEST_F(Loans, ManyMayBeOutstandingAndAreSentInTheOrderOfTheWrites) {
  PERFLAB_CREATE_OR_REFUSE(w, participant().create_writer(settings_of(true)), "loan");
  Reader r = participant().create_reader(settings_of(true));
  ASSERT_TRUE(matched(w, r));
  std::vector<void*> loans;
  for (int i = 0; i < 8; ++i) loans.push_back(loan(w));
  EXPECT_EQ(std::set<void*>(loans.begin(), loans.end()).size(), loans.size());
  for (std::uint64_t number = 0; number < loans.size(); ++number) {
    write_loaned(w, loans[loans.size() - 1 - number], number);
  }
  expect_intact(take_until(r, 8), 0, 8);
}

TEST_F(Loans, DiscardedLoanIsNotSentAndItsRoomComesBack) {
  PERFLAB_CREATE_OR_REFUSE(w, participant().create_writer(settings_of(true, usual_qos())),
                           "loan");
  Reader r = participant().create_reader(settings_of(true));
  ASSERT_TRUE(matched(w, r));
  for (int i = 0; i < 1000; ++i) w.discard_loan(loan(w));
  write_loaned(w, loan(w), 7);
  expect_intact(take_until(r, 1), 7, 8);
  EXPECT_TRUE(take_until_quiet(r, 100ms).empty());
}

TEST_F(Loans, WriterMayBeDestroyedWithLoansOutstanding) {
  for (int i = 0; i < 3; ++i) {
    PERFLAB_CREATE_OR_REFUSE(w, participant().create_writer(settings_of(true)), "loan");
    EXPECT_NE(loan(w), nullptr);
  }
}

TEST_F(Loans, LoanedMessagesCrossProcesses) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  PERFLAB_CREATE_OR_REFUSE(r, participant().create_reader(settings_of(true)), "loan");
  Peer peer(subject().plugin, domain_.id());
  const std::string form = "loans " + std::to_string(kSize);
  ASSERT_EQ(peer.ask(line("writer", form, "keep_last")), "ok");
  ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  for (std::uint64_t first = 0; first < 300; first += 10) {
    ASSERT_EQ(peer.ask("write_loaned x " + std::to_string(first) + " 10 " + std::to_string(kSize)),
              "wrote 10");
    expect_intact(take_until(r, 10), first, first + 10);
  }
}

// ---- endpoints of one participant that are left apart ----

class LocalEndpoints : public Conformance {
 protected:
  void SetUp() override {
    ParticipantSettings given = settings();
    given.ignore_local_endpoints = true;
    PERFLAB_CREATE_OR_REFUSE(opened, plugin_.open(discovery_.host(), given), "ipc");
    keep(std::move(opened));
  }
};

TEST_F(LocalEndpoints, NeitherMatchNorReceive) {
  Recorder of_writer, of_reader;
  Reader before = reader();
  Writer w = writer(keep_all(), of_writer.listener());
  Reader r = reader(keep_all(), of_reader.listener());
  WaitSet set = participant().create_waitset();
  set.attach(r, 1);
  for (std::uint64_t number = 0; number < 10; ++number) write(w, number);
  EXPECT_TRUE(take_until_quiet(r).empty());
  EXPECT_TRUE(take_until_quiet(before, 10ms).empty());
  EXPECT_EQ(w.matched_readers(), 0u);
  EXPECT_EQ(r.matched_writers(), 0u);
  EXPECT_EQ(before.matched_writers(), 0u);
  EXPECT_FALSE(of_writer.has(PERFLAB_MATCHED));
  EXPECT_FALSE(of_reader.has(PERFLAB_MATCHED));
  EXPECT_FALSE(of_reader.has(PERFLAB_LIVELINESS_CHANGED));
  std::uint64_t ready[1];
  std::size_t count = 0;
  perflab_error error{};
  EXPECT_EQ(set.wait(10'000'000, ready, count, error), PERFLAB_TIMEOUT);
}

TEST_F(LocalEndpoints, AreNotReportedAsIncompatible) {
  perflab_qos best_effort = keep_all();
  best_effort.reliability = PERFLAB_BEST_EFFORT;
  perflab_qos deadline = keep_all();
  deadline.deadline_ns = 1'000'000'000;
  Recorder of_writer, of_first, of_second;
  PERFLAB_CREATE_OR_REFUSE(first, reader(keep_all(), of_first.listener()), "reliability");
  PERFLAB_CREATE_OR_REFUSE(w, writer(best_effort, of_writer.listener()), "reliability");
  PERFLAB_CREATE_OR_REFUSE(second, reader(deadline, of_second.listener()), "deadline");
  EXPECT_EQ(first.matched_writers() + second.matched_writers() + w.matched_readers(), 0u);
  // From here on nothing is reported any more.
  w_made.reset();
  first_made.reset();
  second_made.reset();
  EXPECT_FALSE(of_writer.has(PERFLAB_INCOMPATIBLE_QOS));
  EXPECT_FALSE(of_first.has(PERFLAB_INCOMPATIBLE_QOS));
  EXPECT_FALSE(of_second.has(PERFLAB_INCOMPATIBLE_QOS));
}

TEST_F(LocalEndpoints, OthersAreServedAndNotPushedOut) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  perflab_qos last = usual_qos();
  last.depth = 1;
  Recorder of_reader;
  Writer w = writer();
  Reader r = reader(last, of_reader.listener());
  Peer out(subject().plugin, domain_.id());
  Peer in(subject().plugin, domain_.id());
  ASSERT_EQ(out.ask(line("reader")), "ok");
  ASSERT_EQ(in.ask(line("writer")), "ok");
  ASSERT_EQ(out.ask("wait_matched x 2"), "ok");
  ASSERT_EQ(in.ask("wait_matched x 2"), "ok");
  ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1 && r.matched_writers() == 1; }));
  ASSERT_EQ(in.ask("write x 100 1 36"), "wrote 1");
  ASSERT_TRUE(eventually([&] { return of_reader.data_calls() >= 1; }));
  for (std::uint64_t number = 0; number < 5; ++number) write(w, number);
  EXPECT_EQ(numbers(take_until_quiet(r)), range(100, 101));
  EXPECT_EQ(out.ask("take x 6 36").substr(0, 15), "took 6 intact 6");
}

}  // namespace
}  // namespace perflab::conformance
