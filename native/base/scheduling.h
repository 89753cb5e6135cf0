// How the kernel schedules a thread, and what its policies are called.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perflab {

struct Scheduling {
  std::uint32_t policy = 0;
  std::uint32_t priority = 0;  // real-time priority; 0 with the others
  std::int32_t nice = 0;
  std::vector<unsigned long> cpus{};  // bit mask
  // Of DEADLINE, in nanoseconds; else 0.
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;

  bool operator==(const Scheduling&) const = default;
};

// Of the thread with that number; 0: the calling one. False where there is none. Reuses the memory of
// `scheduling`.
bool read_scheduling(int tid, Scheduling& scheduling);
// Gives the calling thread the policy DEADLINE; 0, or the errno of the kernel. What it starts from then on has OTHER.
[[nodiscard]] int set_deadline(std::uint64_t runtime_ns, std::uint64_t deadline_ns, std::uint64_t period_ns) noexcept;
// "OTHER", "FIFO", ... as chrt(1) names them; the number where it has no name.
[[nodiscard]] std::string policy_text(std::uint32_t policy);
// Ascending.
[[nodiscard]] std::vector<int> cpus_of(const std::vector<unsigned long>& mask);

}  // namespace perflab
