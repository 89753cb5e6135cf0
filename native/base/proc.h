// Kernel data on processes and threads, read repeatedly through descriptors that stay open. A /proc
// descriptor belongs to one process or thread: once that has ended reads fail, even if its number has been
// reused.
#pragma once

#include <dirent.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/time.h"

namespace perflab::proc {

// The file from its beginning, in a buffer of this thread that is valid until the next call. Empty if it
// cannot be read, e.g. because the process or thread has ended (errno ESRCH). Files are truncated at 256 KiB.
std::optional<std::string_view> read_again(const Descriptor& file);

// Fields of /proc/PID/task/TID/stat, proc(5).
struct Stat {
  std::string_view name;  // points into the text
  char state = '?';
  int parent = 0;                 // parent of the process
  std::uint64_t cpu_ticks = 0;    // user and system
  int priority = 0;               // as in the kernel's tracepoints, minus 100
  int threads = 0;                // threads of the process
  std::uint64_t start_ticks = 0;  // since boot
  int cpu = 0;                    // CPU on which it last ran

  // A zombie: ended, but not yet waited for by its parent.
  [[nodiscard]] bool dead() const noexcept { return state == 'Z' || state == 'X'; }
};
std::optional<Stat> parse_stat(std::string_view text);

// Fields of /proc/PID/task/TID/schedstat.
struct SchedStat {
  Nanoseconds cpu_ns = 0;
  Nanoseconds run_delay_ns = 0;
  std::int64_t timeslices = 0;

  bool operator==(const SchedStat&) const = default;
};
std::optional<SchedStat> parse_schedstat(std::string_view text);

struct Switches {
  std::int64_t voluntary = 0;
  std::int64_t involuntary = 0;
};
std::optional<Switches> parse_switches(std::string_view status);

// The number after a key such as "VmRSS:" in /proc/PID/status.
std::optional<std::int64_t> value_after(std::string_view text, std::string_view key);

// Storage I/O of a process, /proc/PID/io.
struct Io {
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;

  Io& operator+=(const Io& other) noexcept {
    read_bytes += other.read_bytes;
    write_bytes += other.write_bytes;
    return *this;
  }
};
std::optional<Io> parse_io(std::string_view text);

// Resident pages, /proc/PID/statm.
std::optional<std::int64_t> parse_resident_pages(std::string_view text);

// Cumulative, in ticks of the kernel's USER_HZ.
struct CpuTicks {
  int cpu = 0;
  std::int64_t busy = 0;  // user, nice, system, irq, softirq
  std::int64_t idle = 0;  // idle, iowait
  std::int64_t steal = 0;
};
// The lines "cpu0", "cpu1", ... of /proc/stat.
std::vector<CpuTicks> parse_cpus(std::string_view text);

// The value of "total=" in the line that begins with `which` ("some" or "full") of /proc/pressure/*, in
// microseconds.
std::optional<std::int64_t> parse_pressure(std::string_view text, std::string_view which);

// Pids or tids.
using Numbers = std::vector<int>;
// The entries of a folder whose names are numbers: /proc, /proc/PID/task. The folder stays open.
class NumberFolder {
 public:
  NumberFolder() = default;
  // Relative to the folder `at` (AT_FDCWD: the working directory); not open on failure.
  NumberFolder(int at, const char* path);
  [[nodiscard]] bool open() const noexcept { return folder_ != nullptr; }
  void read(Numbers& numbers);

 private:
  struct Close {
    void operator()(DIR* folder) const noexcept { closedir(folder); }
  };
  std::unique_ptr<DIR, Close> folder_;
};
// Parses /proc/PID/task/TID/children.
void parse_numbers(std::string_view text, Numbers& numbers);

}  // namespace perflab::proc
