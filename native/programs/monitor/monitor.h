// Watches process trees: what their threads use, how they are scheduled, and what the CPUs do meanwhile.
//
// One thread, no locks. A round costs a few system calls for each thread that did not run since the previous
// round, and some more for each that did (docs/observers.md).
#pragma once

#include <fmt/core.h>

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "base/control.h"
#include "base/line_file.h"
#include "base/proc.h"
#include "base/scheduling.h"
#include "measure/clock.h"

namespace perflab::monitor {

using namespace proc;

class Monitor {
 public:
  // `control` outlives the monitor. Throws Error: kFailed where the file cannot be made,
  // kUnsupported where this kernel does not tell children.
  Monitor(const std::string& file, Nanoseconds interval_ns, Control& control);

  // Samples until told to stop, or until the control channel closes.
  void run();

 private:
  struct Thread {
    int tid = 0;
    std::uint64_t start_ticks = 0;
    Descriptor schedstat;
    Descriptor stat;
    Descriptor status;
    Descriptor children;
    SchedStat usage{};
    std::optional<Switches> switches{};  // of this round; none where they were not read in it
    int cpu = 0;
    int threads = 0;  // of its process, when it last ran
    std::string name;
    Scheduling scheduling{};
    bool ran = true;         // since the previous round
    bool announced = false;  // its present state is in the file
  };

  struct Process {
    std::string group;
    int parent = 0;  // as last found in a tree; 0: in none
    Descriptor folder;
    Descriptor statm;
    Descriptor io;
    NumberFolder tasks;
    std::vector<Thread> threads;  // none: it has ended, and waits for its parent to see that
    std::int64_t rss_kb = 0;
    Io io_read{};           // the last reading
    Io io_inherited{};      // of ended children: counted already, and about to appear in its own figures
    int inherited_age = 0;  // rounds for which it has not appeared
    bool io_known = false;
    bool gone = false;
  };

  struct Group {
    Io io{};  // cumulative, ended processes too
    bool io_known = true;
    std::size_t samples = 0;
  };

  bool handle(const nlohmann::json& message);
  void watch(const std::string& group, int root);
  // A tree within the tree of another group becomes this group's.
  void move(int root, const std::string& group);
  void unwatch(const std::string& group);

  // One round; everything it has to say is written at once.
  void sample();
  void read_threads(Nanoseconds at_ns);
  // False where the thread has ended.
  bool read_thread(Thread& thread, bool thorough, Nanoseconds at_ns);
  void read_switches(Thread& thread);
  void read_stat(Thread& thread, const Stat& stat);
  void find_threads(Process& process);
  void find_children(int pid);
  bool adopt(int pid, const std::string& group, int parent);
  bool add_thread(Process& process, int tid);
  void read_memory_and_io();
  void count_io(Process& process, const Io& now);
  void forget_the_gone();

  // Adds to the lines of this round.
  template <typename... Arguments>
  void say(fmt::format_string<Arguments...> format, Arguments&&... arguments);
  void write_header(Nanoseconds at_ns);
  void write_state(const Process& process, int pid, Thread& thread, Nanoseconds at_ns);
  void write_gone(int tid, std::optional<Nanoseconds> cpu_ns, Nanoseconds at_ns);
  void write_sample(Nanoseconds at_ns);
  void write_cpus();
  void write_pressure();
  void write_groups();
  void flush();
  void report_once(const std::string& text);

  [[nodiscard]] Nanoseconds started_ns(std::uint64_t start_ticks) const;

  measure::MonotonicClock clock_;
  Nanoseconds interval_ns_;
  Control& control_;
  LineFile output_;
  int own_pid_;
  long ticks_per_second_;
  std::uint64_t switch_rounds_;  // in one of so many rounds the switches of a thread are read
  std::int64_t page_kb_;
  Nanoseconds boot_offset_ns_;  // CLOCK_BOOTTIME - CLOCK_MONOTONIC
  bool has_schedstat_;

  Descriptor cpu_stat_;
  Descriptor pressure_cpu_;
  Descriptor pressure_memory_;
  Descriptor pressure_io_;
  std::vector<CpuTicks> cpus_;      // the previous sample's
  std::vector<CpuTicks> cpus_now_;  // the largest seen: the kernel's idle counters may step back a little
  std::optional<Nanoseconds> previous_at_ns_;
  Nanoseconds thorough_at_ns_ = 0;  // when names are read again and trees are searched whatever ran
  bool search_all_ = false;
  bool last_ = false;  // the last round

  std::map<std::string, Group> groups_;
  std::map<int, Process> processes_;
  Scheduling found_{};
  Numbers numbers_;
  std::vector<int> unsearched_;  // processes whose children are still to be looked for

  std::string lines_;  // of this round
  bool header_written_ = false;
  std::uint64_t rounds_ = 0;
  std::uint64_t lost_samples_ = 0;
  bool reported_ = false;
};

}  // namespace perflab::monitor
