// poll() for `perf record -p`, to be preloaded into it.
//
// When a thread that perf watches ends, its descriptor hangs up for good. perf then asks for no event of
// it, but leaves it in the list; a hang-up is told unasked, so that poll() returns at once, again and again,
// and perf takes a whole CPU until the last of the threads has ended. Here a descriptor of which nothing is
// asked is passed over, as perf means it.
#include <poll.h>

#include <ctime>

namespace {

// Apart, as compilers believe that poll() only writes to the list.
[[gnu::noinline]] void pass_over_unasked(pollfd* list, nfds_t count) {
  for (nfds_t i = 0; i < count; ++i)
    if (list[i].events == 0 && list[i].fd >= 0) list[i].fd = -1;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int poll(pollfd* list, nfds_t count, int timeout_ms) {
  pass_over_unasked(list, count);
  const timespec timeout{timeout_ms / 1000, timeout_ms % 1000 * 1'000'000L};
  return ppoll(list, count, timeout_ms < 0 ? nullptr : &timeout, nullptr);
}
