#include "middleware/sim/waitset.h"

#include <algorithm>
#include <chrono>

#include "middleware/sim/clock.h"
#include "middleware/sim/endpoint.h"

namespace perflab::middleware::sim {

WaitSet::~WaitSet() {
  for (const auto& [reader, cookie] : attachments_) reader->detach();
}

void WaitSet::attach(Reader& reader, std::uint64_t cookie) {
  reader.attach(this);
  attachments_.emplace_back(&reader, cookie);
}

void WaitSet::forget(const Reader& reader) noexcept {
  std::erase_if(attachments_, [&](const auto& attachment) { return attachment.first == &reader; });
  first_ = 0;
}

std::size_t WaitSet::collect(std::uint64_t* ready, std::size_t capacity) noexcept {
  const std::size_t places = attachments_.size();
  std::size_t count = 0;
  for (std::size_t i = 0; i < places; ++i) {
    const std::size_t at = (first_ + i) % places;
    if (!attachments_[at].first->has_data()) continue;
    if (count == capacity) {
      first_ = at;  // did not fit: the next wait starts with it
      return count;
    }
    ready[count++] = attachments_[at].second;
  }
  first_ = 0;
  return count;
}

perflab_status WaitSet::wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                             std::size_t* ready_count, perflab_error*) noexcept {
  const std::int64_t now_ns = monotonic_ns();
  const std::int64_t wait_ns = std::max<std::int64_t>(timeout_ns, 0);
  const std::int64_t until_ns = wait_ns > INT64_MAX - now_ns ? INT64_MAX : now_ns + wait_ns;
  std::unique_lock lock(mutex_);
  for (;;) {
    const std::uint64_t seen = signals_;
    // Readers are looked at without the lock: they hold theirs while they signal.
    lock.unlock();
    const std::size_t count = collect(ready, capacity);
    lock.lock();
    if (count > 0 || woken_) {
      woken_ = false;
      *ready_count = count;
      return PERFLAB_OK;
    }
    // Not by waiting until now: the kernel would still sleep for the thread's timer slack (50 us unless
    // changed).
    if (timeout_ns <= 0) {
      *ready_count = 0;
      return PERFLAB_TIMEOUT;
    }
    const auto something = [&] { return woken_ || signals_ != seen; };
    if (until_ns == INT64_MAX) {
      changed_.wait(lock, something);
    } else if (!changed_.wait_until(lock,
                                    std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns)),
                                    something)) {
      *ready_count = 0;
      return PERFLAB_TIMEOUT;
    }
  }
}

void WaitSet::wake() noexcept {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

void WaitSet::signal() noexcept {
  const std::lock_guard lock(mutex_);
  ++signals_;
  changed_.notify_one();
}

}  // namespace perflab::middleware::sim
