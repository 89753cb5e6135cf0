#include "graph/phase.h"

#include "base/random.h"
#include "graph/check.h"

namespace perflab::graph {
PhaseOffsets::PhaseOffsets(const Graph& graph, std::uint64_t seed) : seed_(seed) {
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    for (const Timer& timer : node.timers) count(&timer, timer.phase);
    for (const Reaction& reaction : node.reactions) {
      if (reaction.kind == ReactionKind::kCyclic) count(&reaction, reaction.phase);
    }
  });
}

void PhaseOffsets::count(const void* timer, Phase phase) {
  numbers_.emplace(timer, numbers_.size());
  places_[timer] = counts_[phase]++;
}

std::uint64_t PhaseOffsets::seed_of(const Timer& timer) const {
  return mixed(mixed(seed_ + 1) + numbers_.at(&timer));
}

Nanoseconds PhaseOffsets::offset(const void* timer, Phase phase, Nanoseconds period_ns,
                                 Nanoseconds created_ns) const {
  const std::int64_t place = places_.at(timer);
  switch (phase) {
    case Phase::kAligned:
      return 0;
    case Phase::kStaggered: {
      const std::int64_t count = counts_.at(phase);
      // Periods are at most one day, so the product with the remainder does not overflow.
      return period_ns / count * place + period_ns % count * place / count;
    }
    case Phase::kRandom:
      return static_cast<Nanoseconds>(mixed(mixed(seed_) + static_cast<std::uint64_t>(place)) %
                                      static_cast<std::uint64_t>(period_ns));
    case Phase::kAsCreated:
      return created_ns % period_ns;
  }
  return 0;
}

}  // namespace perflab::graph
