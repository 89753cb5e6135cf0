// What is particular to shared memory: how much a ring holds, peers that are killed, and peers that make no
// sense.
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "fixture.h"
#include "middleware/shm/board.h"
#include "middleware/shm/ring.h"
#include "middleware/support/letters.h"
#include "middleware/types.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

using namespace perflab::middleware;

class Shm : public Conformance {
 protected:
  static std::string endpoint(const char* kind) {
    return std::string(kind) + " x " + kTopic + " " + kType + " keep_all reliable volatile 1";
  }
  nlohmann::json described() { return nlohmann::json::parse(participant().describe()); }
};

TEST_F(Shm, MalformedOptionsAreRefusedByName) {
  for (const char* const key : {"match_delay", "max_blocking_time"}) {
    try {
      open_with({{key, "5"}});  // no unit
      FAIL() << key;
    } catch (const Error& refusal) {
      EXPECT_EQ(refusal.kind(), Error::Kind::kBadInput);
      EXPECT_NE(std::string(refusal.what()).find(key), std::string::npos) << refusal.what();
    }
  }
}

TEST_F(Shm, MatchesOnlyAfterTheMatchDelay) {
  open_with({{"match_delay", "300ms"}});
  const std::int64_t before = now_ns();
  Writer w = writer();
  Reader r = reader();
  std::uint64_t number = 0;
  while (w.matched_readers() == 0 && now_ns() - before < 20'000'000'000) {
    write(w, number++);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(now_ns() - before, 300'000'000);
  write(w, 1'000'000);
  // What was written before the match does not come, what was written after it does.
  const auto got = numbers(take_until(r, 1));
  ASSERT_FALSE(got.empty());
  EXPECT_GE(got.front(), number - 1);
}

// ---- full ----

TEST_F(Shm, ReliableWriterIsHeldBackByAReaderThatTakesNothing) {
  open_with({{"max_blocking_time", "50ms"}});
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  const auto bytes = make_message(1, 12);
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  std::uint64_t sent = 0;
  perflab_status status = PERFLAB_OK;
  while ((status = w.write({&part, 1}, error)) == PERFLAB_OK && sent < 100'000) ++sent;
  EXPECT_EQ(status, PERFLAB_FAILED);
  EXPECT_NE(std::string(error.text).find("max_blocking_time"), std::string::npos) << error.text;
  EXPECT_EQ(sent, 16'384u);
  EXPECT_EQ(take_until(r, sent).size(), sent) << "what was accepted is not lost";
  EXPECT_EQ(write(w, bytes), PERFLAB_OK) << "there is room again";
  EXPECT_EQ(described().at("lost"), 0);
}

TEST_F(Shm, WriterThatWaitsGoesOnWhenTheReaderTakes) {
  open_with({{"max_blocking_time", "60s"}});
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  constexpr std::uint64_t kCount = 40'000;  // more than two rings
  std::thread writing([&] {
    for (std::uint64_t number = 0; number < kCount; ++number) ASSERT_EQ(write(w, number), PERFLAB_OK);
  });
  EXPECT_EQ(numbers(take_until(r, kCount)), range(0, kCount));
  writing.join();
}

TEST_F(Shm, SlowReaderInAnotherProcessHoldsTheWriterBackWithoutLoss) {
  open_with({{"max_blocking_time", "60s"}});
  Peer peer(subject().plugin, domain_.id());
  Writer w = writer();
  ASSERT_EQ(peer.ask(endpoint("reader")), "ok");
  ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
  constexpr std::uint64_t kCount = 20'000;  // more than one ring
  peer.tell("take x " + std::to_string(kCount) + " 2000");
  for (std::uint64_t number = 0; number < kCount; ++number) ASSERT_EQ(write(w, number, 2000), PERFLAB_OK);
  EXPECT_EQ(peer.answer(), "took 20000 intact 20000 ordered 1 first 0 last 19999");
}

TEST_F(Shm, BestEffortReaderLosesTheOldestWhichIsCountedAndReported) {
  perflab_qos qos = keep_all();
  qos.reliability = PERFLAB_BEST_EFFORT;
  Recorder recorder;
  Writer w = writer();
  Reader r = reader(qos, recorder.listener());
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 20'000; ++number) write(w, number);
  EXPECT_EQ(numbers(take_until(r, 16'384)), range(20'000 - 16'384, 20'000));
  EXPECT_TRUE(eventually([&] { return recorder.total(PERFLAB_SAMPLE_LOST) == 20'000 - 16'384; }));
  EXPECT_EQ(described().at("lost"), 20'000 - 16'384);
}

TEST_F(Shm, HistoryOfAReaderIsForAllItsWritersTogether) {
  perflab_qos last = middleware::default_qos();
  last.depth = 3;
  Writer a = writer();
  Writer b = writer();
  Reader r = reader(last);
  ASSERT_TRUE(matched(a, r, 1, 2));
  ASSERT_TRUE(matched(b, r, 1, 2));
  for (std::uint64_t number = 0; number < 10; ++number) write(number % 2 == 0 ? a : b, number);
  EXPECT_EQ(numbers(take_until_quiet(r, 10ms)), range(7, 10));
}

TEST_F(Shm, HistoryThatKeepsAllEndsWhereTheRingDoes) {
  perflab_qos qos = keep_all();
  qos.durability = PERFLAB_TRANSIENT_LOCAL;
  Writer w = writer(qos);
  for (std::uint64_t number = 0; number < 16'384; ++number) write(w, number);
  const auto bytes = make_message(1, 12);
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  EXPECT_EQ(w.write({&part, 1}, error), PERFLAB_FAILED);
  EXPECT_NE(std::string(error.text).find("history"), std::string::npos) << error.text;
  Reader late = reader(qos);
  EXPECT_EQ(numbers(take_until(late, 16'384)), range(0, 16'384));
}

// A history that comes late has come when its writer was matched.
TEST_F(Shm, DeadlineOfAReaderBeginsWithItsWriter) {
  perflab_qos qos = keep_all();
  qos.durability = PERFLAB_TRANSIENT_LOCAL;
  qos.deadline_ns = 50'000'000;
  Recorder of_writer, of_reader;
  Writer w = writer(qos, of_writer.listener());
  write(w, 1);
  EXPECT_TRUE(eventually([&] { return of_writer.total(PERFLAB_DEADLINE_MISSED) >= 6; }));
  const std::int64_t before = now_ns();
  Reader r = reader(qos, of_reader.listener());
  EXPECT_TRUE(eventually([&] { return of_reader.has(PERFLAB_DEADLINE_MISSED); }));
  EXPECT_LE(of_reader.total(PERFLAB_DEADLINE_MISSED), (now_ns() - before) / qos.deadline_ns);
}

// ---- killed ----

TEST_F(Shm, WriterThatWaitsForAReaderThatIsKilledGoesOn) {
  open_with({{"max_blocking_time", "3600s"}});
  Writer w = writer();
  Peer doomed(subject().plugin, domain_.id());
  ASSERT_EQ(doomed.ask(endpoint("reader")), "ok");
  ASSERT_EQ(doomed.ask("wait_matched x 1"), "ok");
  std::atomic<std::uint64_t> written{0};
  std::thread writing([&] {
    for (std::uint64_t number = 0; number <= 16'384; ++number) {
      ASSERT_EQ(write(w, number), PERFLAB_OK);
      ++written;
    }
  });
  EXPECT_TRUE(eventually([&] { return written == 16'384; }));
  doomed.kill();
  writing.join();
  EXPECT_TRUE(eventually([&] { return w.matched_readers() == 0; }));
}

TEST_F(Shm, WhatAWriterWroteBeforeItWasKilledIsTaken) {
  Reader r = reader();
  WaitSet set = participant().create_waitset();
  set.attach(r, 1);
  Peer doomed(subject().plugin, domain_.id());
  ASSERT_EQ(doomed.ask(endpoint("writer")), "ok");
  ASSERT_EQ(doomed.ask("wait_matched x 1"), "ok");
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  ASSERT_EQ(doomed.ask("write x 0 100 5000"), "wrote 100");
  doomed.kill();
  EXPECT_TRUE(eventually([&] { return r.matched_writers() == 0; }));
  const auto taken = take_until(r, 100);
  EXPECT_EQ(numbers(taken), range(0, 100));
  for (const Taken& one : taken) EXPECT_TRUE(intact(one.bytes, 5000));
}

TEST_F(Shm, NothingIsLeftOfAKilledProcess) {
  participant();
  const std::string name =
      "@perflab-shm." + std::to_string(getuid()) + "." + std::to_string(domain_.id()) + ".1";
  const auto named = [&] {
    std::ifstream list("/proc/net/unix");
    for (std::string line; std::getline(list, line);) {
      if (line.ends_with(name)) return true;
    }
    return false;
  };
  Peer peer(subject().plugin, domain_.id());
  EXPECT_TRUE(named());
  peer.kill();
  EXPECT_TRUE(eventually([&] { return !named(); }));
}

// ---- peers that make no sense ----

// Speaks with a participant as another one would, by hand.
class FakePeer {
 public:
  explicit FakePeer(std::uint32_t domain) : seat_(support::take_seat("shm", domain)) {
    EXPECT_EQ(seat_.others.size(), 1u);
    identity_.bytes[0] = 0xfa;
    writer_ = identity_;
    writer_.bytes[15] = 1;
  }
  const Descriptor& socket() const { return seat_.others.front(); }
  void send(support::Kind kind, const perflab_identity& from, Descriptor file = {},
            const perflab_identity& to = {}, std::uint64_t number = 0) {
    support::Letter letter;
    letter.head.kind = kind;
    letter.head.from = from;
    letter.head.to = to;
    letter.head.number = number;
    letter.head.qos = keep_all();
    letter.topic = kTopic;
    letter.type = kType;
    letter.file = std::move(file);
    EXPECT_EQ(support::send(socket(), letter), support::Sent::yes);
  }
  void hello() { send(support::Kind::hello, identity_, shm::duplicate(shm::Board::of_this_process()->file())); }
  // Has a writer, and shows this file as its ring to the reader that asks for it.
  void show(const Descriptor& ring) {
    hello();
    send(support::Kind::writer, writer_);
    perflab_identity reader{};
    EXPECT_TRUE(eventually([&] {
      bool gone = false;
      while (const auto letter = support::receive(socket(), gone)) {
        if (letter->head.kind == support::Kind::match) reader = letter->head.from;
      }
      return !same(reader, {});
    }));
    send(support::Kind::start, writer_, shm::duplicate(ring), reader, 1);
  }
  bool is_cut_off() {
    bool gone = false;
    while (support::receive(socket(), gone)) {
    }
    return gone;
  }

 private:
  support::Seat seat_;
  perflab_identity identity_{};
  perflab_identity writer_{};
};

class Rubbish : public Shm {
 protected:
  // One line of take(), and from then on nothing; others are not disturbed.
  void expect_closed(Reader& r) {
    perflab_sample sample;
    perflab_error error{};
    EXPECT_TRUE(eventually([&] { return r.take(sample, error) == PERFLAB_FAILED; }));
    const std::string text = error.text;
    EXPECT_NE(text.find(kTopic), std::string::npos) << text;
    EXPECT_NE(text.find("ring is invalid"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    EXPECT_EQ(r.take(sample, error), PERFLAB_NO_DATA);
    EXPECT_TRUE(eventually([&] { return r.matched_writers() == 0; }));
    EXPECT_TRUE(eventually([&] { return described().at("closed").size() == 1; }));
    EXPECT_EQ(described().at("closed").at(0), text);
    expect_undisturbed(r);
  }
  void expect_undisturbed(Reader& r) {
    Writer w = writer();
    ASSERT_TRUE(matched(w, r));
    write(w, 5);
    EXPECT_EQ(numbers(take_until(r, 1)), range(5, 6));
  }
};

TEST_F(Rubbish, FileThatIsNoRingIsClosedWithALine) {
  Reader r = reader();
  FakePeer peer(domain_.id());
  peer.show(shm::make_file("short", 4096));
  expect_closed(r);
}

TEST_F(Rubbish, RingOfRandomBytesIsClosedWithALine) {
  Reader r = reader();
  shm::RingWriter ring(1, 0);
  shm::Window window(ring.file(), 0, 8192, true);
  for (std::size_t at = 0; at < window.size(); ++at)
    window.data()[at] = static_cast<std::uint8_t>(at * 37 + 11);
  FakePeer peer(domain_.id());
  peer.show(ring.file());
  expect_closed(r);
}

TEST_F(Rubbish, CountersThatGoBackwardsCloseTheRingWithALine) {
  Recorder recorder;
  Reader r = reader(keep_all(), recorder.listener());
  shm::RingWriter ring(1, now_ns());
  shm::Window window(ring.file(), 0, 4096, true);
  FakePeer peer(domain_.id());
  peer.show(ring.file());
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  reinterpret_cast<shm::RingHeader*>(window.data())->next.store(0);
  expect_closed(r);
  EXPECT_TRUE(eventually([&] { return recorder.total(PERFLAB_UNMATCHED) >= 1; }));
}

TEST_F(Rubbish, WhoSaysNothingSensibleIsCutOff) {
  Reader r = reader();
  {
    FakePeer peer(domain_.id());
    ASSERT_EQ(::send(peer.socket().number(), "rubbish", 7, 0), 7);
    EXPECT_TRUE(eventually([&] { return peer.is_cut_off(); }));
  }
  {
    FakePeer peer(domain_.id());
    peer.send(support::Kind::writer, {});  // before it has said hello
    EXPECT_TRUE(eventually([&] { return peer.is_cut_off(); }));
  }
  {
    FakePeer peer(domain_.id());
    peer.send(support::Kind::hello, {}, shm::make_file("no board", 4096));
    EXPECT_TRUE(eventually([&] { return peer.is_cut_off(); }));
  }
  {
    FakePeer peer(domain_.id());
    peer.hello();
    peer.send(static_cast<support::Kind>(77), {});
    EXPECT_TRUE(eventually([&] { return peer.is_cut_off(); }));
  }
  EXPECT_TRUE(eventually([&] { return discovery_.has(PERFLAB_PARTICIPANT_LOST); }))
      << "of the one that was greeted";
  expect_undisturbed(r);
}

// A reader that pretends to have taken more than there was is not waited for, and does no harm.
TEST_F(Rubbish, ReaderThatCountsWrongIsNotWaitedFor) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  const auto board = shm::Board::of_this_process();
  const std::uint32_t cell = board->take_cell();
  perflab_identity reader_of_peer{};
  reader_of_peer.bytes[0] = 0xfb;
  FakePeer peer(domain_.id());
  peer.hello();
  peer.send(support::Kind::reader, reader_of_peer);
  peer.send(support::Kind::match, reader_of_peer, {}, w.identity(), cell);
  ASSERT_TRUE(eventually([&] { return w.matched_readers() == 2; }));
  board->cell(cell).taken.store(0x7fff'ffff);
  for (auto& bell : board->cell(cell).bells) bell.store(0xffff'fff0);
  for (std::uint64_t number = 0; number < 20'000; ++number) {
    ASSERT_EQ(write(w, number), PERFLAB_OK);
    ASSERT_TRUE(take(r));
  }
}

}  // namespace
}  // namespace perflab::conformance
