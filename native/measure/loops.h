// Records each round trip of a timer whose messages return to its node: one row per tick.
//
//   due       when the tick was due by its schedule
//   woken     when its callback began
//   published when the message was stamped, right before the call that sends it
//   sent      when that call returned
//   answered  when the returning message was published
//   back      when its callback began
//
// Rows are indexed by loop number: the tick due at `measured_from` + 1 .. + period is loop 0. Times of steps
// that have not happened are kUnknownTime. The timer's thread writes `woken`, `published` and `sent`, those
// of subscriptions `answered` and `back`; another thread may read concurrently. Recording neither allocates
// nor locks nor calls the kernel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/time.h"
#include "measure/histogram.h"

namespace perflab::measure {

struct LoopTimes {
  Nanoseconds due_ns = kUnknownTime;
  Nanoseconds woken_ns = kUnknownTime;
  Nanoseconds published_ns = kUnknownTime;
  Nanoseconds sent_ns = kUnknownTime;
  Nanoseconds answered_ns = kUnknownTime;
  Nanoseconds back_ns = kUnknownTime;
};

class LoopRecorder {
 public:
  static constexpr std::size_t kMost = std::size_t{1} << 20;  // 48 MB; further loops are only counted

  // Creates the rows for a measured part of this duration and touches their pages.
  LoopRecorder(Nanoseconds period_ns, Nanoseconds duration_ns)
      : period_ns_(period_ns),
        rows_(static_cast<std::size_t>(std::min<Nanoseconds>(duration_ns / period_ns + 1, kMost))) {}

  // Call before the first tick.
  void measure_from(Nanoseconds instant) noexcept { measured_from_ = instant; }

  void record_woken(Nanoseconds due_ns, Nanoseconds woken_ns) noexcept {
    LoopTimes* const row = row_of(due_ns);
    if (row == nullptr) return;
    detail::store(row->due_ns, due_ns);
    detail::store(row->woken_ns, woken_ns);
    const auto after = static_cast<std::size_t>(row - rows_.data()) + 1;
    if (after > detail::load(ticked_)) detail::store(ticked_, after);
  }
  void record_sent(Nanoseconds due_ns, Nanoseconds published_ns, Nanoseconds sent_ns) noexcept {
    LoopTimes* const row = row_of(due_ns);
    if (row == nullptr || row->published_ns != kUnknownTime) return;  // a timer may publish several messages
    detail::store(row->published_ns, published_ns);
    detail::store(row->sent_ns, sent_ns);
  }
  // Only the first message of a loop counts.
  void record_back(Nanoseconds due_ns, Nanoseconds answered_ns, Nanoseconds back_ns) noexcept {
    LoopTimes* const row = row_of(due_ns);
    if (row == nullptr || detail::load(row->back_ns) != kUnknownTime) return;
    detail::store(row->answered_ns, answered_ns);
    detail::store(row->back_ns, back_ns);
  }

  // Number of rows up to the last tick so far.
  [[nodiscard]] std::size_t ticked() const noexcept { return detail::load(ticked_); }
  // Ticks without a row.
  [[nodiscard]] std::uint64_t beyond() const noexcept { return detail::load(beyond_); }
  [[nodiscard]] LoopTimes row(std::size_t loop) const noexcept {
    const LoopTimes& of = rows_[loop];
    return {detail::load(of.due_ns),  detail::load(of.woken_ns),    detail::load(of.published_ns),
            detail::load(of.sent_ns), detail::load(of.answered_ns), detail::load(of.back_ns)};
  }

 private:
  // Null for ticks in the warm-up or beyond the last row.
  [[nodiscard]] LoopTimes* row_of(Nanoseconds due_ns) noexcept {
    if (due_ns <= measured_from_) return nullptr;
    const auto loop = static_cast<std::size_t>((due_ns - measured_from_ - 1) / period_ns_);
    if (loop < rows_.size()) [[likely]]
      return &rows_[loop];
    if (loop >= detail::load(first_beyond_)) {
      detail::add<std::uint64_t>(beyond_, 1);
      detail::store(first_beyond_, loop + 1);
    }
    return nullptr;
  }

  Nanoseconds period_ns_;
  Nanoseconds measured_from_ = kUnknownTime;
  std::vector<LoopTimes> rows_;
  std::size_t ticked_ = 0;
  std::size_t first_beyond_ = 0;
  std::uint64_t beyond_ = 0;
};

}  // namespace perflab::measure
