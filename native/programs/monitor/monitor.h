// Watches process trees: resource use and scheduling of their threads, and the load of the CPUs.
//
// One thread, no locks. A round costs a few system calls for each thread that has not run since the previous
// round, and some more for each that has (docs/observers.md).
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
  // `control` must outlive the monitor. Throws Error: kFailed if the file cannot be created, kUnsupported if
  // this kernel does not list children.
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
    std::optional<Switches> switches{};  // read in this round; empty otherwise
    int cpu = 0;
    int threads = 0;  // of its process, when it last ran
    std::string name;
    Scheduling scheduling{};
    bool ran = true;         // since the previous round
    bool announced = false;  // the file has its current state
  };

  struct Process {
    std::string group;
    int parent = 0;  // as last found in a tree; 0: none
    Descriptor folder;
    Descriptor statm;
    Descriptor io;
    NumberFolder tasks;
    std::vector<Thread> threads;  // empty: it has ended, and its parent has not waited for it yet
    std::int64_t rss_kb = 0;
    Io io_read{};           // the last reading
    Io io_inherited{};      // of ended children: counted already, and about to appear in its own figures
    int inherited_age = 0;  // rounds during which it has not appeared
    bool io_known = false;
    bool gone = false;
  };

  struct Group {
    Io io{};  // cumulative, including ended processes
    bool io_known = true;
    std::size_t samples = 0;
  };

  bool handle(const nlohmann::json& message);
  void watch(const std::string& group, int root);
  // A tree inside another group's tree now belongs to this group.
  void move(int root, const std::string& group);
  void unwatch(const std::string& group);

  // Runs one round and writes all its lines at once.
  void sample();
  void read_threads(Nanoseconds at_ns);
  // False if the thread has ended.
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

  // Appends to the lines of this round.
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
  std::uint64_t switch_rounds_;  // a thread's switches are read in one of this many rounds
  std::int64_t page_kb_;
  Nanoseconds boot_offset_ns_;  // CLOCK_BOOTTIME - CLOCK_MONOTONIC
  bool has_schedstat_;

  Descriptor cpu_stat_;
  Descriptor pressure_cpu_;
  Descriptor pressure_memory_;
  Descriptor pressure_io_;
  std::vector<CpuTicks> cpus_;      // of the previous sample
  std::vector<CpuTicks> cpus_now_;  // the largest values seen: the kernel's idle counters may decrease
                                    // slightly
  std::optional<Nanoseconds> previous_at_ns_;
  Nanoseconds thorough_at_ns_ = 0;  // time of the next round that reads names again and searches all trees
  bool search_all_ = false;
  bool last_ = false;  // the last round

  std::map<std::string, Group> groups_;
  std::map<int, Process> processes_;
  Scheduling found_{};
  Numbers numbers_;
  std::vector<int> unsearched_;  // processes whose children have not been searched yet

  std::string lines_;  // lines of this round
  bool header_written_ = false;
  std::uint64_t rounds_ = 0;
  std::uint64_t lost_samples_ = 0;
  bool reported_ = false;
};

}  // namespace perflab::monitor
