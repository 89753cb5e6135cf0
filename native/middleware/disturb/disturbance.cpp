#include "middleware/disturb/disturbance.h"

#include <algorithm>

namespace perflab::middleware::disturb {
namespace {

// SplitMix64 (Steele, Lea and Flood, 2014): small, accepts any seed, and gives the same numbers everywhere.
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
      stall_every_ns_(program.stall_every_ns),
      stall_ns_(program.stall_ns),
      random_(program.seed) {
  random_ = next_random(random_) ^ stream;
}

double Disturbance::uniform() noexcept { return static_cast<double>(next_random(random_) >> 11) * 0x1.0p-53; }

std::int64_t Disturbance::after_stall(std::int64_t at_ns) const noexcept {
  if (stall_ns_ == 0) return at_ns;
  const std::int64_t into_ns = at_ns % stall_every_ns_;
  return into_ns < stall_ns_ ? at_ns + stall_ns_ - into_ns : at_ns;
}

void Disturbance::add(Arrivals& arrivals, const Held& message, std::int64_t due_ns, bool overtaken) noexcept {
  for (const bool copy : {false, true}) {
    if (copy && !message.doubled) break;
    arrivals.items_[arrivals.count_++] = {due_ns, message.message, copy, overtaken, message.stalled};
  }
}

Disturbance::Outcome Disturbance::offer(void* message, std::int64_t offered_ns, Arrivals& arrivals) noexcept {
  arrivals.count_ = 0;
  const std::uint64_t n = ++offered_;
  // Both are drawn for every message, so that enabling one option does not change the effect of another.
  const double loss_draw = uniform();
  const double jitter_draw = uniform();
  if (divides(loss_every_, n) || loss_draw < loss_) {
    ++lost_;
    return Outcome::lost;
  }
  const auto extra_ns = static_cast<std::int64_t>(jitter_draw * static_cast<double>(jitter_ns_));
  const std::int64_t undisturbed_ns = offered_ns + delay_ns_ + extra_ns;
  std::int64_t due_ns = after_stall(undisturbed_ns);
  const bool stalled = due_ns > undisturbed_ns;
  due_ns = std::max(due_ns, last_due_ns_);
  last_due_ns_ = due_ns;
  const Held offered{message, due_ns, divides(duplicate_every_, n), stalled};
  if (held_.message == nullptr && divides(reorder_every_, n)) {
    held_ = offered;
    return Outcome::held;
  }
  add(arrivals, offered, due_ns, false);
  if (held_.message != nullptr) {
    add(arrivals, held_, due_ns, true);
    held_.message = nullptr;
  }
  return Outcome::passed;
}

void Disturbance::release(Arrivals& arrivals) noexcept {
  arrivals.count_ = 0;
  if (held_.message == nullptr) return;
  add(arrivals, held_, held_.due_ns, false);
  held_.message = nullptr;
}

}  // namespace perflab::middleware::disturb
