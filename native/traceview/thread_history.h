// Activity of threads from scheduler events: tables, and queries about intervals.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traceview/tables.h"

namespace perflab::traceview {

struct SchedulerRows;  // scheduler_rows.h

// Times that a thread spent in each state during an interval. The five times add up to the interval's length;
// `stopped` includes traced. Migrations are counted after the begin, up to and including the end.
struct Split {
  std::int64_t on_cpu_ns = 0, preempted_ns = 0, blocked_ns = 0, wake_up_ns = 0, stopped_ns = 0;
  std::uint32_t migrations = 0;
};

class ThreadHistory {
 public:
  struct Coverage {
    std::uint64_t events = 0;
    std::optional<std::int64_t> begin_ns, end_ns;  // first and last event of all hosts
    bool has_switches = false, has_wakeups = false, has_waking = false, has_migrations = false;
    // Switches that do not match the previous one on their CPU or of their thread, without a known loss:
    // events are missing, or only some threads were recorded.
    std::uint64_t contradictions = 0;
    std::uint64_t inferred_states = 0;
    std::uint64_t recovered_wakeups = 0;  // wake-ups that the recorder inferred because their events were
                                          // missing
  };
  [[nodiscard]] bool empty() const noexcept { return coverage_.events == 0; }
  [[nodiscard]] const Coverage& coverage() const noexcept { return coverage_; }
  // Rows of states and holds are ordered by thread, then time; the other tables by time.
  [[nodiscard]] const ThreadStates& states() const noexcept { return states_; }
  [[nodiscard]] const WakeUps& wake_ups() const noexcept { return wake_ups_; }
  [[nodiscard]] const Migrations& migrations() const noexcept { return migrations_; }
  [[nodiscard]] const Holds& holds() const noexcept { return holds_; }
  [[nodiscard]] const FutexWaits& futex_waits() const noexcept { return futex_waits_; }
  // nullopt if the thread's state is unknown during any part of [begin, end].
  [[nodiscard]] std::optional<Split> split(std::int32_t thread, std::int64_t begin_ns,
                                           std::int64_t end_ns) const;

  // Result for several intervals: one row per interval, state, CPU and holder, while the thread waited for a CPU that
  // another thread held.
  struct HoldsOf : Table<HoldsOf> {
    UInt32 interval;  // index of the interval
    EnumColumn<ThreadState> state;
    Int32 cpu, holder;
    Int64 held_ns;  // summed over the interval, per (state, cpu, holder)
    PERFLAB_COLUMNS(interval, state, cpu, holder, held_ns)
  };
  // Omits intervals for which split() returns nullopt. Rows are ordered by interval, state, CPU, holder.
  [[nodiscard]] HoldsOf holds_of(std::span<const std::int32_t> threads,
                                 std::span<const std::int64_t> begins_ns,
                                 std::span<const std::int64_t> ends_ns) const;

 protected:
  // Makes the tables.
  void write(const SchedulerRows& rows);

  Coverage coverage_;

 private:
  using Sums = std::array<std::int64_t, 4>;  // running, preempted, woken; stopped or traced

  void write_states(const SchedulerRows& rows);
  [[nodiscard]] std::optional<std::size_t> row_at(std::int32_t thread, std::int64_t time_ns) const;
  [[nodiscard]] Sums sums_until(std::size_t row, std::int64_t time_ns) const;

  ThreadStates states_;
  WakeUps wake_ups_;
  Migrations migrations_;
  Holds holds_;
  FutexWaits futex_waits_;
  // First row of each thread, and one more entry at the end.
  std::vector<std::size_t> first_state_, first_hold_, first_migration_;
  std::vector<Sums> before_;                   // for each state: sums of the thread's earlier states
  std::vector<std::uint32_t> stretch_;         // states of one stretch are contiguous in time
  std::vector<std::int64_t> migration_times_;  // by thread, then time
};

}  // namespace perflab::traceview
