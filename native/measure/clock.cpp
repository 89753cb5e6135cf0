#include "measure/clock.h"

#include <algorithm>
#include <array>

namespace perflab::measure {

Nanoseconds clock_cost(const Clock& clock) {
  // A single difference is close to the clock's resolution, so each sample spans a batch of readings.
  constexpr int kBatch = 64;
  std::array<Nanoseconds, 101> costs{};
  for (Nanoseconds& cost : costs) {
    const Nanoseconds begin = clock.now();
    for (int i = 1; i < kBatch; ++i) static_cast<void>(clock.now());
    cost = (clock.now() - begin) / kBatch;
  }
  std::ranges::nth_element(costs, costs.begin() + costs.size() / 2);
  return costs[costs.size() / 2];
}

}  // namespace perflab::measure
