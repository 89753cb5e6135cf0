// Finds the descendants of a process in /proc, and signals one of them without hitting a reused pid.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace perflab::proc {

// Identifies a process; a pid alone may be reused.
struct Identity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // start time since boot, as in /proc/PID/stat
  auto operator<=>(const Identity&) const = default;
};

struct Process {
  Identity identity;
  pid_t parent = 0;
  bool dead = false;  // a zombie: ended, but not yet waited for by its parent
  std::string name;
};

// Empty if the process does not exist (any more).
std::optional<Process> read_process(pid_t pid);

// All living descendants of these processes, without zombies and without the given processes. Orphans count
// as children of the nearest child subreaper (prctl(2)). Throws Failed without /proc.
std::vector<Process> living_descendants(std::vector<pid_t> of);

// pidfd_open(2). Not open if the process does not exist; errno has the reason.
[[nodiscard]] Descriptor open_process(pid_t pid) noexcept;

// False if the process has ended or the kernel denies permission.
bool send_signal(const Identity& identity, int number);

}  // namespace perflab::proc
