// What a thread can say of itself to the kernel: its name, its end with the parent, when it wants to wake.
#pragma once

#include <string>

#include "measure/clock.h"

namespace perflab::realtime {

// Names the calling thread, as /proc, perf and traces show it. The kernel keeps the first 15 bytes.
void name_this_thread(const std::string& name) noexcept;

// The kernel ends this process when the thread that started it ends. False if that parent is already gone.
[[nodiscard]] bool end_with_parent() noexcept;

// Sleeps until the instant on CLOCK_MONOTONIC; returns at once if it has passed.
void sleep_until(Nanoseconds instant) noexcept;

// Spends that much CPU time of the calling thread, however long it takes on the wall. Reads the thread's CPU
// clock, which is a system call: for simulated application work, not for measuring.
void spend_cpu_time(Nanoseconds amount) noexcept;

}  // namespace perflab::realtime
