// Scheduling of threads by the kernel, and the names of its policies.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perflab {

struct Scheduling {
  std::uint32_t policy = 0;
  std::uint32_t priority = 0;  // real-time priority; 0 for other policies
  std::int32_t nice = 0;
  std::vector<unsigned long> cpus{};  // bit mask
  // For DEADLINE, in nanoseconds; otherwise 0.
  std::uint64_t runtime_ns = 0;
  std::uint64_t deadline_ns = 0;
  std::uint64_t period_ns = 0;

  bool operator==(const Scheduling&) const = default;
};

// Reads the scheduling of thread `tid` (0: the calling thread). False if it does not exist. Reuses the memory
// of `scheduling`.
bool read_scheduling(int tid, Scheduling& scheduling);
// Gives the calling thread the policy DEADLINE; returns 0 or the kernel's errno. Threads that it starts later
// get OTHER.
[[nodiscard]] int set_deadline(std::uint64_t runtime_ns, std::uint64_t deadline_ns, std::uint64_t period_ns) noexcept;
// "OTHER", "FIFO", ... as in chrt(1); the number if the policy has no name.
[[nodiscard]] std::string policy_text(std::uint32_t policy);
// In ascending order.
[[nodiscard]] std::vector<int> cpus_of(const std::vector<unsigned long>& mask);

}  // namespace perflab
