#include "middleware/shm/waitset.h"

#include "middleware/shm/participant.h"
#include "middleware/shm/reader.h"

namespace perflab::middleware::shm {

WaitSet::WaitSet(Participant&) : board_(Board::of_this_process()), bell_(board_->take_bell()) {}

WaitSet::~WaitSet() {
  for (const auto& [reader, cookie] : attachments_) reader->detach();
  board_->return_bell(bell_);
}

void WaitSet::attach(Reader& reader, std::uint64_t cookie) {
  attachments_.reserve(attachments_.size() + 1);
  reader.attach(*this, bell_);
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
  const auto look = [&]() noexcept {
    *ready_count = collect(ready, capacity);
    return woken_.exchange(false) || *ready_count > 0;
  };
  if (look()) return PERFLAB_OK;
  // Do not sleep until now: the kernel would still sleep for the thread's timer slack (50 us by default).
  if (timeout_ns <= 0) return PERFLAB_TIMEOUT;
  return board_->bell(bell_).wait_until(support::monotonic_after(timeout_ns), look) ? PERFLAB_OK
                                                                                    : PERFLAB_TIMEOUT;
}

void WaitSet::wake() noexcept {
  woken_.store(true);
  board_->ring(bell_);
}

}  // namespace perflab::middleware::shm
