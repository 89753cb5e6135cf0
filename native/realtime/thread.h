// What a thread can say of itself to the kernel: its name, its end with the parent, when it wants to wake.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "realtime/scheduling.h"

namespace perflab::realtime {

// Names the calling thread, as /proc, perf and traces show it. The kernel keeps the first 15 bytes.
void name_this_thread(const std::string& name) noexcept;

// Threads that perflab started itself; every other thread of the process belongs to the middleware.
enum class Role { kPerflab, kExecutor, kProgram };
// "perflab", "executor", "program"
[[nodiscard]] const char* to_text(Role role) noexcept;
struct OwnThread {
  int tid = 0;
  Role role = Role::kPerflab;
  ThreadSettings asked{};
};
// By the thread itself, at its beginning.
void register_this_thread(Role role, const ThreadSettings& asked = {});
// By the thread itself, at its end: its number may become another one's.
void forget_this_thread() noexcept;
// Of a thread that registered in a library with a registry of its own. Does nothing if it is known.
void adopt_thread(const OwnThread& thread);
// All that registered so far, also those that have ended and were not forgotten.
std::vector<OwnThread> own_threads();

// The kernel ends this process when the thread that started it ends. False if that parent is already gone.
[[nodiscard]] bool end_with_parent() noexcept;

// Sleeps until the instant on CLOCK_MONOTONIC; returns at once if it has passed.
void sleep_until(Nanoseconds instant) noexcept;

// Spends that much CPU time of the calling thread, however long it takes on the wall. Reads the thread's CPU
// clock, which is a system call: for simulated application work, not for measuring.
void spend_cpu_time(Nanoseconds amount) noexcept;

}  // namespace perflab::realtime
