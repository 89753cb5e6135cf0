// The phase of each timer of a graph: where in its period it ticks.
//
// A timer ticks once in each period after the common start, `offset` after the period's begin. The offset is
// in [0, period); 0 stands for the end of the previous period: nothing is sent at the start itself. So the
// number of ticks does not depend on the phase.
//
// aligned     0: timers with compatible periods tick together
// staggered   the n-th of N timers (n from 0) after n / N of its own period
// random      drawn from the seed, the same in every process
// as_created  the timer's creation time modulo its period: as in an application whose timers run from their
//             creation on. Creation times of all processes are on one clock, so the timers keep their
//             distances.
//
// The period of a timer with bursts is that of the bursts. A non-periodic timer has no phase: its offset is
// 0.
//
// Example:
//   const PhaseOffsets offsets(graph, seed);
//   offsets.of(timer, created_ns);
#pragma once

#include <cstdint>
#include <map>

#include "graph/model.h"

namespace perflab::graph {

class PhaseOffsets {
 public:
  // Counts the timers and cyclic reactions of the whole graph, in graph order. The graph must outlive the
  // object.
  PhaseOffsets(const Graph& graph, std::uint64_t seed);

  [[nodiscard]] Nanoseconds of(const Timer& timer, Nanoseconds created_ns) const {
    if (timer.arrivals != Arrivals::kPeriodic) return 0;
    return offset(&timer, timer.phase, timer.period_ns * timer.burst, created_ns);
  }
  [[nodiscard]] Nanoseconds of(const Reaction& cyclic, Nanoseconds created_ns) const {
    return offset(&cyclic, cyclic.phase, cyclic.period_ns, created_ns);
  }
  // Seed for a timer's random ticks: different for each timer of the graph and each trial.
  [[nodiscard]] std::uint64_t seed_of(const Timer& timer) const;

 private:
  void count(const void* timer, Phase phase);
  [[nodiscard]] Nanoseconds offset(const void* timer, Phase phase, Nanoseconds period_ns,
                                   Nanoseconds created_ns) const;

  std::uint64_t seed_;
  std::map<const void*, std::uint64_t> numbers_;  // in graph order
  std::map<const void*, std::int64_t> places_;    // among timers of the same phase
  std::map<Phase, std::int64_t> counts_;
};

}  // namespace perflab::graph
