// What threads did by the scheduler's events, as tables, and questions about stretches of their time.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "traceview/tables.h"

namespace perflab::traceview {

struct SchedulerRows;  // scheduler_rows.h

// How a stretch of time of one thread was spent. The five times add up to its length; stopped is stopped or
// traced. Migrations are those after its begin, up to and with its end.
struct Split {
  std::int64_t on_cpu_ns = 0, preempted_ns = 0, blocked_ns = 0, wake_up_ns = 0, stopped_ns = 0;
  std::uint32_t migrations = 0;
};

class ThreadHistory {
 public:
  struct Coverage {
    std::uint64_t events = 0;
    std::optional<std::int64_t> begin_ns, end_ns;  // of the first and the last event of all hosts
    bool has_switches = false, has_wakeups = false, has_waking = false, has_migrations = false;
    // Switches that do not go together with the one before them on their CPU or of their thread, where no
    // loss was said to be: events are missing, or only some threads were recorded.
    std::uint64_t contradictions = 0;
    std::uint64_t inferred_states = 0;
    std::uint64_t recovered_wakeups = 0;  // of which the recorder knows, but of which no event came
  };
  [[nodiscard]] bool empty() const noexcept { return coverage_.events == 0; }
  [[nodiscard]] const Coverage& coverage() const noexcept { return coverage_; }
  // Rows of states and holds are in the order of thread, then time; the others in the order of time.
  [[nodiscard]] const ThreadStates& states() const noexcept { return states_; }
  [[nodiscard]] const WakeUps& wake_ups() const noexcept { return wake_ups_; }
  [[nodiscard]] const Migrations& migrations() const noexcept { return migrations_; }
  [[nodiscard]] const Holds& holds() const noexcept { return holds_; }
  [[nodiscard]] const FutexWaits& futex_waits() const noexcept { return futex_waits_; }
  // Nothing where the thread's state is not known during all of [begin, end].
  [[nodiscard]] std::optional<Split> split(std::int32_t thread, std::int64_t begin_ns,
                                           std::int64_t end_ns) const;

  // For many stretches: one row for each part of each stretch in which the thread waited and somebody held
  // the CPU.
  struct HoldsOf : Table<HoldsOf> {
    UInt32 interval;  // which of the stretches
    EnumColumn<ThreadState> state;
    Int32 cpu, holder;
    Int64 held_ns;  // summed over the stretch, per (state, cpu, holder)
    PERFLAB_COLUMNS(interval, state, cpu, holder, held_ns)
  };
  // Nothing for stretches of which split() knows nothing. Rows in the order of interval, state, CPU, holder.
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
  // Of each thread the first row, and one more at the end.
  std::vector<std::size_t> first_state_, first_hold_, first_migration_;
  std::vector<Sums> before_;                   // of each state what its thread did in its states before
  std::vector<std::uint32_t> stretch_;         // states of one stretch follow each other without a gap
  std::vector<std::int64_t> migration_times_;  // by thread, then time
};

}  // namespace perflab::traceview
