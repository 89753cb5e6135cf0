// The processes below one, as /proc tells it, and how to signal one of them and nobody else.
#pragma once

#include <sys/types.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/descriptor.h"

namespace perflab::proc {

// What identifies a process: its number alone may be used again.
struct Identity {
  pid_t pid = 0;
  std::uint64_t start_ticks = 0;  // since boot, as /proc/PID/stat has it
  auto operator<=>(const Identity&) const = default;
};

struct Process {
  Identity identity;
  pid_t parent = 0;
  bool dead = false;  // it has ended, and its parent has not yet asked for its status
  std::string name;
};

// Nothing where there is no such process (any more).
std::optional<Process> read_process(pid_t pid);

// All living descendants of these processes, zombies and the processes themselves left out. Those whose parents
// have ended are children of the nearest child subreaper (prctl(2)). Throws Failed without /proc.
std::vector<Process> living_descendants(std::vector<pid_t> of);

// As pidfd_open(2); not open where there is no such process, errno says why.
[[nodiscard]] Descriptor open_process(pid_t pid) noexcept;

// False if the process is gone, or the kernel does not permit it.
bool send_signal(const Identity& identity, int number);

}  // namespace perflab::proc
