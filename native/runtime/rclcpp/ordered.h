// Executors of perflab's own on rclcpp::Executor, which promise an order (runtime.h: kPriority, kLet). rclcpp waits and
// says what is ready, as for its SingleThreadedExecutor; which callback is next is said here.
//
// What rclcpp has besides a graph's callbacks (events of QoS, parameter services) has priority 0, and stands behind the
// graph's where the order is that of creation.
#pragma once

#include "runtime/rclcpp/distribution.h"

#ifdef PERFLAB_HAS_WAIT_RESULT

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <rclcpp/any_executable.hpp>
#include <unordered_map>
#include <vector>

#include "measure/clock.h"

namespace perflab::runtime::ros {

class OrderedExecutor : public rclcpp::Executor {
 public:
  using rclcpp::Executor::Executor;

  // What rclcpp calls a callback of the graph: its subscription, timer, service, client or waitable. In the order of
  // their creation, before spin().
  void place(const void* executable, int priority) {
    places_.try_emplace(executable, Place{priority, places_.size(), 0, 0});
  }
  void spin() override;

 protected:
  struct Place {
    int priority = 0;
    std::size_t rank = std::numeric_limits<std::size_t>::max();  // by creation
    std::uint64_t ready_since = 0;  // the wait that found it ready first, since its callback ran
    std::uint64_t seen = 0;         // the last wait that found it ready
  };
  struct Ready {
    rclcpp::AnyExecutable what;
    Place* place;
  };

  // One round: waits, and runs something.
  virtual void turn() = 0;
  // What is ready now, with nothing taken; `timeout` as for rclcpp.
  std::vector<Ready>& wait(std::chrono::nanoseconds timeout);
  // Of a timer or waitable; false if it is not ready any more.
  static bool take_data(rclcpp::AnyExecutable& what);

 private:
  template <typename Found, typename Executable>
  void add(const Found& all, const void* key, std::shared_ptr<Executable> rclcpp::AnyExecutable::* member,
           std::shared_ptr<Executable> executable);

  std::unordered_map<const void*, Place> places_;
  std::vector<Ready> ready_;
  std::uint64_t waits_ = 0;
};

// Waits anew after each callback, as PiCAS' executor does. Among equals the one that an earlier wait found ready, then
// the one that was created first: a wait set does not tell in which order things became ready.
class PriorityExecutor : public OrderedExecutor {
 public:
  using OrderedExecutor::OrderedExecutor;

 private:
  void turn() override;
};

// As dds/let_executor.cpp; rclcpp's timers leave out what they missed, so each has one tick of an activation.
class LetExecutor : public OrderedExecutor {
 public:
  using OrderedExecutor::OrderedExecutor;

  void set_period(const measure::Clock& clock, Nanoseconds period_ns) {
    clock_ = &clock;
    period_ns_ = period_ns;
  }
  void set_base(Nanoseconds base_ns) noexcept { base_ns_ = base_ns; }
  void cancel() override;

 private:
  void turn() override;
  void sleep_until_next_period();

  const measure::Clock* clock_ = nullptr;
  Nanoseconds period_ns_ = 0;
  Nanoseconds base_ns_ = 0;
  std::mutex sleeping_;
  std::condition_variable cancelled_;
};

}  // namespace perflab::runtime::ros

#endif
