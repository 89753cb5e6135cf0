#include "graph/phase.h"

#include "graph/check.h"

namespace perflab::graph {
namespace {

// SplitMix64 (Steele, Lea and Flood, 2014): neighbouring seeds and places give unrelated values.
std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

}  // namespace

PhaseOffsets::PhaseOffsets(const Graph& graph, std::uint64_t seed) : seed_(seed) {
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    for (const Timer& timer : node.timers) count(&timer, timer.phase);
    for (const Reaction& reaction : node.reactions) {
      if (reaction.kind == ReactionKind::kCyclic) count(&reaction, reaction.phase);
    }
  });
}

void PhaseOffsets::count(const void* timer, Phase phase) { places_[timer] = counts_[phase]++; }

Nanoseconds PhaseOffsets::offset(const void* timer, Phase phase, Nanoseconds period_ns,
                                 Nanoseconds created_ns) const {
  const std::int64_t place = places_.at(timer);
  switch (phase) {
    case Phase::kAligned:
      return 0;
    case Phase::kStaggered: {
      const std::int64_t count = counts_.at(phase);
      // Periods are at most one day: the product of the remainder fits.
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
