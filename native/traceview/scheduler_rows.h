// Results of the scheduler model, from which the tables are made: rows in the order in which the model completed them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "traceview/tables.h"

namespace perflab::traceview {

inline constexpr std::int32_t kNoNumber = std::numeric_limits<std::int32_t>::min();  // no CPU, no priority
inline constexpr std::int64_t kNoTime = std::numeric_limits<std::int64_t>::min();

// Values for a CPU without a thread.
inline constexpr std::int32_t kUnknown = -1;
inline constexpr std::int32_t kIdle = -2;

// A life is one use of a thread number. Rows refer to threads by their life.
struct StateRow {
  std::int64_t start_ns, end_ns;
  std::int32_t life, cpu, priority;
  ThreadState state;
  bool has_end_state;
  EndState end_state;
  bool unwoken;  // blocked, and the state ended without a wake-up
  bool inferred = false;
};

struct HoldRow {
  std::int64_t start_ns, end_ns;
  std::int32_t life, cpu, holder;
  std::uint32_t wait;
  ThreadState state;
};

struct WakeUpRow {
  std::int64_t waking_ns, wakeup_ns, switch_ns;
  std::int32_t life, by_life, cpu, priority;
  bool already_running;
};

struct MigrationRow {
  std::int64_t time_ns;
  std::int32_t life, from_cpu, to_cpu;
};

struct FutexRow {
  std::int64_t start_ns, end_ns;
  std::int32_t life, owner_life, priority;  // no owner: kUnknown
  std::uint64_t address;
  std::int32_t operation;
  std::optional<std::int32_t> result;
};

struct SchedulerRows {
  std::vector<StateRow> states;
  std::vector<HoldRow> holds;
  std::vector<WakeUpRow> wake_ups;
  std::vector<MigrationRow> migrations;
  std::vector<FutexRow> futex_waits;
  std::vector<std::int32_t> thread_of_life;
  std::size_t threads = 0;
};

}  // namespace perflab::traceview
