#include "base/scheduling.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <string_view>

namespace perflab {
namespace {

// sched_setattr(2), first version; glibc has no wrapper for it.
struct SchedulingAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime;
  std::uint64_t deadline;
  std::uint64_t period;
};

constexpr std::array<std::string_view, 8> kPolicies{"OTHER", "FIFO", "RR",       "BATCH",
                                                    "",      "IDLE", "DEADLINE", "EXT"};

}  // namespace

bool read_scheduling(int tid, Scheduling& scheduling) {
  // As many as the kernel can be built for.
  thread_local std::array<unsigned long, 8192 / (8 * sizeof(unsigned long))> mask;
  const long bytes = syscall(SYS_sched_getaffinity, tid, sizeof mask, mask.data());
  if (bytes < 0) return false;
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, tid, &attributes, sizeof attributes, 0u) != 0) return false;
  scheduling.policy = attributes.policy;
  scheduling.priority = attributes.priority;
  scheduling.nice = attributes.nice;
  scheduling.cpus.assign(mask.begin(), mask.begin() + bytes / static_cast<long>(sizeof(unsigned long)));
  return true;
}

std::string policy_text(std::uint32_t policy) {
  const bool named = policy < kPolicies.size() && !kPolicies[policy].empty();
  return named ? std::string(kPolicies[policy]) : std::to_string(policy);
}

std::vector<int> cpus_of(const std::vector<unsigned long>& mask) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<int> cpus;
  for (std::size_t cpu = 0; cpu < mask.size() * kBits; ++cpu) {
    if ((mask[cpu / kBits] >> (cpu % kBits) & 1) != 0) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

}  // namespace perflab
