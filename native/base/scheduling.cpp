#include "base/scheduling.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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

constexpr std::uint32_t kDeadlinePolicy = 6;        // SCHED_DEADLINE
constexpr std::uint64_t kResetOnFork = 1;           // SCHED_FLAG_RESET_ON_FORK; without it a deadline thread
                                                    // cannot start others

constexpr std::array<std::string_view, 8> kPolicies{"OTHER", "FIFO", "RR",       "BATCH",
                                                    "",      "IDLE", "DEADLINE", "EXT"};

}  // namespace

bool read_scheduling(int tid, Scheduling& scheduling) {
  // The largest number of CPUs that the kernel can be built for.
  thread_local std::array<unsigned long, 8192 / (8 * sizeof(unsigned long))> mask;
  const long bytes = syscall(SYS_sched_getaffinity, tid, sizeof mask, mask.data());
  if (bytes < 0) return false;
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, tid, &attributes, sizeof attributes, 0u) != 0) return false;
  scheduling.policy = attributes.policy;
  scheduling.priority = attributes.priority;
  scheduling.nice = attributes.nice;
  // For other policies the kernel returns a time slice in this field.
  const bool deadline = attributes.policy == kDeadlinePolicy;
  scheduling.runtime_ns = deadline ? attributes.runtime : 0;
  scheduling.deadline_ns = deadline ? attributes.deadline : 0;
  scheduling.period_ns = deadline ? attributes.period : 0;
  scheduling.cpus.assign(mask.begin(), mask.begin() + bytes / static_cast<long>(sizeof(unsigned long)));
  return true;
}

int set_deadline(std::uint64_t runtime_ns, std::uint64_t deadline_ns, std::uint64_t period_ns) noexcept {
  SchedulingAttributes attributes{.size = sizeof(SchedulingAttributes),
                                  .policy = kDeadlinePolicy,
                                  .flags = kResetOnFork,
                                  .nice = 0,
                                  .priority = 0,
                                  .runtime = runtime_ns,
                                  .deadline = deadline_ns,
                                  .period = period_ns};
  return syscall(SYS_sched_setattr, 0, &attributes, 0u) == 0 ? 0 : errno;
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
