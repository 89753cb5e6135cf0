#include "middleware/sim/disturbance.h"

#include <algorithm>

namespace perflab::middleware::sim {
namespace {

// SplitMix64 (Steele, Lea and Flood, 2014): small, seedable with any number, and the same everywhere.
std::uint64_t next_random(std::uint64_t& state) noexcept {
  std::uint64_t z = (state += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

bool divides(std::uint64_t every, std::uint64_t n) noexcept { return every != 0 && n % every == 0; }

}  // namespace

Disturbance::Disturbance(const Program& program, std::uint64_t stream)
    : delay_ns_(program.delay_ns),
      jitter_ns_(program.jitter_ns),
      loss_(program.loss),
      loss_every_(program.loss_every),
      reorder_every_(program.reorder_every),
      duplicate_every_(program.duplicate_every),
      random_(program.seed) {
  random_ = next_random(random_) ^ stream;
}

double Disturbance::uniform() noexcept { return static_cast<double>(next_random(random_) >> 11) * 0x1.0p-53; }

void Disturbance::add(Arrivals& arrivals, std::int64_t due_ns, void* message, bool doubled,
                      bool overtaken) noexcept {
  arrivals.items_[arrivals.count_++] = {due_ns, message, false, overtaken};
  if (doubled) arrivals.items_[arrivals.count_++] = {due_ns, message, true, overtaken};
}

Disturbance::Outcome Disturbance::offer(void* message, std::int64_t sent_ns, Arrivals& arrivals) noexcept {
  arrivals.count_ = 0;
  const std::uint64_t n = ++offered_;
  // Both are drawn for every message, so that switching one option on does not change what another does.
  const double loss_draw = uniform();
  const double jitter_draw = uniform();
  if (divides(loss_every_, n) || loss_draw < loss_) {
    ++lost_;
    return Outcome::lost;
  }
  const auto extra_ns = static_cast<std::int64_t>(jitter_draw * static_cast<double>(jitter_ns_));
  const std::int64_t due_ns = std::max(sent_ns + delay_ns_ + extra_ns, last_due_ns_);
  last_due_ns_ = due_ns;
  const bool doubled = divides(duplicate_every_, n);
  if (held_.message == nullptr && divides(reorder_every_, n)) {
    held_ = {message, due_ns, doubled};
    return Outcome::held;
  }
  add(arrivals, due_ns, message, doubled, false);
  if (held_.message != nullptr) {
    add(arrivals, due_ns, held_.message, held_.doubled, true);
    held_.message = nullptr;
  }
  return Outcome::passed;
}

void Disturbance::release(Arrivals& arrivals) noexcept {
  arrivals.count_ = 0;
  if (held_.message == nullptr) return;
  add(arrivals, held_.due_ns, held_.message, held_.doubled, false);
  held_.message = nullptr;
}

}  // namespace perflab::middleware::sim
