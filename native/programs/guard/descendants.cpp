#include "programs/guard/descendants.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

namespace perflab::guard {

std::optional<Process> read_process(pid_t pid) {
  std::array<char, 64> path{};
  std::snprintf(path.data(), path.size(), "/proc/%d/stat", pid);
  const int file = open(path.data(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::array<char, 1024> text{};
  const ssize_t got = read(file, text.data(), text.size() - 1);
  close(file);
  if (got <= 0) return std::nullopt;
  // The name may hold anything, also blanks and parentheses: the last one ends it.
  const char* const begin = std::strchr(text.data(), '(');
  const char* const end = std::strrchr(text.data(), ')');
  if (begin == nullptr || end == nullptr) return std::nullopt;
  Process process;
  process.identity.pid = pid;
  process.name.assign(begin + 1, end);
  unsigned long long start = 0;
  // proc(5): state is field 3, ppid 4, starttime 22.
  if (std::sscanf(end + 1, " %c %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %llu",
                  &process.state, &process.parent, &start) != 3)
    return std::nullopt;
  process.identity.start_ticks = start;
  return process;
}

std::vector<Process> living_descendants() {
  DIR* const folder = opendir("/proc");
  if (folder == nullptr) throw std::runtime_error("/proc cannot be read; mount it");
  std::unordered_map<pid_t, std::vector<Process>> children;
  while (const dirent* entry = readdir(folder)) {
    pid_t pid = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, pid).ptr != end || pid <= 0) continue;
    if (auto process = read_process(pid)) children[process->parent].push_back(std::move(*process));
  }
  closedir(folder);
  std::vector<Process> found;
  std::vector<pid_t> parents{getpid()};
  while (!parents.empty()) {
    const auto of_parent = children.extract(parents.back());
    parents.pop_back();
    if (of_parent.empty()) continue;
    for (Process& process : of_parent.mapped()) {
      parents.push_back(process.identity.pid);
      if (process.state != 'Z' && process.state != 'X') found.push_back(std::move(process));
    }
  }
  return found;
}

bool send_signal(const Identity& identity, int number) {
  // glibc has wrappers only since 2.36.
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, identity.pid, 0));
  if (pidfd < 0) return false;
  // The descriptor holds on to whoever has the number now; is it still the one that was meant?
  const std::optional<Process> now = read_process(identity.pid);
  const bool sent =
      now && now->identity == identity && syscall(SYS_pidfd_send_signal, pidfd, number, nullptr, 0) == 0;
  close(pidfd);
  return sent;
}

}  // namespace perflab::guard
