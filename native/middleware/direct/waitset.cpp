#include "middleware/direct/waitset.h"

#include <algorithm>
#include <bit>
#include <chrono>

#include "middleware/direct/endpoint.h"

namespace perflab::middleware::direct {
namespace {

constexpr std::size_t kBits = 64;

}  // namespace

Attachment::Attachment(WaitSet& waitset, std::size_t place) noexcept
    : waitset_(&waitset), bits_(&waitset.bits_[place / kBits]), bit_(std::uint64_t{1} << place % kBits) {}

// Either this sees that somebody sleeps, or he sees the bit before he does.
void Attachment::set() noexcept {
  if (waitset_ == nullptr) return;
  bits_->fetch_or(bit_, std::memory_order_seq_cst);
  if (waitset_->sleeping_.load(std::memory_order_seq_cst)) waitset_->notify();
}

void Attachment::clear() noexcept {
  if (waitset_ != nullptr) bits_->fetch_and(~bit_, std::memory_order_relaxed);
}

WaitSet::~WaitSet() {
  for (const Place& place : places_) {
    if (place.reader != nullptr) place.reader->detach();
  }
}

void WaitSet::attach(Reader& reader, std::uint64_t cookie) {
  const std::size_t place = places_.size();
  places_.reserve(place + 1);
  if (place / kBits == bits_.size()) bits_.emplace_back(0);
  reader.attach(Attachment(*this, place));  // throws where there is one already
  places_.push_back({&reader, cookie});
}

void WaitSet::forget(const Reader& reader) noexcept {
  for (Place& place : places_) {
    if (place.reader == &reader) place.reader = nullptr;
  }
}

std::size_t WaitSet::collect(std::uint64_t* ready, std::size_t capacity) noexcept {
  std::size_t count = 0;
  // False when there is one more than fits.
  const auto gather = [&](std::size_t from, std::size_t end) {
    for (std::size_t at = from; at < end; at = (at / kBits + 1) * kBits) {
      std::uint64_t set = bits_[at / kBits].load(std::memory_order_seq_cst) >> at % kBits;
      for (std::size_t place = at; set != 0; ++place, set >>= 1) {
        const auto skipped = static_cast<std::size_t>(std::countr_zero(set));
        place += skipped;
        set >>= skipped;
        if (place >= end) return true;
        if (count == capacity) {
          first_ = place;
          return false;
        }
        ready[count++] = places_[place].cookie;
      }
    }
    return true;
  };
  const std::size_t start = first_;
  if (gather(start, places_.size()) && gather(0, start)) first_ = 0;
  return count;
}

perflab_status WaitSet::wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                             std::size_t* ready_count, perflab_error*) noexcept {
  if (!woken_.load(std::memory_order_relaxed)) {
    *ready_count = collect(ready, capacity);
    if (*ready_count > 0) return PERFLAB_OK;
  }
  using Clock = std::chrono::steady_clock;
  const bool forever = timeout_ns == PERFLAB_DURATION_INFINITE;
  const Clock::time_point until =
      forever || timeout_ns <= 0 ? Clock::time_point{} : Clock::now() + std::chrono::nanoseconds(timeout_ns);
  std::unique_lock lock(mutex_);
  perflab_status status = PERFLAB_OK;
  sleeping_.store(true, std::memory_order_seq_cst);
  for (;;) {
    *ready_count = collect(ready, capacity);
    if (*ready_count > 0 || woken_) break;
    // Not by waiting until now: the kernel would still sleep for the thread's timer slack (50 us unless
    // changed).
    if (status == PERFLAB_TIMEOUT || timeout_ns <= 0) {
      status = PERFLAB_TIMEOUT;
      break;
    }
    if (forever) {
      changed_.wait(lock);
    } else if (changed_.wait_until(lock, until) == std::cv_status::timeout) {
      status = PERFLAB_TIMEOUT;
      continue;  // one last look
    }
  }
  sleeping_.store(false, std::memory_order_relaxed);
  if (*ready_count > 0 || woken_) status = PERFLAB_OK;
  woken_ = false;
  return status;
}

void WaitSet::wake() noexcept {
  const std::lock_guard lock(mutex_);
  woken_ = true;
  changed_.notify_one();
}

// Under the mutex: who looked before the bit was set is asleep by now.
void WaitSet::notify() noexcept {
  const std::lock_guard lock(mutex_);
  changed_.notify_one();
}

}  // namespace perflab::middleware::direct
