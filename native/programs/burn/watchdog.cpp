#include "programs/burn/watchdog.h"

#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <string>

#include "runtime/runtime.h"

namespace perflab::burn {
namespace {

using runtime::Error;

// Time to say that the limit was reached.
constexpr Nanoseconds kHardAfter = 2 * kNanosecondsPerSecond;
constexpr int kSoft = SIGALRM;

std::atomic<bool> reached{false};
std::atomic<int> wake{-1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_limit(int) {
  const int before = errno;
  reached = true;
  const std::uint64_t one = 1;
  static_cast<void>(!write(wake, &one, sizeof one));
  errno = before;
}

[[noreturn]] void refuse(const char* what) {
  throw Error(Error::Kind::kUnsupported, std::string("watchdog: ") + what + ": " + std::strerror(errno));
}

void arm(sigevent& event, Nanoseconds at_ns) {
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) refuse("timer_create");
  itimerspec when{};
  when.it_value.tv_sec = static_cast<time_t>(at_ns / kNanosecondsPerSecond);
  when.it_value.tv_nsec = static_cast<long>(at_ns % kNanosecondsPerSecond);
  // Timers end with the process.
  if (timer_settime(timer, TIMER_ABSTIME, &when, nullptr) != 0) refuse("timer_settime");
}

}  // namespace

Watchdog::Watchdog(Nanoseconds limit_ns)
    : limit_at_ns_(measure::MonotonicClock().now() + limit_ns),
      wake_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (wake_ < 0) refuse("eventfd");
  wake = wake_;
  struct sigaction action {};
  action.sa_handler = on_limit;
  action.sa_flags = SA_RESTART;
  sigaction(kSoft, &action, nullptr);
  // Only threads that are watched take it.
  sigset_t soft;
  sigemptyset(&soft);
  sigaddset(&soft, kSoft);
  pthread_sigmask(SIG_BLOCK, &soft, nullptr);
  sigevent hard{};
  hard.sigev_notify = SIGEV_SIGNAL;
  hard.sigev_signo = SIGKILL;
  arm(hard, limit_at_ns_ + kHardAfter);
}

Watchdog::~Watchdog() { close(wake_); }

void Watchdog::watch_this_thread() const {
  sigset_t soft;
  sigemptyset(&soft);
  sigaddset(&soft, kSoft);
  pthread_sigmask(SIG_UNBLOCK, &soft, nullptr);
  sigevent event{};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSoft;
  event._sigev_un._tid = gettid();  // older glibc has no name for it
  arm(event, limit_at_ns_);
}

bool Watchdog::limit_reached() noexcept { return reached.load(std::memory_order_relaxed); }

}  // namespace perflab::burn
