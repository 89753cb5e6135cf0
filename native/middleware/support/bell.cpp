#include "middleware/support/bell.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace perflab::middleware::support {
namespace {

constexpr std::int64_t kSecond_ns = 1'000'000'000;

// The kernel finds a process-private futex faster.
constexpr int in_reach(bool shared, int operation) {
  return shared ? operation : operation | FUTEX_PRIVATE_FLAG;
}

}  // namespace

template <bool kShared>
bool BasicBell<kShared>::sleep(std::int64_t until_ns) noexcept {
  static_assert(sizeof asleep_ == 4 && decltype(asleep_)::is_always_lock_free);
  const timespec until{until_ns / kSecond_ns, until_ns % kSecond_ns};
  // FUTEX_WAIT_BITSET takes an absolute time.
  const long result = syscall(SYS_futex, &asleep_, in_reach(kShared, FUTEX_WAIT_BITSET), kAsleep,
                              until_ns == INT64_MAX ? nullptr : &until, nullptr, FUTEX_BITSET_MATCH_ANY);
  return result == 0 || errno != ETIMEDOUT;
}

template <bool kShared>
void BasicBell<kShared>::wake() noexcept {
  syscall(SYS_futex, &asleep_, in_reach(kShared, FUTEX_WAKE), 1, nullptr, nullptr, 0);
}

template class BasicBell<false>;
template class BasicBell<true>;

std::int64_t monotonic_after(std::int64_t timeout_ns) noexcept {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const std::int64_t now_ns = std::int64_t{now.tv_sec} * kSecond_ns + now.tv_nsec;
  return timeout_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + timeout_ns;
}

}  // namespace perflab::middleware::support
