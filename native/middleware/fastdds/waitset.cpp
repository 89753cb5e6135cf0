#include "middleware/fastdds/waitset.h"

#include <algorithm>
#include <chrono>

#include "middleware/fastdds/endpoint.h"
#include "middleware/support/status.h"

namespace perflab::middleware::fastdds {

WaitSet::~WaitSet() {
  for (const Attachment& attachment : attachments_) attachment.reader->detach();
}

void WaitSet::attach(Reader& reader, std::uint64_t cookie) {
  const std::lock_guard lock(attachments_mutex_);
  reader.attach(*this);  // throws where there is one already
  attachments_.push_back({&reader, cookie});
  signal();
}

void WaitSet::forget(const Reader& reader) noexcept {
  const std::lock_guard lock(attachments_mutex_);
  const auto at = std::find_if(attachments_.begin(), attachments_.end(),
                               [&](const Attachment& attachment) { return attachment.reader == &reader; });
  if (at == attachments_.end()) return;
  const auto place = static_cast<std::size_t>(at - attachments_.begin());
  attachments_.erase(at);
  if (first_ > place) --first_;
  if (first_ >= attachments_.size()) first_ = 0;
}

std::size_t WaitSet::collect(std::uint64_t* ready, std::size_t capacity) noexcept {
  const std::lock_guard lock(attachments_mutex_);
  const std::size_t places = attachments_.size();
  const std::size_t start = first_;
  std::size_t count = 0;
  first_ = 0;
  for (std::size_t i = 0; i < places; ++i) {
    const std::size_t at = (start + i) % places;
    if (!attachments_[at].reader->has_data()) continue;
    if (count == capacity) {
      first_ = at;  // the next wait starts here
      break;
    }
    ready[count++] = attachments_[at].cookie;
  }
  return count;
}

perflab_status WaitSet::wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                             std::size_t* ready_count, perflab_error*) noexcept {
  using Clock = std::chrono::steady_clock;
  const bool forever = timeout_ns == PERFLAB_DURATION_INFINITE;
  const Clock::time_point until =
      forever ? Clock::time_point::max()
              : Clock::now() + std::chrono::nanoseconds(std::max<std::int64_t>(timeout_ns, 0));
  for (;;) {
    std::unique_lock lock(mutex_);
    // What comes after this moment changes the number, so that nothing is missed between looking and
    // sleeping.
    const std::uint64_t seen = signals_;
    const bool woken = std::exchange(woken_, false);
    lock.unlock();
    const std::size_t count = collect(ready, capacity);
    if (count > 0 || woken) {
      *ready_count = count;
      return PERFLAB_OK;
    }
    // Not by waiting until now: the kernel would still sleep for the thread's timer slack (50 us unless
    // changed).
    if (timeout_ns <= 0) {
      *ready_count = 0;
      return PERFLAB_TIMEOUT;
    }
    lock.lock();
    const auto changed = [&] { return signals_ != seen || woken_; };
    if (forever) {
      changed_.wait(lock, changed);
    } else if (!changed_.wait_until(lock, until, changed)) {
      *ready_count = 0;
      return PERFLAB_TIMEOUT;
    }
  }
}

void WaitSet::wake() noexcept {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

void WaitSet::signal() noexcept {
  {
    const std::lock_guard lock(mutex_);
    ++signals_;
  }
  changed_.notify_one();
}

}  // namespace perflab::middleware::fastdds
