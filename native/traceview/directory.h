// Hosts, processes and threads of a trace, each with its row number; shared by the models of user space and scheduler.
//
// Keys: a process is (host, pid). A thread is (host, tid) from its first event until it ends or another process uses its
// number. The numbers are the trace's: vpid and vtid of user-space events, tid of scheduler events. They agree if the
// programs run in the initial PID name space; otherwise threads with user-space events have no scheduler events.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traceview/flat_map.h"
#include "traceview/tables.h"

namespace perflab::traceview {

// Key of a process or thread number on a host.
[[nodiscard]] constexpr std::uint64_t number_key(std::int32_t host, std::int32_t number) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(host)) << 32 | static_cast<std::uint32_t>(number);
}

class Directory {
 public:
  struct Process {
    std::int32_t host = 0;
    std::int32_t pid = 0;
    std::string name;
    std::string tracetools_version;
    std::optional<std::int64_t> first_ns, last_ns;
    std::uint64_t events = 0;
  };
  struct Thread {
    std::int32_t host = 0;
    std::optional<std::int32_t> process;
    std::int32_t tid = 0;
    std::string name;
    std::optional<std::int64_t> first_ns, last_ns;
    std::uint64_t events = 0;
    bool ended = false;  // its exit was recorded by the scheduler
    std::optional<std::int64_t> ended_ns;
    std::int32_t older = -1;  // previous row with the same number
  };

  // Returns the row, and adds it if it does not exist. `boot` distinguishes hosts of the same name; "" matches any.
  std::int32_t host(std::string_view name, std::string_view boot = {});
  std::int32_t process(std::int32_t host, std::int32_t pid);
  // A user-space thread whose process is known.
  std::int32_t thread_of(std::int32_t process, std::int32_t tid);
  // The thread that a scheduler event at that instant names. Several threads may have had the number: the
  // result is the last one whose first event was not later, or the next one if that one has ended.
  std::int32_t thread_at(std::int32_t host, std::int32_t tid, std::int64_t time_ns);
  // Adds a thread even if its number is known: the number was reused.
  std::int32_t add_thread(std::int32_t host, std::int32_t tid, std::optional<std::int32_t> process, std::int64_t first_ns);
  // First event of the next thread with the same number; nullopt if there is none.
  [[nodiscard]] std::optional<std::int64_t> reused_ns(std::int32_t thread) const;
  // The thread exited, so its number may be reused.
  void end_thread(std::int32_t thread, std::int64_t time_ns);

  [[nodiscard]] Process& process_row(std::int32_t row) { return processes_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] Thread& thread_row(std::int32_t row) { return threads_[static_cast<std::size_t>(row)]; }
  [[nodiscard]] const std::vector<Process>& processes() const noexcept { return processes_; }
  [[nodiscard]] const std::vector<Thread>& threads() const noexcept { return threads_; }

  [[nodiscard]] Hosts host_table() const;
  [[nodiscard]] Processes process_table() const;
  [[nodiscard]] Threads thread_table() const;

 private:
  std::int32_t append(std::int32_t host, std::int32_t tid, std::optional<std::int32_t> process);

  struct Host {
    std::string name, boot;
  };
  std::vector<Host> hosts_;
  std::vector<Process> processes_;
  std::vector<Thread> threads_;
  FlatMap process_by_pid_;
  FlatMap newest_by_tid_;  // older threads follow by Thread::older
};

}  // namespace perflab::traceview
