#include "measure/message_ring.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

namespace perflab::measure {
namespace {

struct Taken {
  std::vector<DeliveryRow> deliveries;
  std::vector<PublicationRow> publications;
  std::vector<std::vector<std::uint8_t>> contents;
  void operator()(const DeliveryRow& row) { deliveries.push_back(row); }
  void operator()(const PublicationRow& row, std::span<const std::uint8_t> bytes) {
    publications.push_back(row);
    contents.emplace_back(bytes.begin(), bytes.end());
  }
};

void put(MessageRing& ring, std::uint64_t sequence, std::size_t size) {
  ring.put(PublicationRow{.sequence = sequence}, size, [&](std::span<std::uint8_t> to) {
    std::iota(to.begin(), to.end(), static_cast<std::uint8_t>(sequence));
  });
}

// Sizes that do not divide the ring's, so that records reach its end at every position.
TEST(MessageRing, GivesBackWhatWasPutOverManyRounds) {
  MessageRing ring(MessageRing::kLeastBytes, {.edges = 1, .publishers = 1});
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    ring.put(DeliveryRow{.sequence = i, .callback_ns = 5});
    put(ring, i, i % 300);
    Taken taken;
    ring.take(taken);
    ASSERT_EQ(taken.deliveries.size(), 1u);
    EXPECT_EQ(taken.deliveries[0].sequence, i);
    EXPECT_EQ(taken.deliveries[0].callback_ns, 5);
    EXPECT_EQ(taken.deliveries[0].arrived_ns, kUnknownTime);
    ASSERT_EQ(taken.contents.size(), 1u);
    ASSERT_EQ(taken.contents[0].size(), i % 300);
    EXPECT_EQ(taken.publications[0].size, i % 300);
    for (std::size_t at = 0; at < taken.contents[0].size(); ++at)
      ASSERT_EQ(taken.contents[0][at], static_cast<std::uint8_t>(i + at));
    ++next;
  }
  EXPECT_EQ(ring.lost_deliveries(0) + ring.lost_publications(0), 0u);
}

TEST(MessageRing, WhatFindsNoRoomIsCountedForItsEnd) {
  MessageRing ring(MessageRing::kLeastBytes, {.edges = 2, .publishers = 1});
  for (int i = 0; i < 100; ++i) ring.put(DeliveryRow{.edge = 1});
  put(ring, 0, 2 * MessageRing::kLeastBytes);  // never fits
  Taken taken;
  ring.take(taken);
  EXPECT_EQ(taken.deliveries.size(), MessageRing::kLeastBytes / 72);
  EXPECT_EQ(ring.lost_deliveries(1), 100 - taken.deliveries.size());
  EXPECT_EQ(ring.lost_deliveries(0), 0u);
  EXPECT_EQ(ring.lost_publications(0), 1u);
  ring.close();
  ring.put(DeliveryRow{.edge = 0});
  EXPECT_EQ(ring.lost_deliveries(0), 1u);
}

TEST(MessageRing, WhoMayWaitForRoomLosesNothing) {
  MessageRing ring(MessageRing::kLeastBytes, {.edges = 1, .publishers = 1}, true);
  constexpr std::uint64_t kCount = 20'000;
  std::thread producer([&] {
    for (std::uint64_t i = 0; i < kCount; ++i) ring.put(DeliveryRow{.sequence = i});
  });
  Taken taken;
  while (taken.deliveries.size() < kCount) {
    ring.take(taken);
    std::this_thread::yield();
  }
  producer.join();
  for (std::uint64_t i = 0; i < kCount; ++i) ASSERT_EQ(taken.deliveries[i].sequence, i);
}

TEST(MessageRing, SeveralProducersLoseNothingUncounted) {
  constexpr std::uint32_t kProducers = 4;
  constexpr std::uint64_t kEach = 20'000;
  MessageRing ring(64u << 10, {.edges = kProducers, .publishers = kProducers});
  std::atomic<std::uint32_t> running = kProducers;
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        ring.put(PublicationRow{.publisher = p, .sequence = i}, i % 100, [&](std::span<std::uint8_t> to) {
          std::ranges::fill(to, static_cast<std::uint8_t>(p));
        });
      }
      --running;
    });
  }
  struct Checked {
    std::array<std::uint64_t, kProducers> count{}, last{};
    bool right = true;
    void operator()(const DeliveryRow&) { right = false; }
    void operator()(const PublicationRow& row, std::span<const std::uint8_t> bytes) {
      right = right && (count[row.publisher]++ == 0 || row.sequence > last[row.publisher]) && bytes.size() == row.sequence % 100 &&
              std::ranges::all_of(bytes, [&](std::uint8_t byte) { return byte == row.publisher; });
      last[row.publisher] = row.sequence;
    }
  } checked;
  for (bool last = false; !last;) {
    last = running == 0;  // before looking: what was put meanwhile is seen
    ring.take(checked);
  }
  for (std::thread& producer : producers) producer.join();
  EXPECT_TRUE(checked.right);
  for (std::uint32_t p = 0; p < kProducers; ++p) EXPECT_EQ(checked.count[p] + ring.lost_publications(p), kEach);
}

TEST(MessageRing, HasRoomForSomeOfTheLongestMessages) {
  EXPECT_EQ(ring_bytes(1 << 20, 100), std::size_t{1} << 20);
  EXPECT_GE(ring_bytes(1 << 20, 1 << 20), std::size_t{4} << 20);
  EXPECT_EQ(ring_bytes(1, 0), MessageRing::kLeastBytes);
}

}  // namespace
}  // namespace perflab::measure
