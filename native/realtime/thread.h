// Kernel settings of a thread: its name, its end with the parent process, its wake-up time.
#pragma once

#include <string>
#include <vector>

#include "base/time.h"
#include "realtime/scheduling.h"

namespace perflab::realtime {

// Names the calling thread in /proc, perf and traces. The kernel keeps the first 15 bytes.
void name_this_thread(const std::string& name) noexcept;

// The role of a thread that perflab started itself; all other threads of the process belong to the
// middleware.
enum class Role { kPerflab, kExecutor, kProgram };
// "perflab", "executor", "program"
[[nodiscard]] const char* to_text(Role role) noexcept;
struct OwnThread {
  int tid = 0;
  Role role = Role::kPerflab;
  ThreadSettings asked{};
};
// Called by the thread itself when it starts.
void register_this_thread(Role role, const ThreadSettings& asked = {});
// Called by the thread itself before it ends, because its tid may be reused.
void forget_this_thread() noexcept;
// Registers a thread that a library with its own registry reports. Does nothing if the thread is known.
void adopt_thread(const OwnThread& thread);
// All registered threads, including ended ones that were not forgotten.
std::vector<OwnThread> own_threads();

// Makes the kernel end this process when the thread that started it ends. False if that parent has already
// ended.
[[nodiscard]] bool end_with_parent() noexcept;

// Sleeps until the instant on CLOCK_MONOTONIC; returns at once if it has passed.
void sleep_until(Nanoseconds instant) noexcept;

// Uses this much CPU time of the calling thread, however long that takes in wall time. Reads the thread's CPU
// clock, a system call: for simulated application work, not for measuring.
void spend_cpu_time(Nanoseconds amount) noexcept;

}  // namespace perflab::realtime
