// perflab's executors on rclcpp::Executor, with a guaranteed order (runtime.h: kPriority, kLet). rclcpp waits
// and reports what is ready, as for its SingleThreadedExecutor; the code here chooses the next callback.
//
// rclcpp's own callbacks besides the graph's (QoS events, parameter services) have priority 0, and come after
// the graph's in order of creation.
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

  // Adds a callback of the graph by rclcpp's pointer to its subscription, timer, service, client or waitable.
  // Call in the order of creation, before spin().
  void place(const void* executable, int priority) {
    places_.try_emplace(executable, Place{priority, places_.size(), 0, 0});
  }
  void spin() override;

 protected:
  struct Place {
    int priority = 0;
    std::size_t rank = std::numeric_limits<std::size_t>::max();  // order of creation
    std::uint64_t ready_since = 0;  // the first wait that found it ready since its callback last ran
    std::uint64_t seen = 0;         // the last wait that found it ready
  };
  struct Ready {
    rclcpp::AnyExecutable what;
    Place* place;
  };

  // One round: waits, then runs something.
  virtual void turn() = 0;
  // What is ready now; nothing is taken. `timeout` as in rclcpp.
  std::vector<Ready>& wait(std::chrono::nanoseconds timeout);
  // For a timer or waitable; false if it is no longer ready.
  static bool take_data(rclcpp::AnyExecutable& what);

 private:
  template <typename Found, typename Executable>
  void add(const Found& all, const void* key, std::shared_ptr<Executable> rclcpp::AnyExecutable::* member,
           std::shared_ptr<Executable> executable);

  std::unordered_map<const void*, Place> places_;
  std::vector<Ready> ready_;
  std::uint64_t waits_ = 0;
};

// Waits again after each callback, like PiCAS' executor. Of equal priority, the one found ready by an earlier
// wait runs first, then the one created first: a wait set does not report the order in which things became
// ready.
class PriorityExecutor : public OrderedExecutor {
 public:
  using OrderedExecutor::OrderedExecutor;

 private:
  void turn() override;
};

// Like dds/let_executor.cpp; rclcpp's timers skip missed ticks, so each has one tick per activation.
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
