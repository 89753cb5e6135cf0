#include "middleware/udp/waitset.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/error.h"
#include "base/time.h"
#include "middleware/support/bell.h"
#include "middleware/support/status.h"
#include "middleware/udp/reader.h"
#include "middleware/udp/socket.h"

namespace perflab::middleware::udp {
namespace {

// epoll_wait() with a timeout in nanoseconds (Linux 5.11; null: no limit). A direct system call, because
// glibc has a wrapper only since 2.35.
int epoll_wait_ns(int epoll, epoll_event* events, std::size_t most, const timespec* timeout) noexcept {
  return static_cast<int>(
      syscall(SYS_epoll_pwait2, epoll, events, static_cast<int>(most), timeout, nullptr, 0));
}

}  // namespace

WaitSet::WaitSet(Participant&) : epoll_(epoll_create1(EPOLL_CLOEXEC)), events_(2) {
  if (!epoll_.open()) fail("no file descriptor is left");
  watch(woken_.number(), &woken_);
  watch(changed_.number(), &changed_);
  const timespec none{};
  if (epoll_wait_ns(epoll_.number(), events_.data(), 1, &none) < 0 && errno == ENOSYS)
    throw Unsupported("udp: this kernel has no epoll_pwait2; right would be Linux 5.11 or later");
}

void WaitSet::watch(int number, const void* what) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.ptr = const_cast<void*>(what);
  if (epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, number, &event) != 0) fail("cannot wait for a socket");
}

WaitSet::~WaitSet() {
  for (const Attachment& attachment : attachments_) attachment.reader->detach();
}

void WaitSet::attach(Reader& reader, std::uint64_t cookie) {
  attachments_.reserve(attachments_.size() + 1);
  events_.resize(attachments_.size() + 3);
  reader.attach(*this);
  try {
    if (!reader.is_called()) watch(reader.socket().number(), &reader);
  } catch (...) {
    reader.detach();
    throw;
  }
  attachments_.push_back({&reader, cookie, false});
}

void WaitSet::forget(const Reader& reader) noexcept {
  epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, reader.socket().number(), nullptr);
  std::erase_if(attachments_, [&](const auto& attachment) { return attachment.reader == &reader; });
  first_ = 0;
}

perflab_status WaitSet::wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                             std::size_t* ready_count, perflab_error* error) noexcept {
  const std::int64_t until_ns = timeout_ns <= 0 ? 0 : support::monotonic_after(timeout_ns);
  for (;;) {
    // Messages read already are not visible in the socket.
    const bool is_there = std::ranges::any_of(
        attachments_, [](const auto& attachment) { return attachment.reader->has_read_ahead(); });
    const int count = poll(is_there ? 0 : until_ns);
    if (count < 0) {
      support::set_error(error, "udp: cannot wait for sockets: " + reason_of(errno));
      return PERFLAB_FAILED;
    }
    const bool woken = note(count);
    *ready_count = collect(ready, capacity);
    if (woken || *ready_count > 0) return PERFLAB_OK;
    if (count == 0 && !is_there) return PERFLAB_TIMEOUT;
  }
}

// Records which readers have a datagram; returns true if it was woken.
bool WaitSet::note(int count) noexcept {
  bool woken = false;
  for (Attachment& attachment : attachments_) attachment.has_datagram = false;
  for (int i = 0; i < count; ++i) {
    const void* const what = events_[static_cast<std::size_t>(i)].data.ptr;
    if (what == &woken_) {
      woken = woken_.take();
    } else if (what == &changed_) {
      changed_.take();
    } else {
      const auto at = std::ranges::find(attachments_, what, &Attachment::reader);
      if (at != attachments_.end()) at->has_datagram = true;
    }
  }
  return woken;
}

int WaitSet::poll(std::int64_t until_ns) noexcept {
  for (;;) {
    timespec left{};
    if (until_ns > 0) {
      const std::int64_t left_ns = std::max<std::int64_t>(until_ns - read_clock(CLOCK_MONOTONIC), 0);
      left = {left_ns / kNanosecondsPerSecond, left_ns % kNanosecondsPerSecond};
    }
    const int count = epoll_wait_ns(epoll_.number(), events_.data(), events_.size(),
                                    until_ns == INT64_MAX ? nullptr : &left);
    if (count >= 0 || errno != EINTR) return count;
  }
}

std::size_t WaitSet::collect(std::uint64_t* ready, std::size_t capacity) noexcept {
  const std::size_t places = attachments_.size();
  std::size_t count = 0;
  for (std::size_t i = 0; i < places; ++i) {
    const std::size_t at = (first_ + i) % places;
    const Attachment& attachment = attachments_[at];
    if (!attachment.has_datagram && !attachment.reader->has_read_ahead()) continue;
    if (count == capacity) {
      first_ = at;  // did not fit: the next wait starts with it
      return count;
    }
    ready[count++] = attachment.cookie;
  }
  first_ = 0;
  return count;
}

}  // namespace perflab::middleware::udp
