#include "program/hiccup.h"

#include <sys/prctl.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "base/descriptor.h"
#include "base/proc.h"
#include "realtime/thread.h"

namespace perflab::node {
namespace {

std::optional<Nanoseconds> run_delay(const Descriptor& schedstat) {
  const auto text = proc::read_again(schedstat);
  const auto found = text ? proc::parse_schedstat(*text) : std::nullopt;
  return found ? std::optional(found->run_delay_ns) : std::nullopt;
}

}  // namespace

Hiccup::Hiccup(const measure::Clock& clock, Nanoseconds period_ns)
    : clock_(clock), period_ns_(period_ns), thread_([this] { run(); }) {
  // Until it is registered, the thread would count as one of the middleware.
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return registered_; });
}

Hiccup::~Hiccup() { stop(); }

void Hiccup::start(Nanoseconds from, Nanoseconds until) {
  {
    const std::lock_guard lock(mutex_);
    started_ = true;
    from_ = from;
    until_ = until;
  }
  wake_.notify_all();
}

void Hiccup::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool Hiccup::await_start() {
  std::unique_lock lock(mutex_);
  registered_ = true;
  wake_.notify_all();
  wake_.wait(lock, [this] { return started_ || stopping_; });
  wake_.wait_for(lock, std::chrono::nanoseconds(from_ - clock_.now()), [this] { return stopping_.load(); });
  return !stopping_;
}

void Hiccup::run() {
  realtime::name_this_thread("hiccup");
  realtime::register_this_thread(realtime::Role::kPerflab);
  // Measures the kernel's latency without the timer slack of ordinary threads, 50 us.
  prctl(PR_SET_TIMERSLACK, 1UL);
  if (!await_start()) return;
  const Descriptor schedstat = open_file(AT_FDCWD, "/proc/thread-self/schedstat");
  std::optional<Nanoseconds> delay_before = run_delay(schedstat);
  Nanoseconds begin = std::max(from_, clock_.now());
  while (!stopping_.load(std::memory_order_relaxed) && begin + period_ns_ <= until_.load(std::memory_order_relaxed)) {
    const Nanoseconds due = begin + period_ns_;
    realtime::sleep_until(due);
    begin = clock_.now();
    histogram_.record(begin - due, begin);
    const std::optional<Nanoseconds> delay = run_delay(schedstat);
    if (delay && delay_before) {
      // The kernel measures run delays with another clock, which may be a few microseconds ahead.
      const Nanoseconds late = begin - due;
      const Nanoseconds waited = std::clamp(*delay - *delay_before, Nanoseconds{0}, std::max(Nanoseconds{0}, late));
      waited_.record(waited, begin);
      woken_late_.record(late - waited, begin);
      split_.store(true, std::memory_order_release);
    }
    delay_before = delay;
  }
}

}  // namespace perflab::node
