#include "measure/event_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
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

// Each producer waits for room, so nothing may be dropped: missing events were lost.
TEST(MessageEventQueue, SeveralProducersLoseNothingWhileThereIsRoom) {
  MessageEventQueue queue;
  constexpr std::uint32_t kProducers = 4;
  constexpr std::uint64_t kEach = 50'000;
  constexpr std::uint64_t kAhead = MessageEventQueue::kCapacity / kProducers;  // of the consumer, each
  std::array<std::atomic<std::uint64_t>, kProducers> received{};
  std::atomic<std::uint32_t> running = kProducers;
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < kProducers; ++p) {
    producers.emplace_back([&, p] {
      for (std::uint64_t i = 0; i < kEach; ++i) {
        while (i - received[p] >= kAhead) std::this_thread::yield();
        queue.push({.sequence = i, .edge = p});
      }
      --running;
    });
  }
  std::uint64_t total = 0;
  bool in_order = true;
  for (bool last = false; !last && queue.dropped() == 0;) {
    last = running == 0;  // before looking: what was pushed meanwhile is seen
    for (MessageEvent event; queue.pop(event); ++total)
      in_order = in_order && event.sequence == received[event.edge]++;
  }
  for (auto& count : received) count = kEach;  // after a drop nobody waits for the rest
  for (std::thread& producer : producers) producer.join();
  EXPECT_EQ(queue.dropped(), 0u);
  EXPECT_EQ(total, kProducers * kEach);
  EXPECT_TRUE(in_order) << "an event is missing, or came twice";
}

// The opposite: producers that do not wait. What is not received was dropped, and counted.
TEST(MessageEventQueue, SeveralProducersCountEachEventThatDoesNotFit) {
  MessageEventQueue queue;
  constexpr std::uint64_t kEach = 50'000;
  std::vector<std::thread> producers;
  for (std::uint32_t p = 0; p < 2; ++p) {
    producers.emplace_back([&queue, p] {
      for (std::uint64_t i = 0; i < kEach; ++i) queue.push({.sequence = i, .edge = p});
    });
  }
  for (std::thread& producer : producers) producer.join();
  std::uint64_t received = 0;
  for (MessageEvent event; queue.pop(event);) ++received;
  EXPECT_EQ(received, MessageEventQueue::kCapacity);
  EXPECT_EQ(queue.dropped(), 2 * kEach - MessageEventQueue::kCapacity);
}

}  // namespace
}  // namespace perflab::measure
