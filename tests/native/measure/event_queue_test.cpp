#include "measure/event_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <thread>
#include <vector>

namespace perflab::measure {
namespace {

TEST(MessageEventQueue, KeepsTheOrderOfOneProducerOverManyRounds) {
  MessageEventQueue queue;
  std::uint64_t next = 0;
  for (std::uint64_t i = 0; i < 3 * MessageEventQueue::kCapacity; ++i) {
    queue.push({.sequence = i});
    if (i % 2 == 0) continue;
    for (MessageEvent event; queue.pop(event);) EXPECT_EQ(event.sequence, next++);
  }
  EXPECT_EQ(next, 3 * MessageEventQueue::kCapacity);
  EXPECT_EQ(queue.dropped(), 0u);
}

TEST(MessageEventQueue, AFullQueueDropsTheNewestAndCountsThem) {
  MessageEventQueue queue;
  for (std::uint64_t i = 0; i < MessageEventQueue::kCapacity + 5; ++i) queue.push({.sequence = i});
  EXPECT_EQ(queue.dropped(), 5u);
  MessageEvent event;
  ASSERT_TRUE(queue.pop(event));
  EXPECT_EQ(event.sequence, 0u);
  queue.push({.sequence = 77});
  EXPECT_EQ(queue.dropped(), 5u);
}

TEST(MessageEventQueue, SeveralProducersLoseNothingWhileThereIsRoom) {
  MessageEventQueue queue;
  constexpr std::uint32_t kProducers = 4;
  constexpr std::uint64_t kEach = 50'000;
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&queue, p] {
      for (std::uint64_t i = 0; i < kEach; ++i) queue.push({.sequence = i, .edge = p});
    });
  }
  std::array<std::uint64_t, kProducers> received{};
  std::array<std::uint64_t, kProducers> last{};
  const auto drain = [&] {
    for (MessageEvent event; queue.pop(event);) {
      if (received[event.edge] > 0) {
        EXPECT_GT(event.sequence, last[event.edge]);
      }
      last[event.edge] = event.sequence;
      ++received[event.edge];
    }
  };
  std::uint64_t total = 0;
  while (total + queue.dropped() < kProducers * kEach) {
    drain();
    total = received[0] + received[1] + received[2] + received[3];
  }
  for (std::thread& producer : producers) producer.join();
  drain();
  EXPECT_EQ(received[0] + received[1] + received[2] + received[3] + queue.dropped(), kProducers * kEach);
}

}  // namespace
}  // namespace perflab::measure
