// Trace events of the `dds` runtime: its objects by name, its timers' callbacks, the phases of its executors.
// Messages are traced where they pass (publisher.cpp, subscription.cpp, intra_process.h).
//
// Events, their order and their layers follow rclcpp 28 (ROS 2 Jazzy), and for requests and responses rmw of
// ROS 2 Kilted. Handles are addresses of our objects and their members, one per layer. Callbacks of services
// are traced, those of clients are not. rclcpp does not trace waitables, which report their callbacks
// themselves, as ours do.
//
// All pointers to tracepoints are null if nothing is traced.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/dds/dds_runtime.h"
#include "runtime/runtime.h"
#include "tracing/ros/tracepoints.h"

namespace perflab::runtime {

using Gid = std::array<std::uint8_t, PERFLAB_ROS2_GID_BYTES>;
[[nodiscard]] Gid gid_of(const perflab_identity& identity) noexcept;

// A timer whose callbacks are traced. Its address is the timer's handle.
class TracedTimer final : public TimerHandler {
 public:
  // Executor phases to trace: none; that it executes the timer (the executor traces the rest); both.
  enum class Phases { kNone, kExecute, kBoth };

  TracedTimer(const perflab_ros2_tracepoints& trace, TimerHandler& handler, Phases phases) noexcept
      : trace_(trace), handler_(handler), phases_(phases) {}

  void on_tick(Nanoseconds due_ns) noexcept override {
    if (phases_ != Phases::kNone) trace_.rclcpp_executor_execute(this);
    trace_.timer_due(this, due_ns);
    trace_.callback_start(callback(), 0);
    handler_.on_tick(due_ns);
    trace_.callback_end(callback());
    if (phases_ == Phases::kBoth) trace_.rclcpp_executor_get_next_ready();
  }
  void on_skipped(Nanoseconds first_due_ns, std::uint64_t count) noexcept override {
    handler_.on_skipped(first_due_ns, count);
  }
  [[nodiscard]] const void* callback() const noexcept { return &phases_; }

 private:
  const perflab_ros2_tracepoints& trace_;
  TimerHandler& handler_;
  const Phases phases_;
};

// A span as events describe it: with a period as a timer, of which it is the handle, otherwise as a waitable.
class TracedSpan final : public Span {
 public:
  TracedSpan(const perflab_ros2_tracepoints& trace, Nanoseconds period_ns) noexcept : trace_(trace), period_ns_(period_ns) {}

  void begin(Nanoseconds due_ns) noexcept override {
    if (period_ns_ > 0 && due_ns != kUnknownTime) trace_.timer_due(this, due_ns);
    trace_.callback_start(callback(), 0);
  }
  void end() noexcept override { trace_.callback_end(callback()); }
  [[nodiscard]] const void* callback() const noexcept { return &period_ns_; }

 private:
  const perflab_ros2_tracepoints& trace_;
  const Nanoseconds period_ns_;
};

// Traces objects as they are created. Not for the measured path.
class DdsRuntime::Tracer {
 public:
  // `context`: handle of this process's rcl context.
  Tracer(const perflab_ros2_tracepoints& trace, const void* context);

  void name_group(std::size_t group, const std::string& node_namespace, const std::string& node);
  void made(const DdsPublisher& publisher);
  void made(DdsSubscription& subscription);
  void made(const DdsWaitable& waitable);
  // The handler to pass to the executor instead.
  TimerHandler& make_timer(const TimerSettings& settings, TimerHandler& handler, TracedTimer::Phases phases);
  Span& make_span(std::size_t group, const std::string& name, Nanoseconds period_ns);

 private:
  struct Node {
    std::string name;  // qualified
    char rmw = 0;      // its address is the handle
  };

  // Null for a group without a name.
  [[nodiscard]] const Node* node_of(std::size_t group) const;
  void made_timer(const void* handle, const void* callback, std::size_t group, const std::string& name,
                  Nanoseconds period_ns);
  void register_callback(const void* callback, const char* what, std::size_t group, const std::string& of);

  const perflab_ros2_tracepoints& trace_;
  std::map<std::size_t, Node> nodes_;  // stable addresses
  std::vector<std::unique_ptr<TracedTimer>> timers_;
  std::vector<std::unique_ptr<TracedSpan>> spans_;
};

}  // namespace perflab::runtime
