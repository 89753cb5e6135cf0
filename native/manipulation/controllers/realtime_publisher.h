// Ways for a control loop to pass values to other threads without waiting: the latest value, a publisher with
// its own thread like ros2_control's realtime_tools::RealtimePublisher, and a lossless stream of small
// values.
//
// Example:
//   RealtimePublisher<Snapshot> publisher(context, "joint_states", Snapshot(joints), [&](const Snapshot& at) {
//   publish(at); });
//   publisher.offer(now);   // by the control loop
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <utility>

#include "program/program.h"

namespace perflab::manipulation {

// Copying a value must not allocate: its vectors must have their final size from the beginning.
template <typename Value>
class Latest {
 public:
  explicit Latest(Value first) : value_(std::move(first)) {}

  // One thread. False if the reader is reading at that moment; then the value is dropped.
  bool offer(const Value& value) noexcept {
    const std::unique_lock lock(mutex_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    value_ = value;
    return true;
  }
  void read(Value& into) const {
    const std::scoped_lock lock(mutex_);
    into = value_;
  }

 private:
  mutable std::mutex mutex_;
  Value value_;
};

// Its thread must be among the process's `threads` in the graph. If it is slower than the loop, it skips values.
template <typename Value>
class RealtimePublisher {
 public:
  RealtimePublisher(program::Context& context, const std::string& thread, const Value& first,
                    std::function<void(const Value&)> publish)
      : latest_(first), taken_(first), publish_(std::move(publish)) {
    context.thread(thread, [this](const program::Running& running) { run(running); });
  }

  void offer(const Value& value) noexcept {
    if (!latest_.offer(value)) return;
    number_.fetch_add(1, std::memory_order_release);
    number_.notify_one();
  }
  // Tells the thread to end.
  void stop() noexcept {
    ending_.store(true, std::memory_order_release);
    number_.fetch_add(1, std::memory_order_release);
    number_.notify_one();
  }

 private:
  void run(const program::Running& running) {
    std::uint32_t seen = 0;
    while (!running.stopped() && !ending_.load(std::memory_order_acquire)) {
      number_.wait(seen, std::memory_order_acquire);
      const std::uint32_t number = number_.load(std::memory_order_acquire);
      if (number == seen || ending_.load(std::memory_order_acquire)) continue;
      seen = number;
      latest_.read(taken_);
      publish_(taken_);
    }
  }

  Latest<Value> latest_;
  Value taken_;
  std::function<void(const Value&)> publish_;
  std::atomic<std::uint32_t> number_{0};
  std::atomic<bool> ending_{false};
};

// Publishes every offered value in order; the buffer limits how far the thread may fall behind.
template <typename Value>
class RealtimeStream {
 public:
  RealtimeStream(program::Context& context, const std::string& thread, std::function<void(const Value&)> publish)
      : publish_(std::move(publish)) {
    context.thread(thread, [this](const program::Running& running) { run(running); });
  }

  void offer(const Value& value) noexcept {
    const std::uint32_t end = end_.load(std::memory_order_relaxed);
    if (end - begin_.load(std::memory_order_acquire) == kRoom) {
      lost_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    values_[end % kRoom] = value;
    end_.store(end + 1, std::memory_order_release);
    end_.notify_one();
  }
  void stop() noexcept {
    ending_.store(true, std::memory_order_release);
    end_.fetch_add(1, std::memory_order_release);  // reading has ended
    end_.notify_one();
  }
  // The number of values that were dropped because the buffer was full.
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::uint32_t kRoom = 4096;

  void run(const program::Running& running) {
    std::uint32_t next = 0;
    while (!running.stopped()) {
      end_.wait(next, std::memory_order_acquire);
      for (; next != end_.load(std::memory_order_acquire); begin_.store(++next, std::memory_order_release)) {
        if (ending_.load(std::memory_order_acquire)) return;
        publish_(values_[next % kRoom]);
      }
    }
  }

  std::function<void(const Value&)> publish_;
  std::array<Value, kRoom> values_{};
  std::atomic<std::uint32_t> begin_{0}, end_{0};
  std::atomic<std::uint64_t> lost_{0};
  std::atomic<bool> ending_{false};
};

}  // namespace perflab::manipulation
