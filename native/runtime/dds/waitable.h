// A waitable of the `dds` runtime: a guard condition that notifies its executor, and the callback.
#pragma once

#include <utility>

#include "runtime/dds/executor.h"
#include "runtime/dds/source.h"
#include "runtime/guard.h"
#include "tracing/ros/tracepoints.h"

namespace perflab::runtime {

class DdsRuntime::DdsWaitable final : public Waitable, public DdsRuntime::Entity, public DdsRuntime::Source {
 public:
  // `trace` may be null.
  DdsWaitable(WaitableHandler& handler, DdsExecutor& executor, WaitableSettings settings,
              const perflab_ros2_tracepoints* trace)
      : Source(static_cast<Entity&>(*this)),
        handler_(handler),
        executor_(executor),
        settings_(std::move(settings)),
        trace_(trace) {
    sources = {this, nullptr};
  }

  void trigger(Nanoseconds due_ns) noexcept override {
    if (guard_.trigger(due_ns)) {
      executor_.on_ready(*this);
    } else {
      handler_.on_coalesced(due_ns);
    }
  }
  [[nodiscard]] bool triggered() const noexcept { return guard_.triggered(); }
  [[nodiscard]] const WaitableSettings& settings() const noexcept { return settings_; }

  Turn run_one() noexcept override {
    const Turn taken = take_one();
    if (taken != Turn::kNothing) run_taken();
    return taken;
  }
  Turn take_one() noexcept override {
    const auto due_ns = guard_.take();
    if (!due_ns) return Turn::kNothing;
    taken_due_ns_ = *due_ns;
    return Turn::kLast;  // triggers from now on notify the executor again
  }
  void run_taken() noexcept override {
    // The callback may trigger its own waitable, and `inline` then takes that trigger before this one has
    // ended.
    const Nanoseconds due_ns = taken_due_ns_;
    if (trace_ != nullptr) [[unlikely]]
      trace_->callback_start(callback(), 0);
    handler_.on_triggered(due_ns);
    if (trace_ != nullptr) [[unlikely]]
      trace_->callback_end(callback());
  }

 private:
  WaitableHandler& handler_;
  DdsExecutor& executor_;
  const WaitableSettings settings_;
  const perflab_ros2_tracepoints* const trace_;
  Guard guard_;
  Nanoseconds taken_due_ns_ = 0;  // taken by take_one()
};

}  // namespace perflab::runtime
