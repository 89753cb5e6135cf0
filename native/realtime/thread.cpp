#include "realtime/thread.h"

#include <algorithm>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <mutex>

namespace perflab::realtime {
namespace {

constexpr unsigned kSecondsToEnd = 3;

struct Registry {
  std::mutex mutex;
  std::vector<OwnThread> threads;
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

void name_this_thread(const std::string& name) noexcept { prctl(PR_SET_NAME, name.substr(0, 15).c_str()); }

void register_this_thread(Role role, const ThreadSettings& asked) {
  const std::lock_guard lock(registry().mutex);
  registry().threads.push_back({gettid(), role, asked});
}

const char* to_text(Role role) noexcept {
  switch (role) {
    case Role::kPerflab:
      return "perflab";
    case Role::kExecutor:
      return "executor";
    case Role::kProgram:
      return "program";
  }
  return "perflab";
}

void forget_this_thread() noexcept {
  const std::lock_guard lock(registry().mutex);
  std::erase_if(registry().threads, [tid = gettid()](const OwnThread& thread) { return thread.tid == tid; });
}

void adopt_thread(const OwnThread& thread) {
  const std::lock_guard lock(registry().mutex);
  if (std::ranges::find(registry().threads, thread.tid, &OwnThread::tid) == registry().threads.end())
    registry().threads.push_back(thread);
}

std::vector<OwnThread> own_threads() {
  const std::lock_guard lock(registry().mutex);
  return registry().threads;
}

bool end_with_parent() noexcept {
  const pid_t parent = getppid();
  // Leaves time for an orderly exit triggered by the closed control channel (shared memory is removed); then
  // SIGALRM ends the process.
  signal(SIGRTMIN, [](int) { alarm(kSecondsToEnd); });
  if (prctl(PR_SET_PDEATHSIG, SIGRTMIN) != 0) return false;
  // The parent may have died between fork and prctl; then the signal never comes.
  return getppid() == parent;
}

void sleep_until(Nanoseconds instant) noexcept {
  const timespec until = to_timespec(instant);
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

void spend_cpu_time(Nanoseconds amount) noexcept {
  if (amount <= 0) return;
  const Nanoseconds end = read_clock(CLOCK_THREAD_CPUTIME_ID) + amount;
  volatile std::uint64_t sink = 1;
  while (read_clock(CLOCK_THREAD_CPUTIME_ID) < end) {
    // Some microseconds of arithmetic between readings of the clock; the volatile prevents optimization.
    std::uint64_t value = sink;
    for (int i = 0; i < 256; ++i) value = value * 6364136223846793005u + 1442695040888963407u;
    sink = value;
  }
}

}  // namespace perflab::realtime
