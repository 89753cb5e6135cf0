// The plug-ins' common wait-set, with a reader that only counts messages.
#include "middleware/support/waitset.h"

#include <gtest/gtest.h>

#include <numeric>
#include <optional>
#include <thread>

#include "middleware/support/status.h"
#include "no_memory.h"

namespace perflab::middleware::support {
namespace {

class Reader : public Attachment {
 public:
  explicit Reader(int messages = 0) : Attachment("test"), messages_(messages) {}
  void receive() {
    const std::lock_guard lock(mutex_);
    messages_.fetch_add(1, std::memory_order_release);
    ready();
  }
  void take() { messages_.fetch_sub(1, std::memory_order_relaxed); }
  int messages() const { return messages_.load(std::memory_order_acquire); }
  bool has_data() noexcept {
    ++asked;
    return messages() > 0;
  }

  int asked = 0;

 private:
  std::atomic<int> messages_;
};

using Ready = std::vector<std::uint64_t>;

struct Subject {
  int participant = 0;
  WaitSet<Reader> set{participant};

  // Empty on timeout.
  std::optional<Ready> wait(std::int64_t timeout_ns = 0, std::size_t capacity = 100) {
    Ready ready(capacity);
    std::size_t count = 0;
    const perflab_status status = set.wait(timeout_ns, ready.data(), capacity, &count, nullptr);
    ready.resize(count);
    EXPECT_TRUE(status == PERFLAB_OK || (status == PERFLAB_TIMEOUT && count == 0));
    return status == PERFLAB_OK ? std::optional(ready) : std::nullopt;
  }
};

TEST(WaitSet, TellsReadersWithDataInOrderOfAttachment) {
  Subject subject;
  Reader a, b(1), c(2);
  subject.set.attach(c, 30);
  subject.set.attach(a, 10);
  subject.set.attach(b, 20);
  EXPECT_EQ(subject.wait(), (Ready{30, 20}));
  a.receive();
  EXPECT_EQ(subject.wait(), (Ready{30, 10, 20}));
  for (Reader* reader : {&a, &b, &c}) reader->take();
  EXPECT_EQ(subject.wait(), Ready{30});
  c.take();
  EXPECT_EQ(subject.wait(), std::nullopt);
}

TEST(WaitSet, AReaderWithoutDataIsAskedNoMore) {
  Subject subject;
  Reader reader;
  subject.set.attach(reader, 1);
  EXPECT_EQ(subject.wait(), std::nullopt);
  const int asked = reader.asked;
  EXPECT_EQ(subject.wait(), std::nullopt);
  EXPECT_EQ(reader.asked, asked);
}

TEST(WaitSet, GoesOnWithTheFirstThatDidNotFit) {
  Subject subject;
  std::deque<Reader> readers;
  for (std::uint64_t i = 0; i < 200; ++i) subject.set.attach(readers.emplace_back(1), i);
  Ready expected(90);
  for (const std::uint64_t start : {0u, 90u, 180u, 70u}) {
    std::iota(expected.begin(), expected.end(), start);
    for (std::uint64_t& cookie : expected) cookie %= 200;
    EXPECT_EQ(subject.wait(0, 90), expected);
  }
  // It starts with 160, which has nothing any more.
  readers[160].take();
  EXPECT_EQ(subject.wait(0, 2), (Ready{161, 162}));
}

TEST(WaitSet, WhatNothingFollowsThatDidNotFitBeginsAtTheFirst) {
  Subject subject;
  Reader a(1), b(1), c(1);
  subject.set.attach(a, 1);
  subject.set.attach(b, 2);
  subject.set.attach(c, 3);
  EXPECT_EQ(subject.wait(0, 2), (Ready{1, 2}));
  EXPECT_EQ(subject.wait(0, 3), (Ready{3, 1, 2}));
  EXPECT_EQ(subject.wait(0, 3), (Ready{1, 2, 3}));
}

TEST(WaitSet, WakeHoldsUntilItHasEndedOneWait) {
  Subject subject;
  Reader reader(1);
  subject.set.attach(reader, 1);
  subject.set.wake();
  subject.set.wake();
  EXPECT_EQ(subject.wait(), Ready{1});
  reader.take();
  EXPECT_EQ(subject.wait(), std::nullopt);
  subject.set.wake();
  EXPECT_EQ(subject.wait(PERFLAB_DURATION_INFINITE), Ready{});
  EXPECT_EQ(subject.wait(), std::nullopt);
}

TEST(WaitSet, SleepsForTheWholeTime) {
  Subject subject;
  Reader reader;
  subject.set.attach(reader, 1);
  const auto before = std::chrono::steady_clock::now();
  EXPECT_EQ(subject.wait(20'000'000), std::nullopt);
  EXPECT_GE(std::chrono::steady_clock::now() - before, std::chrono::milliseconds(20));
}

TEST(WaitSet, AReaderIsAttachedOnce) {
  Subject one, other;
  Reader reader(1);
  one.set.attach(reader, 1);
  for (Subject* subject : {&one, &other}) {
    try {
      subject->set.attach(reader, 2);
      ADD_FAILURE() << "attached twice";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), Error::Kind::kFailed);
      EXPECT_STREQ(error.what(), "test: the reader is attached to a wait-set already");
    }
  }
  EXPECT_EQ(one.wait(), Ready{1});
  EXPECT_EQ(other.wait(), std::nullopt);
}

TEST(WaitSet, TheEndOfAReaderEndsItsAttachment) {
  Subject subject;
  Reader first(1), last(1);
  std::optional<Reader> gone(1);
  subject.set.attach(first, 1);
  subject.set.attach(*gone, 2);
  subject.set.attach(last, 3);
  EXPECT_EQ(subject.wait(0, 1), Ready{1});
  gone.reset();
  EXPECT_EQ(subject.wait(), (Ready{3, 1}));
  // The place of the last one is reused, without leftovers.
  for (int i = 0; i < 3; ++i) {
    Reader empty;
    {
      Reader full(1);
      subject.set.attach(full, 4);
      EXPECT_EQ(subject.wait(), (Ready{1, 3, 4}));
    }
    subject.set.attach(empty, 5);
    EXPECT_EQ(subject.wait(), (Ready{1, 3}));
  }
}

TEST(WaitSet, TheEndOfAWaitSetEndsItsAttachments) {
  Reader reader(1);
  {
    Subject gone;
    gone.set.attach(reader, 1);
  }
  reader.receive();
  Subject subject;
  subject.set.attach(reader, 2);
  EXPECT_EQ(subject.wait(), Ready{2});
}

TEST(WaitSet, AReaderReceivesWhileItsWaitSetEnds) {
  Reader reader;
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) reader.receive();
  });
  for (int i = 0; i < 500; ++i) {
    Subject subject;
    subject.set.attach(reader, 1);
    EXPECT_EQ(subject.wait(PERFLAB_DURATION_INFINITE), Ready{1});
  }
  stop = true;
  other.join();
}

// Each message is sent when the previous one has been taken, so that a missed one blocks forever.
TEST(WaitSet, NoMessageIsMissedByOneWhoIsAboutToSleep) {
  Subject there, back;
  Reader ping, pong;
  there.set.attach(ping, 1);
  back.set.attach(pong, 1);
  constexpr int kRounds = 20'000;
  const auto serve = [](Subject& subject, Reader& from, Reader& to) {
    for (int i = 0; i < kRounds; ++i) {
      while (from.messages() == 0) subject.wait(PERFLAB_DURATION_INFINITE);
      from.take();
      to.receive();
    }
  };
  std::thread other([&] { serve(there, ping, pong); });
  ping.receive();
  serve(back, pong, ping);
  other.join();
  EXPECT_EQ(ping.messages(), 1);
}

TEST(WaitSet, WakeEndsASleepOfAnotherThread) {
  Subject subject, answer;
  constexpr int kRounds = 2'000;
  std::thread other([&] {
    for (int i = 0; i < kRounds; ++i) {
      EXPECT_EQ(subject.wait(PERFLAB_DURATION_INFINITE), Ready{});
      answer.set.wake();
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    subject.set.wake();
    EXPECT_EQ(answer.wait(PERFLAB_DURATION_INFINITE), Ready{});
  }
  other.join();
}

TEST(WaitSet, NothingIsAllocatedToReceiveToWaitOrToWake) {
  Subject subject;
  Reader reader;
  subject.set.attach(reader, 1);
  std::uint64_t ready = 0;
  std::size_t count = 0;
  const test::NoMemory no_memory;
  reader.receive();
  subject.set.wake();
  EXPECT_EQ(subject.set.wait(0, &ready, 1, &count, nullptr), PERFLAB_OK);
  reader.take();
  EXPECT_EQ(subject.set.wait(1, &ready, 1, &count, nullptr), PERFLAB_TIMEOUT);
}

}  // namespace
}  // namespace perflab::middleware::support
