// Pseudo-random numbers that are the same for the same seed on every machine.
//
// Example:
//   SplitMix64 random(mixed(seed) + place);
//   random.next();
//   random.exponential(1'000'000.0);   // mean 1 ms
#pragma once

#include <cmath>
#include <cstdint>

namespace perflab {

// SplitMix64 (Steele, Lea and Flood, 2014): neighbouring inputs give unrelated outputs.
[[nodiscard]] constexpr std::uint64_t mixed(std::uint64_t value) noexcept {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

class SplitMix64 {
 public:
  explicit constexpr SplitMix64(std::uint64_t seed) noexcept : state_(seed) {}

  constexpr std::uint64_t next() noexcept {
    const std::uint64_t value = mixed(state_);
    state_ += 0x9e3779b97f4a7c15U;
    return value;
  }
  // In (0, 1].
  constexpr double uniform() noexcept { return (static_cast<double>(next() >> 11U) + 1.0) * 0x1p-53; }
  // Exponentially distributed with this mean.
  double exponential(double mean) noexcept { return -mean * std::log(uniform()); }

 private:
  std::uint64_t state_;
};

}  // namespace perflab
