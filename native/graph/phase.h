// Where in its period each timer of a graph ticks.
//
// A timer ticks once in each period after the common start, `offset` after the period's begin; the offset is
// from 0 to less than the period, and 0 is the end of the period before: nothing is sent at the start itself.
// So the number of ticks does not depend on the phase.
//
// aligned     0: timers whose periods agree tick together
// staggered   the n-th of N timers (n from 0) after n / N of its own period
// random      drawn from the seed, the same in every process
// as_created  as far into a period as the instant was at which the timer was created: what an application
//             has whose timers run from their creation on. The instants of all processes are of one clock,
//             so offsets keep how timers lay to each other.
//
// Of a timer with bursts the period is that of the bursts. One that is not periodic has no phase: its offset
// is 0.
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
  // Counts the timers and cyclic reactions of the whole graph, in its order. The graph outlives the object.
  PhaseOffsets(const Graph& graph, std::uint64_t seed);

  [[nodiscard]] Nanoseconds of(const Timer& timer, Nanoseconds created_ns) const {
    if (timer.arrivals != Arrivals::kPeriodic) return 0;
    return offset(&timer, timer.phase, timer.period_ns * timer.burst, created_ns);
  }
  [[nodiscard]] Nanoseconds of(const Reaction& cyclic, Nanoseconds created_ns) const {
    return offset(&cyclic, cyclic.phase, cyclic.period_ns, created_ns);
  }
  // Of what is random in when it ticks: another one for each timer of the graph and each trial.
  [[nodiscard]] std::uint64_t seed_of(const Timer& timer) const;

 private:
  void count(const void* timer, Phase phase);
  [[nodiscard]] Nanoseconds offset(const void* timer, Phase phase, Nanoseconds period_ns,
                                   Nanoseconds created_ns) const;

  std::uint64_t seed_;
  std::map<const void*, std::uint64_t> numbers_;  // in the order of the graph
  std::map<const void*, std::int64_t> places_;    // among those of the same phase
  std::map<Phase, std::int64_t> counts_;
};

}  // namespace perflab::graph
