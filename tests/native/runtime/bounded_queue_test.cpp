#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "base/queue.h"

namespace perflab::runtime {
namespace {

TEST(BoundedQueue, IsFirstInFirstOutAroundItsEnd) {
  BoundedQueue<int> queue;
  queue.reserve(3);
  int next_in = 0;
  int next_out = 0;
  for (int round = 0; round < 10; ++round) {
    while (queue.size() < 3) queue.push_back(next_in++);
    EXPECT_EQ(queue.pop_front(), next_out++);
    EXPECT_EQ(queue.pop_front(), next_out++);
  }
  EXPECT_EQ(queue.size(), 1u);
  EXPECT_EQ(queue.capacity(), 3u);
}

TEST(BoundedQueue, WhatIsPushedToTheFrontIsNext) {
  BoundedQueue<int> queue;
  queue.reserve(3);
  queue.push_back(2);
  queue.push_front(1);
  queue.push_front(0);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(queue.pop_front(), i);
  EXPECT_TRUE(queue.empty());
}

TEST(BoundedQueue, KeepsItsOrderWhenItsRoomIsRaised) {
  BoundedQueue<int> queue;
  queue.reserve(2);
  queue.push_back(0);
  queue.push_back(1);
  queue.pop_front();
  queue.push_back(2);  // around the end
  queue.reserve(4);
  queue.reserve(1);  // never less
  queue.push_back(3);
  queue.push_front(0);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.pop_front(), i);
}

TEST(BoundedQueue, LetsGoOfWhatWasTaken) {
  const auto value = std::make_shared<int>(1);
  BoundedQueue<std::shared_ptr<int>> queue;
  queue.reserve(2);
  queue.push_back(value);
  EXPECT_EQ(value.use_count(), 2);
  queue.pop_front();
  EXPECT_EQ(value.use_count(), 1);
}

}  // namespace
}  // namespace perflab::runtime
