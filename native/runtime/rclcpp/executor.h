// The executors of rclcpp, in named, scheduled and registered threads; and `inline`, which has no executor:
// rmw's threads take and handle messages, and timers, which in rclcpp need an executor, are perflab's own.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <vector>

#include "runtime/rclcpp/entities.h"
#include "runtime/rclcpp/timer.h"
#include "runtime/timer.h"
#include "runtime/workers.h"

namespace perflab::runtime::ros {

class RosExecutor {
 public:
  RosExecutor(const measure::Clock& clock, EventSink& sink, const ExecutorSettings& settings)
      : clock_(clock), sink_(sink), settings_(settings) {}
  RosExecutor(const RosExecutor&) = delete;
  RosExecutor& operator=(const RosExecutor&) = delete;
  virtual ~RosExecutor() = default;

  virtual void add_node(const NodeHandle& node) = 0;
  virtual void add_receiver(RosReceiver& receiver, int priority) = 0;
  virtual void add_timer(const NodeHandle& node, const TimerSettings& settings, TimerHandler& handler) = 0;
  virtual void set_base(Nanoseconds base_ns) noexcept = 0;
  // Timers that must be reset in time.
  [[nodiscard]] virtual std::vector<RosTimer*> timers() = 0;
  virtual void create_threads() = 0;  // throws Error
  virtual void run() = 0;
  virtual void stop() noexcept = 0;
  [[nodiscard]] virtual bool timers_done() const noexcept = 0;

 protected:
  const measure::Clock& clock_;
  EventSink& sink_;
  const ExecutorSettings settings_;
  Workers workers_;
};

// Throws Error if this version of rclcpp has no such executor.
std::unique_ptr<RosExecutor> make_executor(const measure::Clock& clock, EventSink& sink,
                                           const ExecutorSettings& settings,
                                           const rclcpp::Context::SharedPtr& context);

}  // namespace perflab::runtime::ros
