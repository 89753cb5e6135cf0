// The sources of callbacks that executors of the `dds` runtime queue and run.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "base/gate.h"
#include "runtime/dds/dds_runtime.h"

namespace perflab::runtime {

// A source of callbacks: one of the two ways by which messages reach a subscription, or a waitable.
class DdsRuntime::Source {
 public:
  // The result of one turn: nothing was there; one callback ran and no more is there; one ran and there may
  // be more.
  enum class Turn { kNothing, kLast, kMore };

  explicit Source(Entity& owner) noexcept : entity(owner) {}
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  // Takes one message or trigger, if there is one, and runs its callback.
  virtual Turn run_one() noexcept = 0;
  // run_one() in two steps, for an executor that takes everything before it runs anything: the first runs no
  // callback; the second follows each take that returned something.
  virtual Turn take_one() noexcept = 0;
  virtual void run_taken() noexcept = 0;
  // The object named by the trace's execute event. Null: there is no such event, as in rclcpp, which emits it
  // only for timers and for subscriptions through the middleware.
  [[nodiscard]] virtual const void* executed() const noexcept { return nullptr; }
  // The trace's handle of the callback; the source itself is the handle of rclcpp's subscription.
  [[nodiscard]] const void* callback() const noexcept { return &queued; }

  Entity& entity;
  // Used by the executor.
  std::atomic<bool> queued{false};
  std::size_t index = 0;
  int priority = 0;

 protected:
  ~Source() = default;
};

// An entity that runs one callback at a time: a subscription or a waitable.
class DdsRuntime::Entity {
 public:
  // The second is null if there is only one.
  std::array<Source*, 2> sources{};
  // For the inline executor.
  Gate gate;

 protected:
  ~Entity() = default;
};

}  // namespace perflab::runtime
