// Ends a program that burns CPUs, also when it leaves no CPU to anybody, itself included.
//
// The soft end is a timer per burning thread whose signal that very thread handles: it is the one that has
// the CPU. The hard end, a little later, is a timer whose signal is SIGKILL: the kernel needs nobody for it.
#pragma once

#include "base/descriptor.h"
#include "base/time.h"

namespace perflab::burn {

class Watchdog {
 public:
  // Arms the hard end. `limit_ns` counts from now. One at a time in a process. Throws Error.
  explicit Watchdog(Nanoseconds limit_ns);
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

  // Arms the soft end for the calling thread. Throws Error.
  void watch_this_thread() const;
  // The limit was reached in a watched thread. May be asked from any thread.
  [[nodiscard]] static bool limit_reached() noexcept;
  // Becomes readable when the limit is reached.
  [[nodiscard]] int descriptor() const noexcept { return wake_.number(); }

 private:
  Nanoseconds limit_at_ns_;
  Event wake_;
};

}  // namespace perflab::burn
