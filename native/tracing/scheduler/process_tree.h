// Selects the scheduler events that concern a set of process trees: those that name a thread of a tree, and
// every switch on a CPU while a thread of a tree is runnable there but not running. So the trace contains
// everything that a thread of the tree waited for.
//
// Takes the events of all CPUs in order of time. Forks extend the tree, exits end membership; the number of
// an ended thread may be reused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "tracing/scheduler/source.h"

namespace perflab::tracing {

struct ProcThread {
  std::int32_t pid = 0, tid = 0;
  std::int32_t priority = 0;  // p->prio
  Comm comm{};
  bool runnable = false;  // running, or waiting for this CPU
  std::int32_t cpu = 0;
};

// Its current state from /proc; empty if the thread does not exist.
[[nodiscard]] std::optional<ProcThread> read_thread(std::int32_t pid, std::int32_t tid);
// The threads of a process and all its descendants, from /proc; empty if the process does not exist.
[[nodiscard]] std::vector<ProcThread> threads_below(std::int32_t pid);

class ProcessTree {
 public:
  void add(const ProcThread& thread);
  // True to keep the event; updates the tree.
  [[nodiscard]] bool keep(unsigned cpu, const SchedulerEvent& event);
  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }

 private:
  struct Member {
    std::int32_t pid = 0;        // 0: unknown
    std::int32_t waits_on = -1;  // a CPU
    bool running = false;
    bool exiting = false;
    bool ended = false;  // a first thread whose process continues: another thread may take its number by exec
  };

  [[nodiscard]] bool contains(std::int32_t tid) const { return members_.contains(tid); }
  [[nodiscard]] bool is_waited_for(unsigned cpu) const { return cpu < waiting_.size() && waiting_[cpu] != 0; }
  void wait(Member& member, std::int32_t cpu);
  void no_wait(Member& member);
  Member& enter(std::int32_t tid, std::int32_t pid);
  void end(std::int32_t tid);
  void remove(std::int32_t tid);
  void switched(unsigned cpu, const SchedulerEvent& event);
  void woken(const SchedulerEvent& event);
  void forked(const SchedulerEvent& event);
  void executed(const SchedulerEvent& event);

  std::unordered_map<std::int32_t, Member> members_;
  std::unordered_map<std::int32_t, std::uint32_t> living_;  // members alive, by process
  std::vector<std::uint32_t> waiting_;                      // per CPU: members runnable there
};

}  // namespace perflab::tracing
