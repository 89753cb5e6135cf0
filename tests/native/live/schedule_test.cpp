// Due times stored by senders: receivers find them or not, but never a wrong one.
#include "graph/schedule.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cstdlib>
#include <set>
#include <string>
#include <thread>

#include "base/descriptor.h"
#include "base/error.h"
#include "message/header.h"

namespace perflab::graph {
namespace {

constexpr std::uint64_t kKept = Schedule::kKept;

// Different for each sequence number.
Nanoseconds due_of(std::uint64_t sequence) { return static_cast<Nanoseconds>(sequence) * 1'000'003 + 17; }
Schedule::Entry entry_of(std::uint64_t sequence) {
  return {.due_ns = due_of(sequence), .published_ns = due_of(sequence) + 5, .sequence = sequence * 7 + 1};
}

Descriptor shared_memory() {
  Descriptor memory(memfd_create("schedule", MFD_CLOEXEC));
  EXPECT_TRUE(memory.open());
  return memory;
}

TEST(Schedules, FindWhatWasPut) {
  Schedule schedule(2, -1);
  EXPECT_EQ(schedule.find(0, 0).due_ns, kUnknownTime);
  for (const std::uint64_t sequence : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{77}, kKept - 1}) {
    EXPECT_EQ(schedule.find(1, sequence).due_ns, kUnknownTime);
    schedule.put(1, sequence, entry_of(sequence));
    EXPECT_EQ(schedule.find(1, sequence).due_ns, due_of(sequence));
    EXPECT_EQ(schedule.find(0, sequence).due_ns, kUnknownTime) << "another publisher's";
  }
  schedule.put(1, 0, {.due_ns = -5});
  EXPECT_EQ(schedule.find(1, 0).due_ns, -5);
}

// If the middleware sets the time stamps: the last entry before the time stamp.
TEST(Schedules, FindAMessageByAnInstantWhileItWasSent) {
  Schedule schedule(2, -1);
  constexpr std::int64_t kWallClock = 1'700'000'000'123'456'789;
  const auto left_at = [](std::uint64_t number) { return kWallClock + 100 * static_cast<std::int64_t>(number); };
  Schedule::Cursor cursor;
  EXPECT_EQ(schedule.find_before(1, left_at(0), cursor).due_ns, kUnknownTime) << "nothing was left";
  std::uint64_t put = 0;
  const auto put_until = [&](std::uint64_t end) {
    for (; put < end; ++put) schedule.put_before(1, put, left_at(put), entry_of(put));
  };
  const auto expect = [&](std::uint64_t number, std::int64_t later_ns) {
    const Schedule::Entry entry = schedule.find_before(1, left_at(number) + later_ns, cursor);
    EXPECT_EQ(entry.due_ns, due_of(number)) << number << " of " << put;
    EXPECT_EQ(entry.published_ns, entry_of(number).published_ns);
    EXPECT_EQ(entry.sequence, entry_of(number).sequence);
  };
  put_until(10);
  for (std::uint64_t number = 0; number < 10; ++number) expect(number, static_cast<std::int64_t>(11 * number));
  expect(3, 99);  // one that came late, and one that was not received between them
  expect(9, 1'000'000);
  EXPECT_EQ(schedule.find_before(1, left_at(0) - 1, cursor).due_ns, kUnknownTime) << "before the first";
  EXPECT_EQ(schedule.find_before(0, left_at(5), cursor).due_ns, kUnknownTime) << "another publisher's";
  // Several rounds, looked up at once or with the maximum number of entries behind.
  for (std::uint64_t round = 1; round < 4; ++round) {
    put_until(round * kKept + 7 * round);
    expect(put - 1, 50);
    expect(put - kKept, 50);
    expect(put - kKept / 2, 0);
    EXPECT_EQ(schedule.find_before(1, left_at(put - kKept) - 1, cursor).due_ns, kUnknownTime) << "not kept any more";
  }
  // A key of the other kind does not match.
  schedule.put(1, static_cast<std::uint64_t>(left_at(put - 1)), entry_of(1));
  expect(put - 1, 10);
}

TEST(Schedules, TellAllOfAMessageThatSaysNothingOfItself) {
  Schedule schedule(1, -1);
  constexpr std::int64_t kWallClock = 1'700'000'000'123'456'789;
  // Many in one instant: stamps are unique, and close to the clock.
  std::set<std::int64_t> stamps;
  for (std::uint64_t number = 0; number < kKept; ++number) {
    const std::int64_t stamp = Schedule::stamp_for(kWallClock, number);
    EXPECT_LE(std::abs(stamp - kWallClock), static_cast<std::int64_t>(kKept));
    stamps.insert(stamp);
    schedule.put(0, static_cast<std::uint64_t>(stamp), entry_of(number));
  }
  EXPECT_EQ(stamps.size(), kKept);
  for (std::uint64_t number = 0; number < kKept; ++number) {
    const Schedule::Entry entry =
        schedule.find(0, static_cast<std::uint64_t>(Schedule::stamp_for(kWallClock, number)));
    ASSERT_EQ(entry.due_ns, due_of(number));
    ASSERT_EQ(entry.published_ns, entry_of(number).published_ns);
    ASSERT_EQ(entry.sequence, entry_of(number).sequence);
  }
}

TEST(Schedules, KeepTheLastMessagesOfEachPublisher) {
  Schedule schedule(2, -1);
  for (std::uint64_t sequence = 0; sequence < 2 * kKept + 5; ++sequence) {
    schedule.put(0, sequence, {.due_ns = due_of(sequence)});
    if (sequence < kKept) schedule.put(1, sequence, {.due_ns = -due_of(sequence)});
  }
  for (std::uint64_t sequence = 0; sequence < 2 * kKept + 5; ++sequence) {
    const bool kept = sequence >= kKept + 5;
    ASSERT_EQ(schedule.find(0, sequence).due_ns, kept ? due_of(sequence) : kUnknownTime) << sequence;
    ASSERT_EQ(schedule.find(1, sequence).due_ns, sequence < kKept ? -due_of(sequence) : kUnknownTime) << sequence;
  }
  EXPECT_EQ(schedule.find(0, 2 * kKept + 5).due_ns, kUnknownTime) << "not put yet";
}

TEST(Schedules, TellMessagesOfTheWarmUpApart) {
  Schedule schedule(1, -1);
  schedule.put(0, 3 | message::kWarmUpBit, {.due_ns = 30});
  EXPECT_EQ(schedule.find(0, 3).due_ns, kUnknownTime);
  EXPECT_EQ(schedule.find(0, 3 | message::kWarmUpBit).due_ns, 30);
  schedule.put(0, 3, {.due_ns = 31});
  EXPECT_EQ(schedule.find(0, 3).due_ns, 31);
}

TEST(Schedules, OfNoPublishersNeedNoMemory) {
  const Descriptor memory = shared_memory();
  const Schedule schedule(0, memory.number());
  struct stat file{};
  ASSERT_EQ(fstat(memory.number(), &file), 0);
  EXPECT_EQ(file.st_size, 0);
}

// Like two processes that share the memory file.
TEST(Schedules, OfOneFileInMemoryAreTheSame) {
  const Descriptor memory = shared_memory();
  Schedule sender(3, memory.number());
  const Schedule receiver(3, memory.number());
  for (std::size_t publisher = 0; publisher < 3; ++publisher) sender.put(publisher, 7, {.due_ns = due_of(publisher)});
  const Schedule later(3, memory.number());
  for (std::size_t publisher = 0; publisher < 3; ++publisher) {
    EXPECT_EQ(receiver.find(publisher, 7).due_ns, due_of(publisher));
    EXPECT_EQ(later.find(publisher, 7).due_ns, due_of(publisher)) << "by one who came when it was there already";
  }
}

TEST(Schedules, OfTheProcessAloneAreItsOwn) {
  Schedule first(1, -1);
  const Schedule second(1, -1);
  first.put(0, 7, {.due_ns = 1});
  EXPECT_EQ(second.find(0, 7).due_ns, kUnknownTime);
}

TEST(Schedules, SayWhyThereIsNoMemory) {
  int ends[2];
  ASSERT_EQ(pipe2(ends, O_CLOEXEC), 0);
  const Descriptor reading(ends[0]), writing(ends[1]);
  try {
    const Schedule schedule(1, writing.number());
    ADD_FAILURE() << "a pipe is no memory";
  } catch (const Failed& error) {
    EXPECT_NE(std::string(error.what()).find("the schedule"), std::string::npos) << error.what();
  }
}

// One thread keeps writing to a few slots while others read: they only find what was stored, however often it
// was overwritten.
TEST(Schedules, NeverTellAnotherMessagesTime) {
  const Descriptor memory = shared_memory();
  Schedule sender(1, memory.number());
  constexpr std::uint64_t kRounds = 200'000;
  constexpr std::uint64_t kSlots = 4;
  const auto sequence_at = [](std::uint64_t i) { return (i / kSlots) * kKept + i % kSlots; };
  std::atomic<std::uint64_t> written{0};
  const auto read = [&] {
    const Schedule receiver(1, memory.number());
    std::uint64_t found = 0;
    for (std::uint64_t i = 0; i < kRounds;) {
      const std::uint64_t now = written.load(std::memory_order_acquire);
      // The last entry written, the one being written, the one being overwritten.
      for (const std::uint64_t at : {now == 0 ? 0 : now - 1, now, now > kSlots ? now - kSlots : 0}) {
        const std::uint64_t sequence = sequence_at(at);
        const Schedule::Entry entry = receiver.find(0, sequence);
        if (entry.due_ns == kUnknownTime) continue;
        ++found;
        ASSERT_EQ(entry.due_ns, due_of(sequence));
        ASSERT_EQ(entry.published_ns, entry_of(sequence).published_ns);
        ASSERT_EQ(entry.sequence, entry_of(sequence).sequence);
      }
      i = now;
    }
    EXPECT_GT(found, 0u);
  };
  std::thread one(read), two(read);
  for (std::uint64_t i = 0; i < kRounds; ++i) {
    const std::uint64_t sequence = sequence_at(i);
    sender.put(0, sequence, entry_of(sequence));
    written.store(i + 1, std::memory_order_release);
  }
  one.join();
  two.join();
}

}  // namespace
}  // namespace perflab::graph
