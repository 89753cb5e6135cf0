#include "base/descendants.h"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <unordered_map>

#include "base/error.h"
#include "base/proc.h"

namespace perflab::proc {

std::optional<Process> read_process(pid_t pid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/stat");
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  if (!stat) return std::nullopt;
  return Process{{pid, stat->start_ticks}, stat->parent, stat->dead(), std::string(stat->name)};
}

std::vector<Process> living_descendants(std::vector<pid_t> of) {
  NumberFolder folder(AT_FDCWD, "/proc");
  if (!folder.open()) throw Failed("/proc cannot be read; mount it");
  Numbers pids;
  folder.read(pids);
  std::unordered_map<pid_t, std::vector<Process>> children;
  for (const pid_t pid : pids) {
    if (auto process = read_process(pid)) children[process->parent].push_back(std::move(*process));
  }
  std::vector<Process> found;
  while (!of.empty()) {
    const auto of_parent = children.extract(of.back());
    of.pop_back();
    if (of_parent.empty()) continue;
    for (Process& process : of_parent.mapped()) {
      of.push_back(process.identity.pid);
      if (!process.dead) found.push_back(std::move(process));
    }
  }
  return found;
}

Descriptor open_process(pid_t pid) noexcept {
  // glibc has a wrapper only since 2.36.
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
}

bool send_signal(const Identity& identity, int number) {
  const Descriptor process = open_process(identity.pid);
  if (!process.open()) return false;
  // The descriptor refers to the process that has this pid now; check that it is the one meant.
  const std::optional<Process> now = read_process(identity.pid);
  return now && now->identity == identity &&
         syscall(SYS_pidfd_send_signal, process.number(), number, nullptr, 0) == 0;
}

}  // namespace perflab::proc
