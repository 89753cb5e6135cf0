// A waitable of rclcpp: a guard condition, and what an executor runs when it finds it triggered.
//
// As rclcpp's own waitables of delivery within the process: what is there to do is a mark of its own, and the guard
// condition only wakes. So a trigger that an executor saw and had no thread for is not forgotten, and one too many (the
// EventsExecutor has an event for each) runs nothing.
#pragma once

#include "runtime/guard.h"
#include "runtime/rclcpp/entities.h"

namespace perflab::runtime::ros {

class RosWaitable final : public Waitable, public RosReceiver {
 public:
  // Throws what rclcpp throws.
  RosWaitable(Shared& shared, const NodeHandle& node, const WaitableSettings& settings, WaitableHandler& handler);
  ~RosWaitable() override;

  void trigger(Nanoseconds due_ns) noexcept override;
  void open_inline() override;
  void close_inline() noexcept override;

 private:
  class Made;

  Shared& shared_;
  WaitableHandler& handler_;
  const rclcpp::node_interfaces::NodeWaitablesInterface::SharedPtr node_;
  const std::shared_ptr<Made> made_;
  Inline inline_;
  std::atomic<bool> opened_{false};  // `inline` runs it
};

}  // namespace perflab::runtime::ros
