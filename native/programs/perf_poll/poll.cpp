// poll() for `perf record -p`, to be preloaded into it.
//
// When a thread that perf watches ends, its descriptor hangs up for good, and a hang-up is told unasked:
// poll() returns at once, again and again, and perf takes a whole CPU until the last of the threads has
// ended. Some versions of perf ask for no event of such a descriptor any more, others go on to ask. Here it
// is waited for the others; that it has hung up is still told, so that perf ends when all have.
#include <poll.h>

#include <ctime>

namespace {

constexpr short kHungUp = POLLHUP | POLLERR | POLLNVAL;

// As ~fd a descriptor is passed over, and can be had back; -1 would be lost.
void hide(pollfd& entry) { entry.fd = ~entry.fd; }
bool hidden(const pollfd& entry) { return entry.fd < 0; }

// Of those that have hung up and have nothing to read.
bool has_only_hung_up(const pollfd& entry) {
  return (entry.revents & kHungUp) != 0 && (entry.revents | kHungUp) == kHungUp;
}

int wait(pollfd* list, nfds_t count, int timeout_ms) {
  const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  return ppoll(list, count, timeout_ms < 0 ? nullptr : &timeout, nullptr);
}

// Apart from poll() itself, of which compilers believe that it only writes to the list.
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
    // Entries of -1 were the caller's or are asked for nothing: ~(-1) would be a descriptor.
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
