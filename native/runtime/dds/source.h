// What executors of the `dds` runtime queue and run: the sources of callbacks.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "base/gate.h"
#include "runtime/dds/dds_runtime.h"

namespace perflab::runtime {

// What causes callbacks: one of the two ways in which messages reach a subscription, or a waitable.
class DdsRuntime::Source {
 public:
  // What one turn did: there was nothing; it ran one callback and there is no other; ... and there may be.
  enum class Turn { kNothing, kLast, kMore };

  explicit Source(Entity& owner) noexcept : entity(owner) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  // Takes what is there, one message or trigger, and runs its callback.
  virtual Turn run_one() noexcept = 0;
  // The same in two steps, for an executor that takes everything before it runs anything: the first runs no
  // callback, the second follows each first one that took something.
  virtual Turn take_one() noexcept = 0;
  virtual void run_taken() noexcept = 0;
  // What the trace's execute event names. Null: there is no such event, as in rclcpp, which has it for timers
  // and for subscriptions through the middleware alone.
  [[nodiscard]] virtual const void* executed() const noexcept { return nullptr; }
  // What stands for the callback in a trace; the source itself stands for rclcpp's subscription.
  [[nodiscard]] const void* callback() const noexcept { return &queued; }

  Entity& entity;
  // The rest is the executor's.
  std::atomic<bool> queued{false};
  std::size_t index = 0;
  int priority = 0;

 protected:
  ~Source() = default;
};

// What runs one callback at a time: a subscription or a waitable.
class DdsRuntime::Entity {
 public:
  // The second is null where there is but one.
  std::array<Source*, 2> sources{};
  // Of the inline executor.
  Gate gate;

 protected:
  ~Entity() = default;
};

}  // namespace perflab::runtime
