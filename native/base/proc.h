// What the kernel tells about processes and threads, read again and again through descriptors that
// stay open. A descriptor of /proc belongs to one process or thread: after its end reading fails, also where
// its number was given to another one.
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

// The file from its beginning, in one of this thread's buffers until the next call; nothing if it cannot be
// read, e.g. because what it tells of has ended (errno ESRCH). Longer files are cut off at 256 KiB.
std::optional<std::string_view> read_again(const Descriptor& file);

// proc(5), /proc/PID/task/TID/stat.
struct Stat {
  std::string_view name;  // into the text
  char state = '?';
  int parent = 0;                 // of its process
  std::uint64_t cpu_ticks = 0;    // user and system
  int priority = 0;               // as the kernel's tracepoints have it, less 100
  int threads = 0;                // of its process
  std::uint64_t start_ticks = 0;  // since boot
  int cpu = 0;                    // where it ran last

  // It has ended, and its parent has not yet asked for its status.
  [[nodiscard]] bool dead() const noexcept { return state == 'Z' || state == 'X'; }
};
std::optional<Stat> parse_stat(std::string_view text);

// /proc/PID/task/TID/schedstat.
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

// The number behind that key, such as "VmRSS:" of /proc/PID/status.
std::optional<std::int64_t> value_after(std::string_view text, std::string_view key);

// What a process read from and wrote to storage, /proc/PID/io.
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

// "total=" of the line that begins with `which` ("some", "full") in /proc/pressure/*, microseconds.
std::optional<std::int64_t> parse_pressure(std::string_view text, std::string_view which);

// Numbers of processes or threads.
using Numbers = std::vector<int>;
// The entries of a folder whose names are numbers: /proc, /proc/PID/task. It stays open.
class NumberFolder {
 public:
  NumberFolder() = default;
  // Below the folder `at` (AT_FDCWD: by its path); not open where that cannot be done.
  NumberFolder(int at, const char* path);
  [[nodiscard]] bool open() const noexcept { return folder_ != nullptr; }
  void read(Numbers& numbers);

 private:
  struct Close {
    void operator()(DIR* folder) const noexcept { closedir(folder); }
  };
  std::unique_ptr<DIR, Close> folder_;
};
// Of the text of /proc/PID/task/TID/children.
void parse_numbers(std::string_view text, Numbers& numbers);

}  // namespace perflab::proc
