// The ring of a writer and the bell of a reader, without participants.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../rows.h"
#include "middleware/shm/board.h"
#include "middleware/shm/ring.h"
#include "middleware/support/letters.h"
#include "middleware/support/status.h"

namespace perflab::middleware::shm {
namespace {

std::vector<std::uint8_t> message(std::uint64_t number, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t at = 0; at < size; ++at) bytes[at] = static_cast<std::uint8_t>(number * 31 + at * 7);
  return bytes;
}

// Precondition: there is room.
void put(RingWriter& ring, std::size_t size) {
  std::ranges::copy(message(ring.next(), size), ring.place(size));
  ring.publish({.number = 0, .offset = 0, .size = size, .published_ns = 0, .source_ns = 0, .related = {}});
}

// Like a writer whose readers want the last `depth` messages.
void put_last(RingWriter& ring, std::size_t size, std::uint64_t depth) {
  while (!ring.has_room(size)) {
    if (ring.next() - ring.oldest() >= depth) {
      ring.forget_before(ring.next() + 1 - depth);
    } else {
      ASSERT_TRUE(ring.grow(size));
    }
  }
  put(ring, size);
}

bool is_intact(RingReader& reader, std::uint64_t number) {
  Entry entry;
  if (!reader.find(number, entry)) return false;
  std::vector<std::uint8_t> bytes(entry.size);
  return reader.copy(entry, bytes.data()) && bytes == message(number, entry.size);
}

std::uint64_t offset_of(RingReader& reader, std::uint64_t number) {
  Entry entry;
  EXPECT_TRUE(reader.find(number, entry));
  return entry.offset;
}

TEST(Ring, MessagesGoAroundItIntact) {
  RingWriter ring(1, 0);
  RingReader reader(ring.file());
  constexpr std::uint64_t kDepth = 5;
  for (std::uint64_t i = 0; i < 5'000; ++i) {
    put_last(ring, i * 7919 % 3000, kDepth);
    for (std::uint64_t back = 1; back <= std::min(kDepth, i + 1); ++back)
      ASSERT_TRUE(is_intact(reader, ring.next() - back)) << i;
    ASSERT_LT(offset_of(reader, ring.next() - 1), 64u << 10) << "there is room enough without growing";
  }
}

// Small messages wrap around early, and large ones then find no room at the start.
TEST(Ring, SizesThatChangeDoNotMakeItGrowForEver) {
  RingWriter ring(1, 0);
  RingReader reader(ring.file());
  std::uint64_t highest = 0;
  for (std::uint64_t i = 0; i < 3'000; ++i) {
    put_last(ring, i / 7 % 2 == 0 ? 10 : 8000, 5);
    highest = std::max(highest, offset_of(reader, ring.next() - 1));
    for (std::uint64_t back = 1; back <= std::min<std::uint64_t>(5, i + 1); ++back)
      ASSERT_TRUE(is_intact(reader, ring.next() - back)) << i;
  }
  EXPECT_LT(highest, 256u << 10);
}

TEST(Ring, WhatIsTakenAtOnceLiesAtTheBeginningAgain) {
  RingWriter ring(1, 0);
  RingReader reader(ring.file());
  for (std::uint64_t i = 0; i < 100; ++i) {
    ring.forget_before(ring.next());
    put(ring, 1000);
    EXPECT_LE(offset_of(reader, ring.next() - 1), 0u);
  }
}

TEST(Ring, MessagesAreNumberedFromTheFirstOne) {
  RingWriter ring(1000, 0);
  RingReader reader(ring.file());
  EXPECT_EQ(reader.next(), 1000u);
  put(ring, 10);
  EXPECT_EQ(reader.next(), 1001u);
  EXPECT_TRUE(is_intact(reader, 1000));
}

TEST(Ring, GrowsToTheMostMessagesAndKeepsAll) {
  RingWriter ring(7, 0);
  RingReader reader(ring.file());
  while (ring.has_room(40) || ring.grow(40)) {
    if (ring.has_room(40)) put(ring, 40);
  }
  EXPECT_EQ(ring.next() - ring.oldest(), kMostMessages);
  for (std::uint64_t number = ring.oldest(); number < ring.next(); ++number)
    ASSERT_TRUE(is_intact(reader, number)) << number;
  ring.forget_before(ring.oldest() + 1);
  EXPECT_TRUE(ring.has_room(40));
}

TEST(Ring, MessageLargerThanItMakesItGrow) {
  RingWriter ring(1, 0);
  RingReader reader(ring.file());
  put(ring, 100);
  for (const std::size_t size : {70'000u, 200u, 3'000'000u, 9'000'000u, 50u}) {
    while (!ring.has_room(size)) ASSERT_TRUE(ring.grow(size));
    put(ring, size);
  }
  for (std::uint64_t number = 1; number < ring.next(); ++number) EXPECT_TRUE(is_intact(reader, number));
  ring.forget_before(ring.next());
  put(ring, 9'000'000);
  EXPECT_EQ(offset_of(reader, ring.next() - 1), 0u) << "all of it is used again";
}

TEST(Ring, ReaderThatComesLateFindsWhatHasGrown) {
  RingWriter ring(1, 0);
  while (ring.next() < 300) {
    while (!ring.has_room(5000)) ASSERT_TRUE(ring.grow(5000));
    put(ring, 5000);
  }
  RingReader late(ring.file());
  for (std::uint64_t number = 1; number < 300; ++number) EXPECT_TRUE(is_intact(late, number));
}

// Like a writer killed at that point: readers only see complete messages.
TEST(Ring, MessageThatIsNotPublishedIsNotThere) {
  RingWriter ring(1, 0);
  RingReader reader(ring.file());
  put(ring, 100);
  std::memset(ring.place(5000), 0xee, 2000);
  EXPECT_EQ(reader.next(), 2u);
  EXPECT_TRUE(is_intact(reader, 1));
}

TEST(Ring, WhatIsForgottenIsNotRead) {
  RingWriter ring(1, 0);
  RingReader reader(ring.file());
  put(ring, 100);
  put(ring, 100);
  Entry entry;
  ASSERT_TRUE(reader.find(1, entry));
  ring.forget_before(2);
  std::vector<std::uint8_t> bytes(entry.size);
  EXPECT_FALSE(reader.copy(entry, bytes.data())) << "forgotten while it is copied";
  EXPECT_FALSE(reader.find(1, entry));
  EXPECT_TRUE(is_intact(reader, 2));
}

// The writer overwrites what the reader is about to read; the reader only gets intact messages.
TEST(Ring, ReaderThatIsNotWaitedForNeverReadsWhatIsHalfOverwritten) {
  RingWriter ring(1, 0);
  constexpr std::uint64_t kEnd = 30'000;
  std::thread reading([file = duplicate(ring.file())] {
    RingReader reader(file);
    std::vector<std::uint8_t> bytes(3000);
    for (std::uint64_t read = 0; reader.next() < kEnd || read == 0;) {
      Entry entry;
      const std::uint64_t number = reader.next() - 1;
      if (number == 0 || !reader.find(number, entry) || !reader.copy(entry, bytes.data())) continue;
      ++read;
      const auto expected = message(number, entry.size);
      ASSERT_EQ(std::memcmp(bytes.data(), expected.data(), entry.size), 0) << number;
    }
  });
  while (ring.next() < kEnd) put_last(ring, 100 + ring.next() % 2900, 1);
  reading.join();
}

// ---- a peer with invalid data ----

// What another process may have written into a ring of one message.
struct Scribble {
  const char* name;
  void (*write)(RingHeader&, Entry& first);
};
class Scribbled : public testing::TestWithParam<Scribble> {};

TEST_P(Scribbled, RingIsRefused) {
  RingWriter ring(1, 0);
  put(ring, 100);
  Window window(ring.file(), 0, 8192, true);
  auto& header = *reinterpret_cast<RingHeader*>(window.data());
  header.next.store(2);
  GetParam().write(header, reinterpret_cast<Entry*>(window.data() + 4096)[1]);
  RingReader reader(ring.file());
  Entry found;
  EXPECT_THROW(reader.find(1, found), Rubbish);
}

INSTANTIATE_TEST_SUITE_P(
    , Scribbled,
    rows::of<Scribble>(
        {{"NoEntries", [](RingHeader& header, Entry&) { header.entries.store(0); }},
         {"EntriesThatAreNoPowerOfTwo", [](RingHeader& header, Entry&) { header.entries.store(3); }},
         {"MoreEntriesThanTheFileHas", [](RingHeader& header, Entry&) { header.entries.store(1u << 20); }},
         {"TheMostEntries", [](RingHeader& header, Entry&) { header.entries.store(UINT32_MAX); }},
         {"TheEntryOfAnotherMessage", [](RingHeader&, Entry& first) { first.number = 17; }},
         {"AMessageThatBeginsWhereNumbersEnd",
          [](RingHeader&, Entry& first) { first.offset = UINT64_MAX - 50; }},
         {"AMessageBehindTheFile", [](RingHeader&, Entry& first) { first.offset = std::size_t{2} << 30; }},
         {"AMessageWithoutEnd",
          [](RingHeader&, Entry& first) {
            first.offset = 0;
            first.size = UINT64_MAX;
          }}}),
    rows::by_name);

// Something else in place of a peer's file.
struct NoFile {
  const char* name;
  void (*expect_refusal)();
};
class FileOfAPeer : public testing::TestWithParam<NoFile> {};

TEST_P(FileOfAPeer, IsRefusedWhereItIsNone) { GetParam().expect_refusal(); }

INSTANTIATE_TEST_SUITE_P(
    , FileOfAPeer,
    rows::of<NoFile>({{"ARingOfAnotherSize",
                       [] { EXPECT_THROW(RingReader(make_file("other", 4096)), Rubbish); }},
                      {"ARingThatIsNoFile", [] { EXPECT_THROW(RingReader(Descriptor{}), Rubbish); }},
                      {"ABoardOfAnotherSize", [] { EXPECT_THROW(Board(make_file("other", 100)), Failed); }},
                      {"ABoardThatIsNoFile", [] { EXPECT_THROW(Board(Descriptor{}), Failed); }}}),
    rows::by_name);

TEST(Board, NumbersThatArePassedOnAreOthers) {
  const auto board = Board::of_this_process();
  EXPECT_EQ(board, Board::of_this_process());
  const std::uint32_t first = board->take_cell();
  const std::uint32_t second = board->take_cell();
  EXPECT_NE(first, second);
  EXPECT_NE(first, 0u);
  board->return_cell(first);
  EXPECT_NE(board->take_cell(), second);
}

TEST(Board, BellsWakeWhoeverSleepsInAnotherMapping) {
  const auto board = Board::of_this_process();
  Board other(duplicate(board->file()));  // the peer's view of the board
  const std::uint32_t here = board->take_bell();
  const std::uint32_t there = board->take_bell();
  constexpr int kRounds = 20'000;
  std::atomic<int> ping{0};
  std::atomic<int> pong{0};
  std::thread answering([&] {
    for (int round = 1; round <= kRounds; ++round) {
      board->bell(there).wait_until(INT64_MAX, [&] { return ping.load() == round; });
      pong.store(round);
      other.ring(here);
    }
  });
  for (int round = 1; round <= kRounds; ++round) {
    ping.store(round);
    other.ring(there);
    ASSERT_TRUE(board->bell(here).wait_until(INT64_MAX, [&] { return pong.load() == round; }));
  }
  answering.join();
  board->return_bell(here);
  board->return_bell(there);
}

TEST(Seats, AreAsManyAsTheyAreAndTheLateOneIsRefused) {
  const auto domain = 1000 + static_cast<std::uint32_t>(getpid());  // unique to this process
  std::deque<support::Seat> seats;
  while (seats.size() < static_cast<std::size_t>(support::kSeats)) {
    seats.push_back(support::take_seat("shm", domain));
    EXPECT_EQ(seats.back().others.size(), seats.size() - 1) << "the later one connects to all before it";
    seats.back().others.clear();
  }
  EXPECT_THROW(support::take_seat("shm", domain), Failed);
  seats.erase(seats.begin() + 3);
  EXPECT_EQ(support::take_seat("shm", domain).number, 3);
}

}  // namespace
}  // namespace perflab::middleware::shm
