// Short lists of scheduler events as written in tests: one host, times in ns.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traceview/directory.h"
#include "traceview/scheduler.h"

namespace perflab::traceview::test {

class Recording {
 public:
  using Kind = SchedulerEvent::Kind;

  Directory directory;
  Scheduler scheduler{directory};
  std::int32_t host = directory.host("h");

  // A switch from `previous`, left in that state, to `next`.
  void switched(std::int64_t time, std::int32_t cpu, std::int32_t previous, EndState state,
                std::int32_t next) {
    SchedulerEvent event = made(Kind::switched, time, cpu, next);
    event.previous_tid = previous;
    event.previous_state = state;
    event.priority = 100 + next;
    event.previous_priority = 100 + previous;
    scheduler.add(event);
  }
  void waking(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::int32_t target) {
    scheduler.add(woken(Kind::waking, time, cpu, tid, target));
  }
  void wakeup(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::int32_t target) {
    scheduler.add(woken(Kind::wakeup, time, cpu, tid, target));
  }
  void wakeup_new(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::int32_t target) {
    scheduler.add(woken(Kind::wakeup_new, time, cpu, tid, target));
  }
  void recovered(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::int32_t target,
                 std::int64_t waited, std::optional<std::int64_t> held) {
    SchedulerEvent event = woken(Kind::wakeup_recovered, time, cpu, tid, target);
    event.waited_ns = waited;
    event.held_ns = held;
    scheduler.add(event);
  }
  void held(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::int32_t on, std::int64_t since,
            std::int64_t until) {
    SchedulerEvent event = woken(Kind::cpu_held, time, cpu, tid, on);
    event.waited_ns = until;
    event.held_ns = since;
    scheduler.add(event);
  }
  void keep(std::int32_t tid) {
    scheduler.filtered(host);
    scheduler.add(made(Kind::kept, 0, 0, tid));
  }
  void migrate(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::int32_t from, std::int32_t to) {
    SchedulerEvent event = made(Kind::migrate, time, cpu, tid);
    event.origin_cpu = from;
    event.target_cpu = to;
    scheduler.add(event);
  }
  void fork(std::int64_t time, std::int32_t cpu, std::int32_t child, std::int32_t pid,
            std::string_view name) {
    SchedulerEvent event = made(Kind::fork, time, cpu, child);
    event.pid = pid;
    event.name = name;
    scheduler.add(event);
  }
  void exec(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::string_view file) {
    SchedulerEvent event = made(Kind::exec, time, cpu, tid);
    event.name = file;
    scheduler.add(event);
  }
  void futex_wait(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::uint64_t address,
                  std::int32_t owner) {
    SchedulerEvent event = made(Kind::futex_wait, time, cpu, tid);
    event.address = address;
    event.owner = owner;
    scheduler.add(event);
  }
  void futex_return(std::int64_t time, std::int32_t cpu, std::int32_t tid, std::uint64_t address,
                    std::int32_t result) {
    SchedulerEvent event = made(Kind::futex_return, time, cpu, tid);
    event.address = address;
    event.result = result;
    scheduler.add(event);
  }
  void exit(std::int64_t time, std::int32_t cpu, std::int32_t tid) {
    scheduler.add(made(Kind::exit, time, cpu, tid));
  }

  [[nodiscard]] std::int32_t thread(std::int32_t tid) const {
    std::int32_t found = -1;
    for (std::size_t row = 0; row < directory.threads().size(); ++row) {
      if (directory.threads()[row].tid == tid) found = static_cast<std::int32_t>(row);
    }
    return found;
  }

  // "running@0 10-20, blocked 20-30": states of the newest thread with that number.
  [[nodiscard]] std::string states_of(std::int32_t tid) const { return states_of_row(thread(tid)); }
  [[nodiscard]] std::string states_of_row(std::int32_t row) const {
    const ThreadStates& table = scheduler.states();
    std::string text;
    for (std::size_t i = 0; i < table.thread.size(); ++i) {
      if (table.thread[i] != row) continue;
      if (!text.empty()) text += ", ";
      text += names(ThreadState{})[static_cast<std::size_t>(table.state[i])];
      if (table.cpu.valid(i)) text += "@" + std::to_string(table.cpu[i]);
      text += " " + std::to_string(table.start_ns[i]) + "-" + std::to_string(table.end_ns[i]);
    }
    return text;
  }
  // "woken@0 10-20 by 7": holder of the CPU that a thread waited for; "idle", or "-" if unknown.
  [[nodiscard]] std::string holds_of(std::int32_t tid) const {
    const Holds& table = scheduler.holds();
    std::string text;
    for (std::size_t i = 0; i < table.thread.size(); ++i) {
      if (table.thread[i] != thread(tid)) continue;
      if (!text.empty()) text += ", ";
      text += names(ThreadState{})[static_cast<std::size_t>(table.state[i])];
      text += "@" + std::to_string(table.cpu[i]) + " " + std::to_string(table.start_ns[i]) + "-" +
              std::to_string(table.end_ns[i]);
      text += " by " + (table.holder.valid(i) ? std::to_string(tid_of(table.holder[i]))
                        : table.idle[i] != 0  ? "idle"
                                              : "-");
    }
    return text;
  }
  // "waking 8, woken 10, ran 20, by 7"; "-" if unknown.
  [[nodiscard]] std::string wake_ups_of(std::int32_t tid) const {
    const WakeUps& table = scheduler.wake_ups();
    std::string text;
    for (std::size_t i = 0; i < table.thread.size(); ++i) {
      if (table.thread[i] != thread(tid)) continue;
      if (!text.empty()) text += "; ";
      text += "waking " + shown(table.waking_ns, i) + ", woken " + shown(table.wakeup_ns, i) + ", ran " +
              shown(table.switch_ns, i);
      text += ", by " + (table.by_thread.valid(i) ? std::to_string(tid_of(table.by_thread[i])) : "-");
      if (table.already_running[i] != 0) text += ", ran already";
    }
    return text;
  }
  // "30: 0>1"
  [[nodiscard]] std::string migrations_of(std::int32_t tid) const {
    const Migrations& table = scheduler.migrations();
    std::string text;
    for (std::size_t i = 0; i < table.thread.size(); ++i) {
      if (table.thread[i] != thread(tid)) continue;
      if (!text.empty()) text += ", ";
      text += std::to_string(table.time_ns[i]) + ": " + std::to_string(table.from_cpu[i]) + ">" +
              std::to_string(table.to_cpu[i]);
    }
    return text;
  }
  // "10 to 20 at 64 of 8 is 0": its waits at addresses, the owner and the result; "-" if unknown.
  [[nodiscard]] std::string futexes_of(std::int32_t tid) const {
    const FutexWaits& table = scheduler.futex_waits();
    std::string text;
    for (std::size_t i = 0; i < table.thread.size(); ++i) {
      if (table.thread[i] != thread(tid)) continue;
      if (!text.empty()) text += ", ";
      text += std::to_string(table.start_ns[i]) + " to " + shown(table.end_ns, i) + " at " +
              std::to_string(table.address[i]) + " of " +
              (table.owner.valid(i) ? std::to_string(tid_of(table.owner[i])) : "-") + " is " +
              (table.result.valid(i) ? std::to_string(table.result[i]) : "-");
    }
    return text;
  }
  // "on 5, preempted 0, blocked 5, woken 0, moved 0"; "" if unknown.
  [[nodiscard]] std::string split_of(std::int32_t tid, std::int64_t begin, std::int64_t end) const {
    const auto split = scheduler.split(thread(tid), begin, end);
    if (!split) return "";
    return "on " + std::to_string(split->on_cpu_ns) + ", preempted " + std::to_string(split->preempted_ns) +
           ", blocked " + std::to_string(split->blocked_ns) + ", woken " + std::to_string(split->wake_up_ns) +
           ", moved " + std::to_string(split->migrations);
  }

 private:
  [[nodiscard]] SchedulerEvent made(Kind kind, std::int64_t time, std::int32_t cpu, std::int32_t tid) const {
    SchedulerEvent event;
    event.kind = kind;
    event.time_ns = time;
    event.host = host;
    event.cpu = cpu;
    event.tid = tid;
    return event;
  }
  [[nodiscard]] SchedulerEvent woken(Kind kind, std::int64_t time, std::int32_t cpu, std::int32_t tid,
                                     std::int32_t target) const {
    SchedulerEvent event = made(kind, time, cpu, tid);
    event.target_cpu = target;
    return event;
  }
  [[nodiscard]] std::int32_t tid_of(std::int32_t row) const {
    return directory.threads()[static_cast<std::size_t>(row)].tid;
  }
  [[nodiscard]] static std::string shown(const Int64& column, std::size_t row) {
    return column.valid(row) ? std::to_string(column[row]) : "-";
  }
};

}  // namespace perflab::traceview::test
