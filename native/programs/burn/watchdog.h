// Ends a program that burns CPUs, even if it leaves no CPU to others or to itself.
//
// The soft end is a timer per burning thread; the same thread, which has the CPU, handles its signal. The
// hard end, a little later, is a timer that sends SIGKILL, which needs no thread of the process.
#pragma once

#include "base/descriptor.h"
#include "base/time.h"

namespace perflab::burn {

class Watchdog {
 public:
  // Arms the hard end. `limit_ns` counts from now. One per process at a time. Throws Error.
  explicit Watchdog(Nanoseconds limit_ns);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Arms the soft end for the calling thread. Throws Error.
  void watch_this_thread() const;
  // True if the limit was reached in a watched thread. Thread-safe.
  [[nodiscard]] static bool limit_reached() noexcept;
  // Becomes readable when the limit is reached.
  [[nodiscard]] int descriptor() const noexcept { return wake_.number(); }

 private:
  Nanoseconds limit_at_ns_;
  Event wake_;
};

}  // namespace perflab::burn
