#include "traceview/thread_history.h"

#include <algorithm>
#include <tuple>

#include "traceview/scheduler_rows.h"

namespace perflab::traceview {
namespace {

std::optional<std::int32_t> number_or_null(std::int32_t number) {
  return number == kNoNumber ? std::nullopt : std::optional(number);
}

std::optional<std::int64_t> time_or_null(std::int64_t time_ns) {
  return time_ns == kNoTime ? std::nullopt : std::optional(time_ns);
}

// Index of the sum that includes a state; the rest of an interval was blocked.
std::optional<std::size_t> summed(ThreadState state) noexcept {
  switch (state) {
    case ThreadState::running:
      return 0;
    case ThreadState::preempted:
      return 1;
    case ThreadState::woken:
      return 2;
    case ThreadState::stopped:
    case ThreadState::traced:
      return 3;
    case ThreadState::blocked:
      break;
  }
  return std::nullopt;
}

// Orders rows by thread, keeping the order within each thread, and finds where each thread's rows begin.
template <typename Rows>
std::vector<std::size_t> by_thread(const SchedulerRows& all, const Rows& rows,
                                   std::vector<std::size_t>& first) {
  first.assign(all.threads + 1, 0);
  for (const auto& row : rows) ++first[at(all.thread_of_life[at(row.life)]) + 1];
  for (std::size_t i = 1; i < first.size(); ++i) first[i] += first[i - 1];
  std::vector<std::size_t> place(first.begin(), first.end() - 1);
  std::vector<std::size_t> order(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) order[place[at(all.thread_of_life[at(rows[i].life)])]++] = i;
  return order;
}

// From linux/futex.h.
constexpr std::int32_t kFutexPrivate = 128, kFutexClockRealtime = 256;

FutexOperation operation_of(std::int32_t operation) noexcept {
  switch (operation & ~(kFutexPrivate | kFutexClockRealtime)) {
    case 0:
      return FutexOperation::wait;
    case 6:
      return FutexOperation::lock_pi;
    case 9:
      return FutexOperation::wait_bitset;
    case 11:
      return FutexOperation::wait_requeue_pi;
    case 13:
      return FutexOperation::lock_pi2;
    default:
      return FutexOperation::other;
  }
}

}  // namespace

void ThreadHistory::write(const SchedulerRows& rows) {
  const auto thread_or_null = [&](std::int32_t life) {
    return life >= 0 ? std::optional(rows.thread_of_life[at(life)]) : std::nullopt;
  };
  write_states(rows);
  for (const std::size_t i : by_thread(rows, rows.holds, first_hold_)) {
    const HoldRow& row = rows.holds[i];
    holds_.push(rows.thread_of_life[at(row.life)], row.state, row.start_ns, row.end_ns, row.cpu,
                thread_or_null(row.holder), static_cast<std::uint8_t>(row.holder == kIdle));
  }
  for (const WakeUpRow& row : rows.wake_ups) {
    wake_ups_.push(rows.thread_of_life[at(row.life)], thread_or_null(row.by_life),
                   time_or_null(row.waking_ns), row.wakeup_ns, time_or_null(row.switch_ns),
                   number_or_null(row.cpu), number_or_null(row.priority),
                   static_cast<std::uint8_t>(row.already_running));
  }
  for (const MigrationRow& row : rows.migrations) {
    migrations_.push(rows.thread_of_life[at(row.life)], row.time_ns, row.from_cpu, row.to_cpu);
  }
  for (const FutexRow& row : rows.futex_waits) {
    futex_waits_.push(rows.thread_of_life[at(row.life)], row.start_ns, time_or_null(row.end_ns), row.address,
                      operation_of(row.operation),
                      static_cast<std::uint8_t>((row.operation & kFutexPrivate) == 0),
                      number_or_null(row.priority), thread_or_null(row.owner_life), row.result);
  }
  migration_times_.reserve(rows.migrations.size());
  for (const std::size_t i : by_thread(rows, rows.migrations, first_migration_)) {
    migration_times_.push_back(rows.migrations[i].time_ns);
  }
}

void ThreadHistory::write_states(const SchedulerRows& rows) {
  before_.resize(rows.states.size());
  stretch_.resize(rows.states.size());
  for (const std::size_t i : by_thread(rows, rows.states, first_state_)) {
    const StateRow& row = rows.states[i];
    const std::int32_t thread = rows.thread_of_life[at(row.life)];
    const std::size_t made = states_.rows();
    if (made > 0) stretch_[made] = stretch_[made - 1];
    const bool same_thread = made > 0 && states_.thread[made - 1] == thread;
    if (same_thread) before_[made] = sums_until(made - 1, states_.end_ns[made - 1]);
    if (!same_thread || states_.end_ns[made - 1] != row.start_ns) ++stretch_[made];
    states_.push(thread, row.state, row.start_ns, row.end_ns, number_or_null(row.cpu),
                 number_or_null(row.priority),
                 row.has_end_state ? std::optional(row.end_state) : std::nullopt,
                 static_cast<std::uint8_t>(row.inferred));
  }
}

// Last row of the thread that begins at or before that instant.
std::optional<std::size_t> ThreadHistory::row_at(std::int32_t thread, std::int64_t time) const {
  const std::int64_t* starts = states_.start_ns.data();
  const std::int64_t* first = starts + first_state_[at(thread)];
  const std::int64_t* found = std::upper_bound(first, starts + first_state_[at(thread) + 1], time);
  return found == first ? std::nullopt : std::optional(static_cast<std::size_t>(found - starts) - 1);
}

ThreadHistory::Sums ThreadHistory::sums_until(std::size_t row, std::int64_t time) const {
  Sums sums = before_[row];
  if (const auto kind = summed(states_.state[row])) sums[*kind] += time - states_.start_ns[row];
  return sums;
}

std::optional<Split> ThreadHistory::split(std::int32_t thread, std::int64_t begin, std::int64_t end) const {
  if (thread < 0 || at(thread) + 1 >= first_state_.size() || begin > end) return std::nullopt;
  const auto first = row_at(thread, begin);
  if (!first || begin > states_.end_ns[*first]) return std::nullopt;
  const std::size_t last = end <= states_.end_ns[*first] ? *first : *row_at(thread, end);
  if (end > states_.end_ns[last] || stretch_[*first] != stretch_[last]) return std::nullopt;
  const auto from = sums_until(*first, begin);
  const auto to = sums_until(last, end);
  Split split;
  split.on_cpu_ns = to[0] - from[0];
  split.preempted_ns = to[1] - from[1];
  split.wake_up_ns = to[2] - from[2];
  split.stopped_ns = to[3] - from[3];
  split.blocked_ns = end - begin - split.on_cpu_ns - split.preempted_ns - split.wake_up_ns - split.stopped_ns;
  const auto times = migration_times_.begin();
  const auto own = times + static_cast<std::ptrdiff_t>(first_migration_[at(thread)]);
  const auto own_end = times + static_cast<std::ptrdiff_t>(first_migration_[at(thread) + 1]);
  split.migrations =
      static_cast<std::uint32_t>(std::upper_bound(own, own_end, end) - std::upper_bound(own, own_end, begin));
  return split;
}

ThreadHistory::HoldsOf ThreadHistory::holds_of(std::span<const std::int32_t> threads,
                                               std::span<const std::int64_t> begins_ns,
                                               std::span<const std::int64_t> ends_ns) const {
  struct Part {
    ThreadState state;
    std::int32_t cpu, holder;
    std::int64_t held_ns;
    [[nodiscard]] bool same(const Part& other) const noexcept {
      return state == other.state && cpu == other.cpu && holder == other.holder;
    }
  };
  const std::int64_t* ends = holds_.end_ns.data();
  HoldsOf table;
  std::vector<Part> parts;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const std::int64_t begin = begins_ns[i], end = ends_ns[i];
    if (!split(threads[i], begin, end)) continue;
    const std::size_t last = first_hold_[at(threads[i]) + 1];
    auto row = static_cast<std::size_t>(
        std::upper_bound(ends + first_hold_[at(threads[i])], ends + last, begin) - ends);
    parts.clear();
    for (; row < last && holds_.start_ns[row] < end; ++row) {
      if (!holds_.holder.valid(row)) continue;
      const std::int64_t held = std::min(end, holds_.end_ns[row]) - std::max(begin, holds_.start_ns[row]);
      if (held > 0) parts.push_back({holds_.state[row], holds_.cpu[row], holds_.holder[row], held});
    }
    std::sort(parts.begin(), parts.end(), [](const Part& a, const Part& b) {
      return std::tie(a.state, a.cpu, a.holder) < std::tie(b.state, b.cpu, b.holder);
    });
    for (std::size_t part = 0; part < parts.size();) {
      std::int64_t held = 0;
      const Part& group = parts[part];
      for (; part < parts.size() && parts[part].same(group); ++part) held += parts[part].held_ns;
      table.push(static_cast<std::uint32_t>(i), group.state, group.cpu, group.holder, held);
    }
  }
  return table;
}

}  // namespace perflab::traceview
