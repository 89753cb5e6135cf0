#include "programs/burn/watchdog.h"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <string>

#include "base/error.h"

namespace perflab::burn {
namespace {

// Time to report that the limit was reached.
constexpr Nanoseconds kHardAfter = 2 * kNanosecondsPerSecond;
constexpr int kSoft = SIGALRM;

std::atomic<bool> reached{false};
std::atomic<int> wake{-1};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free);

void on_limit(int) {
  reached = true;
  Event::notify(wake);
}

[[noreturn]] void refuse(const char* what) {
  throw Unsupported(std::string("watchdog: ") + what + ": " + reason_of(errno));
}

void arm(sigevent& event, Nanoseconds at_ns) {
  timer_t timer{};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0) refuse("timer_create");
  const itimerspec when{.it_interval = {}, .it_value = to_timespec(at_ns)};
  // Timers end with the process.
  if (timer_settime(timer, TIMER_ABSTIME, &when, nullptr) != 0) refuse("timer_settime");
}

}  // namespace

Watchdog::Watchdog(Nanoseconds limit_ns) : limit_at_ns_(read_clock(CLOCK_MONOTONIC) + limit_ns) {
  wake = wake_.number();
  struct sigaction action {};
  action.sa_handler = on_limit;
  action.sa_flags = SA_RESTART;
  sigaction(kSoft, &action, nullptr);
  // Only watched threads receive it.
  sigset_t soft;
  sigemptyset(&soft);
  sigaddset(&soft, kSoft);
  pthread_sigmask(SIG_BLOCK, &soft, nullptr);
  sigevent hard{};
  hard.sigev_notify = SIGEV_SIGNAL;
  hard.sigev_signo = SIGKILL;
  arm(hard, limit_at_ns_ + kHardAfter);
}

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
