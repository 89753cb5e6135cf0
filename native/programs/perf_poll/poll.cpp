// poll() for `perf record -p`, to be preloaded into it.
//
// When a thread watched by perf ends, its descriptor reports a hang-up permanently, even if no event is
// requested: poll() returns immediately again and again, and perf uses a whole CPU until the last thread has
// ended. Some versions of perf stop requesting events for such a descriptor, others do not. This poll() waits
// for the other descriptors; it still reports the hang-ups, so that perf ends when all threads have.
#include <poll.h>

#include <ctime>

namespace {

constexpr short kHungUp = POLLHUP | POLLERR | POLLNVAL;

// poll() ignores ~fd, from which fd can be restored; -1 would lose it.
void hide(pollfd& entry) { entry.fd = ~entry.fd; }
bool hidden(const pollfd& entry) { return entry.fd < 0; }

// True if it has hung up and has nothing to read.
bool has_only_hung_up(const pollfd& entry) {
  return (entry.revents & kHungUp) != 0 && (entry.revents | kHungUp) == kHungUp;
}

int wait(pollfd* list, nfds_t count, int timeout_ms) {
  const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  return ppoll(list, count, timeout_ms < 0 ? nullptr : &timeout, nullptr);
}

// Separate from poll(), which compilers assume only writes to the list.
[[gnu::noinline]] int patient_poll(pollfd* list, nfds_t count, int timeout_ms) {
  for (nfds_t i = 0; i < count; ++i)
    if (list[i].events == 0 && list[i].fd >= 0) list[i].fd = -1;
  const int now = wait(list, count, 0);
  if (now < 0 || timeout_ms == 0) return now;
  nfds_t watched = 0, hung_up = 0;
  for (nfds_t i = 0; i < count; ++i) {
    if (list[i].fd < 0) continue;
    ++watched;
    if (has_only_hung_up(list[i])) ++hung_up;
  }
  if (hung_up == 0) return now > 0 ? now : wait(list, count, timeout_ms);
  if (hung_up == watched || static_cast<nfds_t>(now) > hung_up) return now;
  for (nfds_t i = 0; i < count; ++i)
    if (list[i].fd >= 0 && has_only_hung_up(list[i])) hide(list[i]);
  const int others = wait(list, count, timeout_ms);
  for (nfds_t i = 0; i < count; ++i) {
    // Entries of -1 were the caller's or request nothing: ~(-1) would be a descriptor.
    if (!hidden(list[i]) || list[i].fd == -1) continue;
    hide(list[i]);
    if (list[i].fd >= 0) list[i].revents = POLLHUP;
  }
  return others < 0 ? others : others + static_cast<int>(hung_up);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int poll(pollfd* list, nfds_t count, int timeout_ms) {
  return patient_poll(list, count, timeout_ms);
}
